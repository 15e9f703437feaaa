"""How programs end: every byte and the right status, names that are free again, restarts by policy."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rounds import alive, rounds, sessions, until, until_state
from session_magics import (
    BackingOff,
    Command,
    Exited,
    FailedToStart,
    Registry,
    Running,
    Session,
    SessionError,
    StartFailed,
)
from session_magics.errors import SessionExists
from session_magics.holder.processes import start_tick
from session_magics.log import EventReader

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
    assert session.wait(timeout=10) == -number
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


# ---------------------------------------------------------------- restart policies


def times(session: Session, kind: str) -> list[float]:
    """When events of a kind happened."""
    return [event.time for event in EventReader(session.directory).events()[0] if event.kind == kind]


@pytest.mark.parametrize(
    ("policy", "script", "again"),
    [
        ("no", "exit 1", False),
        ("on-failure", "exit 0", False),
        ("on-failure", "exit 1", True),
        ("on-failure", "kill -KILL $$", True),
        ("always", "exit 0", True),
        ("always", "exit 1", True),
    ],
)
def test_a_policy_says_after_which_end_a_program_comes_back(
    registry: Registry, policy: str, script: str, again: bool
) -> None:
    session = registry.start("policy", shell(script), restart=policy)
    if again:
        until(lambda: session.info().generation >= 2)
    else:
        assert isinstance(until_state(session, Exited), Exited)
        assert session.info().generation == 1
    session.stop()
    assert not isinstance(session.state(), Running | BackingOff)


def test_restarts_by_policy_are_ever_further_apart(registry: Registry) -> None:
    session = registry.start("crashing", shell("exit 1"), restart="always")
    wanted = rounds(2, 4)
    until(lambda: len(times(session, "restart")) >= wanted, 30)
    session.stop()
    pauses = [start - end for start, end in zip(times(session, "restart"), times(session, "exit"), strict=False)]
    for number, pause in enumerate(pauses):
        plan = 0.5 * 2**number
        assert plan * 0.9 <= pause <= plan * 1.1 + 0.1


def test_back_off_is_shown_and_ends_at_once_when_it_is_stopped(registry: Registry) -> None:
    session = registry.start("crashing", shell("exit 7"), restart="on-failure")
    until(lambda: getattr(session.state(), "code", None) == 7)
    state = session.state()
    assert isinstance(state, BackingOff)
    assert 0 < state.until - time.time() < 0.6
    began = time.monotonic()
    state = session.stop()
    assert time.monotonic() - began < 0.5
    assert isinstance(state, Exited)
    assert (state.code, state.signal) == (7, None)
    until(lambda: not getattr(session.state(), "background", True))
    assert session.info().generation == 1


def test_no_end_is_seen_between_a_failure_and_the_back_off(registry: Registry) -> None:
    session = registry.start("crashing", shell("exit 7"), restart="always")
    seen = set()
    limit = time.monotonic() + rounds(2, 8)
    while time.monotonic() < limit:
        seen.add(type(session.state()))
    session.stop()
    assert seen == {Running, BackingOff}


def test_wait_sits_out_restarts_and_ends_with_a_success(registry: Registry, root: Path) -> None:
    script = f"echo x >>{root}/count; [ $(wc -l <{root}/count) -ge 3 ]"
    session = registry.start("retried", shell(script), restart="on-failure")
    assert session.wait(timeout=20) == 0
    assert session.info().generation == 3


def test_wait_sits_out_restarts_until_a_stop(registry: Registry) -> None:
    session = registry.start("crashing", shell("exit 5"), restart="always")
    outcomes: list[int] = []
    waiter = threading.Thread(target=lambda: outcomes.append(session.wait(timeout=30)))
    waiter.start()
    until(lambda: session.info().generation == 2)
    assert not outcomes
    session.stop()
    waiter.join(10)
    assert outcomes in ([5], [-signal.SIGTERM])  # in a pause, or in the middle of the next attempt


def test_restart_keeps_id_name_and_log_and_begins_the_next_generation(registry: Registry) -> None:
    session = registry.start("kept", shell("echo up; sleep 1000"), labels={"a": "b"})
    session.wait_for("up", timeout=10)
    before = session.info()
    assert registry.restart("kept").id == session.id
    session.wait_for("up\n(.*\n)*up", timeout=10)
    after = session.info()
    assert (after.id, after.name, after.labels) == (before.id, before.name, before.labels)
    assert after.generation == before.generation + 1
    assert after.pid != before.pid
    assert session.output() == b"up\r\nup\r\n"
    session.stop()
    registry.restart("kept")
    until(lambda: session.output() == b"up\r\n" * 3, what=session.output)
    assert session.info().generation == before.generation + 2


def test_restart_in_the_back_off_starts_at_once(registry: Registry, root: Path) -> None:
    session = registry.start("crashing", shell(f"echo up; [ -e {root}/good ] && sleep 1000"), restart="always")
    until_state(session, BackingOff)
    (root / "good").touch()
    registry.restart("crashing")
    state = session.state()
    assert isinstance(state, Running), state
    assert session.info().generation == 2
    time.sleep(0.7)  # longer than the back-off that was under way: it must not start another
    assert session.state() == state


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
