"""How programs end: every byte and the right status, names that are free again, restarts by policy."""

from __future__ import annotations

import fcntl
import hashlib
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rounds import alive, rounds, sessions, until, until_state
from session_magics import (
    Command,
    Exited,
    FailedToStart,
    Registry,
    Running,
    SessionError,
    StartFailed,
)
from session_magics.errors import SessionExists
from session_magics.holder.processes import start_tick

pytestmark = pytest.mark.timeout(rounds(60, 600))

# Writes so many bytes, which depend on the seed, and exits.
QUICK = """
import os, random, sys
size, code, seed = map(int, sys.argv[1:])
data = random.Random(seed).randbytes(size).replace(b"\\n", b" ")
while data:
    data = data[os.write(1, data):]
os._exit(code)
"""

# Takes a lock that no other generation may have at the same time, and holds it to its end, which it delays.
LOCKED = """
import fcntl, os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.02), os._exit(0)))
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("locked", flush=True)
signal.pause()
"""


def python(code: str, *arguments: object) -> Command:
    return Command((sys.executable, "-I", "-S", "-c", code, *map(str, arguments)))


def shell(script: str) -> Command:
    return Command(("sh", "-c", script))


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    with sessions(root) as opened:
        yield opened


def test_a_quick_exit_loses_no_byte_and_keeps_its_code(registry: Registry) -> None:
    draw = random.Random(7)
    for number in range(rounds(60, 300)):
        size, code = round(2 ** draw.uniform(0, 20)), draw.randrange(256)
        session = registry.start("quick", python(QUICK, size, code, number))
        assert session.wait(timeout=20) == code
        expected = random.Random(number).randbytes(size).replace(b"\n", b" ")
        assert hashlib.sha256(session.output()).digest() == hashlib.sha256(expected).digest()


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGSEGV", "SIGHUP"])
def test_a_program_that_dies_of_a_signal_is_said_to(registry: Registry, name: str) -> None:
    number = getattr(signal, name)
    session = registry.start("victim", shell(f"echo last words; kill -{name[3:]} $$"))
    assert session.wait(timeout=10) == -number
    state = session.state()
    assert isinstance(state, Exited)
    assert (state.code, state.signal) == (None, number)
    assert session.output() == b"last words\r\n"


def test_a_child_that_keeps_the_terminal_delays_no_end_and_is_still_logged(registry: Registry, root: Path) -> None:
    os.mkfifo(root / "gate")
    script = f"trap '' HUP; (read line <{root}/gate; echo late $line) & exit 3"
    session = registry.start("parent", shell(script))
    assert session.wait(timeout=10) == 3
    state = session.state()
    assert isinstance(state, Exited)
    assert state.background
    (root / "gate").write_text("but here\n")
    until(lambda: session.output() == b"late but here\r\n", what=session.output)
    until(lambda: not getattr(session.state(), "background", True))
    assert session.wait(timeout=1) == 3


def test_one_name_is_stopped_and_started_again_and_again(registry: Registry, root: Path) -> None:
    lock = root / "lock"
    for _ in range(rounds(40, 200)):
        session = registry.start("again", python(LOCKED, lock))
        session.wait_for("locked", timeout=20)
        state = session.stop()
        assert isinstance(state, Exited), state
        assert (state.code, state.signal) == (0, None)
        fd = os.open(lock, os.O_RDWR)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(fd)


def test_generations_of_one_session_never_overlap(registry: Registry, root: Path) -> None:
    session = registry.start("again", python(LOCKED, root / "lock"))
    session.wait_for("locked", timeout=20)
    for generation in range(2, rounds(12, 60)):
        at = session.info().log_bytes
        assert registry.restart("again").id == session.id
        assert session.wait_for("locked|Error", timeout=20, begin=at) == "locked"
        info = session.info()
        assert (info.name, info.generation) == ("again", generation)
    assert session.output().count(b"locked") == generation


def test_a_stop_that_meets_the_end_tells_one_truth(registry: Registry) -> None:
    draw = random.Random(3)
    for _ in range(rounds(40, 300)):
        session = registry.start("race", python(f"import time; time.sleep({draw.uniform(0, 0.06)})"))
        time.sleep(draw.uniform(0, 0.06))  # the race itself: the stop is to fall before, into and after the end
        state = session.stop(now=draw.random() < 0.5)
        assert isinstance(state, Exited), state
        assert (state.code, state.signal) in [(0, None), (None, signal.SIGTERM), (None, signal.SIGKILL)]
        settled = session.state()
        assert isinstance(settled, Exited)
        assert (settled.code, settled.signal, settled.at) == (state.code, state.signal, state.at)


@pytest.mark.parametrize(
    ("program", "cwd", "reason"),
    [
        ("no-such-program-anywhere", "/", "no such file or directory: 'no-such-program-anywhere'"),
        ("/nonexistent/program", "/", "no such file or directory: '/nonexistent/program'"),
        ("true", "/nonexistent", "no such file or directory: '/nonexistent'"),
        ("true", "/etc/passwd", "not a directory: '/etc/passwd'"),
        ("/etc/passwd", "/", "permission denied: '/etc/passwd'"),
        ("/etc", "/", "permission denied: '/etc'"),
        ("two\nlines", "/", "no such file or directory: 'two\\nlines'"),
    ],
)
def test_what_cannot_be_started_says_why_in_one_line_and_gives_its_name_back(
    registry: Registry, program: str, cwd: str, reason: str
) -> None:
    with pytest.raises(StartFailed) as caught:
        registry.start("name", Command((program,), cwd=cwd))
    assert caught.value.reason == reason
    assert str(caught.value) == f"session 'name' failed to start: {reason}"
    session = registry.get("name")
    assert session.state() == FailedToStart(reason)
    with pytest.raises(SessionError, match="failed to start"):
        session.wait(timeout=5)
    assert registry.start("name", shell("exit 4")).wait(timeout=10) == 4


def test_a_program_that_is_gone_at_its_restart_is_said_to_be(registry: Registry, root: Path) -> None:
    program = root / "program"
    program.write_text("#!/bin/sh\necho up; sleep 1000\n")
    program.chmod(0o755)
    session = registry.start("name", Command((str(program),)))
    session.wait_for("up", timeout=10)
    program.unlink()
    with pytest.raises(SessionError, match="no such file or directory"):
        registry.restart("name")
    assert until_state(session, FailedToStart) == FailedToStart(f"no such file or directory: '{program}'")
    with pytest.raises(StartFailed, match="no such file or directory"):
        registry.restart("name")
    assert session.state() == FailedToStart(f"no such file or directory: '{program}'")


def test_a_program_that_is_gone_when_its_ended_session_is_restarted_is_said_to_be(
    registry: Registry, root: Path
) -> None:
    program = root / "program"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    session = registry.start("name", Command((str(program),)))
    assert session.wait(timeout=10) == 3
    program.unlink()
    with pytest.raises(StartFailed, match="no such file or directory"):
        registry.restart("name")
    assert session.state() == FailedToStart(f"no such file or directory: '{program}'")


def test_a_name_that_runs_is_refused_and_nothing_is_harmed(registry: Registry) -> None:
    session = registry.start("taken", shell("sleep 1000"))
    state = session.state()
    assert isinstance(state, Running)
    tick = start_tick(state.pid)
    with pytest.raises(SessionExists):
        registry.start("taken", shell("true"))
    assert session.state() == state
    assert alive(state.pid, tick)
    assert [info.name for info in registry.infos()] == ["taken"]
