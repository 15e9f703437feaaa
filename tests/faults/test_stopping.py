"""Lines 32 to 34: what a stop says is gone is gone, whatever it did to get away; see test_backoff.py for line 35."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import trees
from holders import faults
from others import ran, without
from rounds import DEADLINE, alive, rounds, until, until_gone
from session_magics import Command, Exited, Registry, SessionExists, SessionUnresponsive, StopIncomplete, run_cell
from session_magics.backends import native
from session_magics.cleaning import clean
from session_magics.holder import processes
from session_magics.holder.processes import start_tick
from session_magics.session import LEAVING
from trees import BOMB, SCRIPTS, STAY, Tree

BACKENDS = ("native", "tmux")
GRACE = 0.4

grow = trees.grow

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers"),
    pytest.mark.timeout(120),
]

# What waits in a call of the kernel from which no signal but KILL gets it out (state D): it has started a program by
# vfork, whose other side waits for somebody to write into a pipe.
UNINTERRUPTIBLE = """
import os, signal
for number in (1, 2, 15):
    signal.signal(number, signal.SIG_IGN)
os.mkfifo("pipe")
with open("pids", "a") as file:
    file.write(f"{os.getpid()}\\n")
os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 3, "pipe", os.O_RDONLY, 0)])
"""
PYTHON = f"{sys.executable} -I -S"
# Processes of a bomb: 200 starve the tests beside it for half a minute.
BOMBS = rounds(24, 200)
MATRIX = {
    "ignores TERM": (f"trap '' TERM; {STAY}", 1),
    "ignores TERM, HUP and INT": (SCRIPTS["deaf"], 1),
    "stopped": (f"sh -c 'echo $$ >>\"$PIDS\"; kill -STOP $$; sleep 1000' & {STAY}", 2),
    "double-forked": (f"(sh deaf </dev/null >/dev/null 2>&1 &) ; {STAY}", 2),
    "setsid escapee": (f'(setsid env -i PIDS="$PIDS" PATH="$PATH" sh deaf >/dev/null 2>&1 &) ; {STAY}', 2),
    "fork bomb": (f"exec {PYTHON} bomb {BOMBS}", 1),
    "uninterruptible": (f"{PYTHON} uninterruptible & {STAY}", 2),
}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("what", MATRIX)
def test_line_32_whatever_it_is_a_stop_ends_it(
    grow: Callable[..., Tree], tmp_path: Path, what: str, backend: str
) -> None:
    (tmp_path / "bomb").write_text(BOMB)
    (tmp_path / "uninterruptible").write_text(UNINTERRUPTIBLE)
    script, count = MATRIX[what]
    tree = grow(script, count, backend=backend)
    if what == "uninterruptible":
        until(lambda: "D" in states(tree), what=lambda: states(tree))
    if what == "fork bomb":
        until(lambda: len(named(tmp_path)) > 0.7 * BOMBS, what=lambda: len(named(tmp_path)))
    state = stopped(tree, tries=10 if what == "fork bomb" else 1)  # which takes STOP_SLACK beyond the grace at most
    assert isinstance(state, Exited), state
    assert isinstance(until_gone(tree.session), Exited)
    assert tree.left() == []
    assert named(tmp_path) == []
    assert faults(tree.session) == []


def stopped(tree: Tree, tries: int) -> object:
    """Stop it; a stop that has not ended all says so. A bomb leaves the holder a hundredth of the processors."""
    for left in reversed(range(tries)):
        try:
            return tree.session.stop(GRACE)
        except (StopIncomplete, SessionUnresponsive):
            if not left:
                raise


def states(tree: Tree) -> str:
    """The states of its processes, one letter each."""
    return "".join(one.state for pid in tree.left() if (one := processes.entry(pid)) is not None)


def named(place: Path) -> list[int]:
    """Processes that work in that directory, which no bomb has announced."""
    found = []
    for one in processes.table().values():
        try:
            if not one.gone and os.readlink(f"/proc/{one.pid}/cwd") == str(place):
                found.append(one.pid)
        except OSError:
            continue
    return found


# A holder that goes late, as on a machine that is short of processor time.
GOES_LATE = """
import os, runpy, sys, time
package = type(sys)("session_magics")
package.__path__ = [{package!r}]
sys.modules["session_magics"] = package
from session_magics.holder import holder
close = holder.Holder.close
holder.Holder.close = lambda self: (time.sleep({seconds}), close(self))
runpy.run_path({main!r}, run_name="__main__")
"""


def test_a_holder_that_goes_late_keeps_nothing_of_an_ended_program(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, late = str(Path(native.HOLDER).parents[1]), tmp_path / "late.py"
    late.write_text(GOES_LATE.format(package=package, seconds=2 * LEAVING, main=str(native.HOLDER)))
    monkeypatch.setattr(native, "HOLDER", late)
    assert registry.start("removed", Command(("true",))).wait(DEADLINE) == 0
    registry.remove("removed")
    assert registry.start("cleaned", Command(("true",))).wait(DEADLINE) == 0
    assert clean(registry) == ["cleaned"]
    leaves = registry.start("leaves", Command(("sh", "-c", "trap '' HUP; sleep 1000 &")))
    assert leaves.wait(DEADLINE) == 0
    with pytest.raises(SessionExists):
        registry.remove("leaves")


# Run without the right to signal other users, by a root that its program gives up.
SURVIVOR = """
import os, time
from session_magics import *
code = "import os, signal; os.setresuid(65534, 65534, 65534); signal.signal(15, signal.SIG_IGN)"
code += "; print('up', flush=True); [signal.pause() for _ in range(1000)]"
session = Registry(sys.argv[1]).start("one", Command((sys.executable, "-I", "-S", "-c", code)), backend=sys.argv[2])
session.wait_for("up", 10)
pid = session.state().pid
for now in (False, True):
    try:
        session.stop(0.2, now=now)
        raise SystemExit("it says that it has ended")
    except StopIncomplete as error:
        assert error.survivors == (pid,), error.survivors
        assert str(pid) in str(error)
print(pid)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("backend", BACKENDS)
def test_line_32_what_cannot_be_ended_is_named(root: Path, registry: Registry, backend: str) -> None:
    pid = int(ran(SURVIVOR, root, backend, before=without("kill")))
    tick = start_tick(pid)
    assert alive(pid, tick)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid, tick))


# Takes a lock that no other generation may have at the same time, and holds it to its end, which it delays.
LOCKED = """
import fcntl, os, signal, sys, time
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda *_: (time.sleep(0.02), os._exit(0)))
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("locked", flush=True)
signal.pause()
"""


def python(code: str, *arguments: object) -> Command:
    return Command((sys.executable, "-I", "-S", "-c", code, *map(str, arguments)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_line_33_one_name_is_stopped_and_started_again_and_again(registry: Registry, root: Path, backend: str) -> None:
    lock = root / "lock"
    for _ in range(rounds(12, 200)):
        session = registry.start("again", python(LOCKED, lock), backend=backend)
        session.wait_for("locked", timeout=DEADLINE)
        state = session.stop(DEADLINE)
        assert isinstance(state, Exited), state
        assert (state.code, state.signal) == (0, None)
        fd = os.open(lock, os.O_RDWR)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(fd)


@pytest.mark.parametrize("backend", BACKENDS)
def test_line_33_generations_of_one_session_never_overlap(registry: Registry, root: Path, backend: str) -> None:
    session = registry.start("again", python(LOCKED, root / "lock"), backend=backend)
    session.wait_for("locked", timeout=DEADLINE)
    for generation in range(2, rounds(8, 200)):
        at = session.info().log_bytes
        assert registry.restart("again").id == session.id
        assert session.wait_for("locked|Error", timeout=DEADLINE, begin=at) == "locked"
        info = session.info()
        assert (info.name, info.generation) == ("again", generation)
    assert session.output().count(b"locked") == generation


@pytest.mark.parametrize("backend", BACKENDS)
def test_line_34_a_stop_that_meets_the_end_tells_one_truth(registry: Registry, backend: str) -> None:
    draw = random.Random(3)
    for _ in range(rounds(15, 500)):
        program = python(f"import os, time; time.sleep({draw.uniform(0, 0.06)}); os._exit(7)")
        session = registry.start("race", program, backend=backend)
        time.sleep(draw.uniform(0, 0.06))  # the race itself: the stop is to fall before, into and after the end
        state = session.stop(now=draw.random() < 0.5)
        assert isinstance(state, Exited), state
        assert (state.code, state.signal) in [(7, None), (None, signal.SIGTERM), (None, signal.SIGKILL)]
        assert until_gone(session) == replace(state, background=False)
        assert faults(session) == []


def test_line_34_who_is_told_of_the_end_of_a_command_finds_it_on_record(registry: Registry) -> None:
    session = registry.shell("main", lifetime="detached", rc=False)
    for _ in range(rounds(60, 1000)):
        run_cell(session, "true")
        assert session.command() is None
