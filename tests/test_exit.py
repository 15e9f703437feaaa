"""How programs end: every byte and the right status, names that are free again, restarts by policy."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rounds import DEADLINE, alive, rounds, sessions, until_state
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


def python(code: str, *arguments: object) -> Command:
    return Command((sys.executable, "-I", "-S", "-c", code, *map(str, arguments)))


def shell(script: str) -> Command:
    return Command(("sh", "-c", script))


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    with sessions(root) as opened:
        yield opened


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGSEGV", "SIGHUP"])
def test_a_program_that_dies_of_a_signal_is_said_to(registry: Registry, name: str) -> None:
    number = getattr(signal, name)
    session = registry.start("victim", shell(f"echo last words; kill -{name[3:]} $$"))
    assert session.wait(timeout=DEADLINE) == -number
    state = session.state()
    assert isinstance(state, Exited)
    assert (state.code, state.signal) == (None, number)
    assert session.output() == b"last words\r\n"


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
        session.wait(timeout=DEADLINE)
    assert registry.start("name", shell("exit 4")).wait(timeout=DEADLINE) == 4


def test_a_program_that_is_gone_at_its_restart_is_said_to_be(registry: Registry, root: Path) -> None:
    program = root / "program"
    program.write_text("#!/bin/sh\necho up; sleep 1000\n")
    program.chmod(0o755)
    session = registry.start("name", Command((str(program),)))
    session.wait_for("up", timeout=DEADLINE)
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
    assert session.wait(timeout=DEADLINE) == 3
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
