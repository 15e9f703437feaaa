"""The rows B1 to B15 of the comparison with an older registry of detached sessions, each on real programs.

B8 to B11, B14 and B15 are in ``test_seed_ends``.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import seeds
from panes import NEEDED
from rounds import DEADLINE as LIMIT
from rounds import rounds
from seeds import SLEEP, program_of, sh
from session_magics import Command, Registry
from session_magics.errors import SessionExists, SessionNotFound, SessionNotRunning, UsageMistake
from session_magics.importing.importer import import_file
from session_magics.model import Exited, Lost, Running
from terminals import attached

pytestmark = NEEDED
registry = seeds.registry
GRACE = 60.0  # seconds, which no test sits out


def test_b1_a_backend_is_chosen_by_name_and_refused_in_one_line(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Auto, native and tmux behind one interface, with and without tmux on the path."""
    real = Registry(root)
    for asked, held in ((None, "native"), ("auto", "native"), ("native", "native"), ("tmux", "tmux")):
        session = real.start(f"by-{asked}", sh("echo well; exit 3"), backend=asked)
        assert (session.info().backend, session.wait(LIMIT), session.tail(1)) == (held, 3, "well")
    with pytest.raises(UsageMistake, match="auto, native, tmux"):
        real.start("screen", SLEEP, backend="screen")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageMistake, match="no tmux on this machine"):
        real.start("pane", SLEEP, backend="tmux")
    assert real.start("auto", Command(("/bin/true",)), backend="auto").wait(LIMIT) == 0


def test_b2_a_version_one_registry_is_read(real: Registry, tmp_path: Path) -> None:
    """Snake-case keys, keys that are left out where empty, an exit code of 0 that is kept."""
    (tmp_path / "web.log").write_text("listening\n")
    written = {"version": 1, "updated_at": "2026-06-26T10:00:05.5Z", "sessions": {
        "web": {"name": "web", "backend": "native", "state": "exited", "dir": "/w", "pid": 1, "exit_code": 0,
                "log_path": f"{tmp_path}/web.log", "started_at": "2026-06-26T10:00:00.25Z",
                "updated_at": "2026-06-26T10:00:05.5Z", "labels": {"crew": "a"}},
        "bare": {"name": "bare", "backend": "tmux", "state": "running", "dir": "/", "tmux_name": "shp-bare",
                 "started_at": "2026-06-26T12:00:01+02:00", "updated_at": "2026-06-26T10:00:05.5Z"},
    }}  # fmt: skip
    (tmp_path / "sessions.json").write_text(json.dumps(written, indent=2))
    assert len(import_file(real.store, tmp_path / "sessions.json").imported) == 2
    web, bare = real.infos()
    assert (web.name, web.state, web.cwd, web.labels) == ("web", Exited(0, None, 1782468005.5), "/w", {"crew": "a"})
    assert (web.created, bare.created) == (1782468000.25, 1782468001.0)
    assert real.get("web").tail() == "listening" and isinstance(bare.state, Lost)


WRITER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from session_magics import Command, Registry
def start(number):
    name = f"{sys.argv[2]}-{number}"
    return Registry(sys.argv[1]).start(name, Command(("true",)), labels={"from": name}).wait(50)
with ThreadPoolExecutor(20) as pool:
    assert list(pool.map(start, range(20))) == [0] * 20
"""


def test_b3_forty_writers_in_two_processes_lose_nothing(real: Registry) -> None:
    root = str(real.store.root)
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, root, name]) for name in ("one", "two")]
    assert [writer.wait(50) for writer in writers] == [0, 0]
    infos = real.infos()
    assert {info.name for info in infos} == {f"{one}-{number}" for one in ("one", "two") for number in range(20)}
    assert all(info.labels == {"from": info.name} for info in infos)
    assert all(isinstance(info.state, Exited) and info.state.code == 0 for info in infos)


def test_b4_every_verb_works_and_its_errors_are_told_apart(registry: Registry) -> None:
    session = registry.start("web", sh("echo ready; read word; echo got $word; sleep 1000"), labels={"crew": "a"})
    session.wait_for("ready", LIMIT)
    assert [info.name for info in registry.infos({"crew": "a"})] == ["web"] and registry.get("web").id == session.id
    with pytest.raises(SessionExists, match="stop or restart it"):
        registry.start("web", SLEEP)
    with attached("web") as terminal:
        terminal.until("ready")
        terminal.type("\x1c")
        assert terminal.wait() == 0
    session.send("this\r")
    session.wait_for("got this", LIMIT)
    assert session.tail(1) == "got this" and "got this" in session.snapshot()
    session.stop(now=True)
    for verb in (lambda: session.send("x"), session.interrupt, lambda: session.resize(10, 10), session.connect):
        with pytest.raises(SessionNotRunning, match="restart web"):
            verb()
    registry.remove("web")
    for missing in (registry.get, registry.remove, registry.restart):
        with pytest.raises(SessionNotFound, match="no session named 'web'"):
            missing("web")


def test_b5_a_program_has_a_session_of_its_own_one_log_and_its_own_values(
    real: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHICH", "the caller's")
    session = real.start("web", sh("echo one; echo two >&2; echo three; echo $WHICH; exec sleep 1000", WHICH="its own"))
    session.wait_for("its own\n", LIMIT)
    assert session.output() == b"one\r\ntwo\r\nthree\r\nits own\r\n"
    pid, _ = program_of(session)
    assert os.getsid(pid) == os.getpgid(pid) == pid != os.getsid(0)
    streams = {os.readlink(f"/proc/{pid}/fd/{number}") for number in range(3)}
    assert len(streams) == 1 and streams.pop().startswith("/dev/pts/"), "a terminal that is nobody else's"


def test_b6_a_tail_is_quick_and_has_exactly_so_many_lines(registry: Registry) -> None:
    session = registry.start("lines", sh("seq 100; while read word; do date +%s.%N; done"))
    session.wait_for("100", LIMIT)
    for count in (0, 1, 5, 37):
        assert session.tail(count).split() == [str(number) for number in range(101 - count, 101)]
    delays, follower = [], session.follow(session.info().log_bytes)
    for _ in range(5):
        session.send("\r")
        seen = b""
        while not re.search(rb"\.\d+\s", seen):
            seen += next(follower)
        delays.append(time.time() - float(seen.split()[-1]))
    follower.close()
    assert statistics.median(delays) < 0.25, delays  # of several: a machine may stall in one


def test_b7_keys_are_literal_and_a_stop_leaves_time_to_tidy_up(registry: Registry) -> None:
    session = registry.start(
        "keys", sh("trap 'echo interrupted' INT; trap 'sleep 0.5; echo tidy; exit 4' TERM; echo ready; "
                   "while :; do read line && echo \"<$line>\"; done")
    )  # fmt: skip
    session.wait_for("ready", LIMIT)
    for text in ("hello;", "Enter", "C-c -t x"):
        session.send(text)
        session.send("\r")
        session.wait_for(f"<{text}>", LIMIT)
    session.interrupt()
    session.wait_for("interrupted", LIMIT)
    state = session.stop(GRACE)
    assert isinstance(state, Exited) and state.code == 4 and session.tail(1) == "tidy"


def test_b12_names_are_exact_and_none_is_taken_for_its_beginning(registry: Registry) -> None:
    """tmux/tmux#1143."""
    names = ["a", "ab", "agent-1", "agent-10", "v1.2", "v1_2", "A" + "x" * 63, "0.-_"]
    sessions = [registry.start(name, Command(("sleep", "1000"))) for name in names]
    sessions[2].stop(now=True)
    with pytest.raises(SessionExists):
        registry.start("agent-10", Command(("true",)))
    assert [isinstance(one.state(), Running) for one in sessions] == [name != "agent-1" for name in names]
    assert len({one.directory for one in sessions}) == len(names), "no two share a log"
    assert registry.start("agent-1", Command(("sleep", "1000"))).info().running


@pytest.mark.parametrize("name", ["a/b", "a:b", "..", "a b", "", "x" * 65, "a\nb"])
def test_b12_a_name_that_could_be_mistaken_is_refused(registry: Registry, name: str) -> None:
    with pytest.raises(UsageMistake, match="no session name"):
        registry.start(name, SLEEP)
    assert not os.listdir(registry.store.root / "sessions")


def test_b13_no_first_output_is_lost_and_no_text_is_taken_for_an_end(registry: Registry) -> None:
    marks = "exit status 0\\n[exited]\\n__EXIT__:0\\n"

    def run(number: int) -> tuple[int, str]:
        session = registry.start(f"fast-{number}", sh(f"printf 'first {number}\\n{marks}'; exit {number % 7}"))
        return session.wait(LIMIT), session.output().decode()

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(run, range(rounds(50, 500))))
    for number, (code, output) in enumerate(outcomes):
        assert code == number % 7
        assert output == f"first {number}\r\nexit status 0\r\n[exited]\r\n__EXIT__:0\r\n"
