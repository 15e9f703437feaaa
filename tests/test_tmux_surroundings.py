"""Sessions whose terminal tmux has: what they take from around them, and what they use of the machine."""

from __future__ import annotations

import os
import re
import statistics
import sys
from pathlib import Path

import pytest

import panes
from holders import bare, private
from panes import NEEDED, PYTHON, gone, run, server_of
from rounds import DEADLINE as LIMIT
from rounds import until
from session_magics import Command, Registry, Running
from session_magics.environment import environment
from session_magics.holder import processes
from session_magics.listing import Observer

pytestmark = NEEDED
registry = panes.registry
OWN_MOST = 1.4 * 2**20  # bytes of a holder beyond an interpreter that does nothing


def test_two_registries_do_not_meet(root: Path, registry: Registry) -> None:
    one = registry.start("web", Command(("sleep", "1000")))
    other = Registry(root / "other", backend="tmux")
    two = other.start("web", Command(("sleep", "1000")))
    one.stop(now=True)
    assert isinstance(two.state(), Running)
    two.stop(now=True)


ODD = ('it\'s "a" $HOME `id`', "100%H#{pid}#(id)", "ü" * 80, "semi;")


@pytest.mark.parametrize("part", ODD, ids=lambda part: part[:8])
def test_any_directory_will_do(root: Path, part: str) -> None:
    registry = Registry(root / part, backend="tmux")
    session = registry.start("one", Command(("sh", "-c", "cat")))
    session.send("hello\r")
    session.wait_for("hello", LIMIT)
    session.resize(33, 99)
    server = server_of(session)
    program = run(session)[1]
    until(lambda: os.terminal_size((99, 33)) == terminal_size(program))
    session.stop(now=True)
    gone(server)


def terminal_size(pid: int) -> os.terminal_size:
    fd = os.open(f"/proc/{pid}/fd/0", os.O_RDONLY | os.O_NOCTTY)
    try:
        return os.get_terminal_size(fd)
    finally:
        os.close(fd)


def test_the_callers_tmux_is_ignored_and_the_programs_is_its_own(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUX", "/nowhere/tmux,1,0")
    monkeypatch.setenv("TMUX_PANE", "%77")
    monkeypatch.setenv("TMUX_TMPDIR", "/nowhere")
    session = registry.start("env", Command(("sleep", "1000"), env={"A b": "c;\n#{pid}"}))
    program = run(session)[1]
    env = processes.read_file(f"/proc/{program}/environ").split(b"\0")
    found = dict(os.fsdecode(one).split("=", 1) for one in env if one)
    assert found.pop("TMUX").startswith(f"{session.directory}/tmux,")
    assert found.pop("TMUX_PANE") == "%0"
    wanted = environment({"A b": "c;\n#{pid}"}, session_id=session.id, shell=False)
    assert found == {name: value for name, value in wanted.items() if name not in ("TMUX", "TMUX_PANE")}
    assert sorted(os.listdir(f"/proc/{program}/fd")) == ["0", "1", "2"]
    ignored = re.search(r"^SigIgn:\s(\w+)$", Path(f"/proc/{program}/status").read_text(), re.M)
    assert ignored and int(ignored[1], 16) & 0x7FFFFFFF == 0, "but for 32 and 33, which the C library keeps for itself"


def test_the_interpreter_may_lie_in_any_directory(
    root: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = root / "it's #{pid} %H #(id)"
    place.mkdir()
    (place / "python").symlink_to(os.path.realpath(sys.executable))
    monkeypatch.setattr(sys, "executable", str(place / "python"))
    session = registry.start("one", Command(("sh", "-c", "echo whole; exit 4")))
    assert (session.wait(LIMIT), session.output()) == (4, b"whole\r\n")


LISTENER = "import socket, time; s = socket.create_server(('', 0)); print(s.getsockname()[1]); time.sleep(1000)"


def test_a_list_shows_what_the_program_uses(registry: Registry) -> None:
    session = registry.start("server", Command((*PYTHON, LISTENER)))
    port = int(session.wait_for(r"^\d+\s", LIMIT))
    (row,) = Observer().rows(registry.infos())
    assert row.usage and row.usage.ports == (port,) and row.usage.memory > 2**20


def test_a_holder_of_a_pane_is_small(registry: Registry) -> None:
    for number in range(10):
        registry.start(f"s{number}", Command(("sleep", "1000")))
    own = [private(run(registry.get(info.name))[0]) for info in registry.infos()]
    assert statistics.mean(own) - bare() <= OWN_MOST
