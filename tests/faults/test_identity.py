"""Lines 7 to 10: nobody is taken for somebody else, whatever pids, clocks, init processes and copies do."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from held import a_stranger
from rounds import DEADLINE, rounds, until
from session_magics import BackingOff, Command, Exited, Lost, Registry, Running, SessionInfo, WaitTimeout
from session_magics.session import GRACE

pytestmark = pytest.mark.timeout(120)

# PID 1 of a namespace: it reaps what it kills, so that the number is free, and lets a stranger have it.
REUSE = """
import os, shutil, signal
from session_magics import Command, Exited, Lost, Registry, Running, SessionNotRunning
from session_magics.holder.processes import start_tick
from rounds import until

registry, count = Registry(sys.argv[1]), int(sys.argv[2])
ALL = set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}

def stranger(pid):
    # A process of that number that takes no signal, so that each stays pending, and tells at the end which ones are.
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(pid - 1))
    reading, writing = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, ALL)
    child = os.fork()
    if not child:
        os.close(writing)
        os.read(reading, 1)
        os._exit(len(signal.sigpending()))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ALL)
    os.close(reading)
    return child, writing

def untouched(child, writing):
    assert os.waitpid(child, os.WNOHANG | os.WUNTRACED | os.WCONTINUED) == (0, 0), "killed or stopped"
    os.write(writing, b"x")
    os.close(writing)
    assert os.waitpid(child, 0)[1] == 0, "signalled"

def refused(ask):
    try:
        ask()
    except SessionNotRunning:
        return
    raise AssertionError("a lost session did something")

same_ticks = 0
for number in range(count):
    name, backend = f"s{number}", "tmux" if number % 10 == 9 and shutil.which("tmux") else "native"
    session = registry.start(name, Command(("sleep", "1000")), backend=backend)
    run = registry.store.run(session.id)
    victims = (run.holder, run.pid)
    for pid in victims:
        os.kill(pid, signal.SIGKILL)
    if backend == "tmux":  # the server would not let the number go
        session.stop()
    for pid in victims:
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            until(lambda: start_tick(pid) == 0)
    strangers = [stranger(pid) for pid in victims]
    assert tuple(child for child, _ in strangers) == victims, "the number was not given again"
    same_ticks += start_tick(run.pid) == run.tick
    assert session.state() == Lost("holder killed"), session.state()
    refused(session.interrupt)
    refused(lambda: session.send("x"))
    how = number % 5
    if how == 0:
        session.stop()
    elif how == 1:
        session.stop(now=True)
    elif how == 2:
        registry.restart(name)
        assert isinstance(session.state(), Running)
    elif how == 3:
        registry.stop_all()
    registry.start("other", Command(("true",))).wait(10)
    registry.remove(name, force=True)
    for one in strangers:
        untouched(*one)
print(f"{count} rounds, {same_ticks} with the same start tick too")
"""


def test_line_07_a_stranger_with_the_pid_of_a_session_is_never_signalled(
    root: Path, pid_namespace: Callable[..., str]
) -> None:
    count = rounds(20, 300)
    said = pid_namespace(REUSE, root, count, limit=1800)
    assert said.startswith(f"{count} rounds"), said


FAILS = Command(("sh", "-c", "exit 1"))
# Seconds by which a timer may be late: on a machine that is busy these are many, and still far from a step.
LATE = 1.0 if rounds(0, 1) else DEADLINE
HOUR, YEAR = 3600.0, 365 * 86400.0


@pytest.mark.parametrize("step", [-HOUR, HOUR, YEAR], ids=["an hour back", "an hour on", "a year on"])
def test_line_08_a_step_of_the_wall_clock_changes_no_state_and_no_timer(
    registry: Registry, clock: Callable[[float], None], step: float
) -> None:
    registry.start("runs", Command(("sleep", "1000")))
    registry.start("ended", Command(("sh", "-c", "exit 3"))).wait(10)
    until(lambda: not registry.get("ended").info().running)
    killed = registry.start("lost", Command(("sleep", "1000")))
    record = registry.store.run(killed.id)
    assert record
    os.kill(record.holder, signal.SIGKILL)
    deaf = registry.start("deaf", Command(("sh", "-c", "trap '' TERM HUP; echo deaf; while :; do sleep 1; done")))
    deaf.wait_for("deaf", DEADLINE)
    until(lambda: isinstance(registry.get("lost").state(), Lost))
    failing = registry.start("fails", FAILS, restart="always")
    looks: list[SessionInfo] = []  # state and generation of one look: a pause is soon over

    def pauses() -> bool:
        looks.append(failing.info())
        return isinstance(looks[-1].state, BackingOff) and looks[-1].generation == 2

    until(pauses, what=failing.state)
    pause, told = time.monotonic(), looks[-1].state
    assert isinstance(told, BackingOff)
    planned = told.until - time.time()
    before = {info.name: info.state for info in registry.infos()}

    clock.step(step)  # type: ignore[attr-defined]

    after = {info.name: info.state for info in registry.infos()}
    if time.monotonic() - pause >= planned:  # on a busy machine the pause may be over
        del before["fails"], after["fails"]
    assert after == before
    until(lambda: failing.info().generation == 3)
    assert planned - 0.1 <= time.monotonic() - pause <= planned + LATE
    assert 0.3 <= until(lambda: timed_out(registry, 0.3)) <= 0.3 + LATE
    began = time.monotonic()
    assert isinstance(deaf.stop(grace=0.5), Exited)
    assert 0.5 <= time.monotonic() - began <= 0.5 + LATE
    assert registry.store.sweep() == []
    new = registry.start("new", Command(("sleep", "1000")))
    state = new.state()
    assert isinstance(state, Running) and abs(time.time() - state.since) <= LATE
    failing.stop()


def timed_out(registry: Registry, seconds: float) -> bool:
    with pytest.raises(WaitTimeout):
        registry.get("runs").wait(seconds)
    return True


# PID 1 that reaps nobody: the holder, once it has gone, and the program, once it has lost its holder, stay zombies.
UNREAPED = """
import os, signal, time
from session_magics import Command, Exited, Lost, Registry
from session_magics.holder.processes import entry
from rounds import until

def zombie(pid):
    one = entry(pid)
    return one is not None and one.gone

registry = Registry(sys.argv[1])
quick = registry.start("quick", Command(("sh", "-c", "read line; (sleep 0.05 &) ; exit 3")))
run = registry.store.run(quick.id)
quick.send("\\r")
told = until(lambda: quick.state() == Exited(3, None, getattr(quick.state(), "at", 0.0)), what=quick.state)
until(lambda: zombie(run.holder), what="nobody reaps the holder")

lost = registry.start("lost", Command(("sleep", "1000")))
run = registry.store.run(lost.id)
os.kill(run.holder, signal.SIGKILL)
seen = until(lambda: lost.state() == Lost("holder killed"), what=lost.state)
until(lambda: zombie(run.holder) and zombie(run.pid), what="both are zombies")
began = time.monotonic()
assert lost.stop() == Lost("holder killed")
stopped = time.monotonic() - began

parent = "import os, time\\nif os.fork() == 0: os._exit(0)\\nprint('up', flush=True); time.sleep(1000)"
careless = registry.start("careless", Command((sys.executable, "-I", "-S", "-c", parent)))  # with a zombie of its own
careless.wait_for("up", 10)
assert isinstance(careless.stop(), Exited)
assert [info.name for info in registry.infos() if info.running] == []
for name in ("quick", "lost", "careless"):
    registry.remove(name)
print(max(told, seen, stopped))
"""


def test_line_09_zombies_that_nobody_reaps_are_told_as_ended(root: Path, pid_namespace: Callable[..., str]) -> None:
    """Within a second on a machine that does nothing else; a stop that zombies held up would take all of its grace."""
    assert float(pid_namespace(UNREAPED, root)) <= (1.0 if rounds(0, 1) else GRACE)


# What one may ask of a session whose record came from elsewhere.
ELSEWHERE = """
from session_magics import Registry
registry = Registry(sys.argv[1])
session = registry.get("copied")
print(session.state())
for ask in (session.stop, lambda: session.stop(now=True), registry.stop_all, session.tail, registry.infos):
    ask()
print(session.state())
registry.remove("copied")
"""


@pytest.fixture
def copied(registry: Registry, tmp_path: Path) -> Path:
    """A copy of a registry with a session that runs."""
    registry.start("copied", Command(("sleep", "1000")))
    shutil.copytree(
        registry.store.root, tmp_path / "copy", ignore=lambda _, names: [name for name in names if name == "sock"]
    )
    return tmp_path / "copy"


def test_line_10_a_record_of_another_host_is_elsewhere_and_nobody_is_signalled(
    registry: Registry, copied: Path, traced: Callable[..., list[str]]
) -> None:
    here = registry.get("copied")
    with a_stranger() as stranger:
        copy = Registry(copied).get("copied")
        path = copy.directory / "run.json"
        theirs = {"host": "far-away", "boot": "theirs", "holder": stranger.pid, "pid": stranger.pid}
        path.write_text(json.dumps(json.loads(path.read_text()) | theirs))
        assert copy.state() == Lost("on host far-away")
        # There, what carries the cookie of the session is on the other machine; here it is the original.
        other_id(copied)
        assert traced(ELSEWHERE, copied) == []
        assert stranger.poll() is None
    assert isinstance(here.state(), Running)


def other_id(root: Path) -> None:
    """Give a copy's session another id, in all that knows it."""
    [old] = os.listdir(root / "sessions")
    new = old[:-1] + ("0" if old[-1] != "0" else "1")
    (root / "sessions" / old).rename(root / "sessions" / new)
    for path in (root / "names" / "copied", root / "sessions" / new / "spec.json"):
        path.write_text(path.read_text().replace(old, new))


def test_line_10_a_record_of_another_pid_namespace_is_elsewhere(
    registry: Registry, copied: Path, pid_namespace: Callable[..., str]
) -> None:
    here = registry.get("copied").state()
    first, last = pid_namespace(ELSEWHERE, copied).splitlines()
    assert first == last == str(Lost("in another PID namespace"))
    assert registry.get("copied").state() == here
    # Not a copy: the lock is held, whoever asks, and so it runs; and its holder answers through the socket.
    asked = "from session_magics import Registry\nprint(Registry(sys.argv[1]).get('copied').state())"
    assert pid_namespace(asked, registry.store.root).strip() == str(here)


# PID 1, and strangers that have the numbers which the record of a holder elsewhere that hangs has.
HANGS_ELSEWHERE = """
import json, os, signal, subprocess
from session_magics import Registry
from session_magics.holder.processes import start_tick
session = Registry(sys.argv[1]).get("copied")
root = subprocess.Popen(["sh", "-c", "sleep 1000 & echo; wait"], stdout=subprocess.PIPE)
root.stdout.readline()
path = session.directory / "run.json"
as_if = {"holder": root.pid, "holder_tick": start_tick(root.pid)}
path.write_text(json.dumps(json.loads(path.read_text()) | as_if))
session.stop(now=True)
children = open(f"/proc/{root.pid}/task/{root.pid}/children").read().split()
assert len(children) == 1 and root.poll() is None, "a stranger's child was killed"
"""


def test_line_10_a_holder_that_hangs_in_another_pid_namespace_has_no_double_here(
    registry: Registry, pid_namespace: Callable[..., str]
) -> None:
    session = registry.start("copied", Command(("sleep", "1000")))
    record = registry.store.run(session.id)
    assert record
    os.kill(record.holder, signal.SIGSTOP)
    try:
        pid_namespace(HANGS_ELSEWHERE, registry.store.root)
    finally:
        os.kill(record.holder, signal.SIGCONT)
    assert isinstance(session.state(), Running)
