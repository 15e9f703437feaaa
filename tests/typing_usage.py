"""Uses of the Python interface as people write them; ``mypy --strict`` has to accept every line. Never run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import assert_type

from session_magics import (
    BackingOff,
    CellCommandError,
    CellResult,
    Command,
    Exited,
    FailedToStart,
    GaveUp,
    Lost,
    Registry,
    RestartLimit,
    Running,
    Session,
    SessionInfo,
    SessionNotFound,
    State,
    Unknown,
    WaitTimeout,
    run_cell,
)
from session_magics.testing import FakeBackend, FakeTerminal, script


def start(root: Path) -> Session:
    registry = Registry(root)
    command = Command(("python3", "-m", "http.server"), cwd="/srv", env={"PORT": "8000", "DEBUG": None})
    session = registry.start("web", command, labels={"team": "x"}, size=(40, 120), restart="on-failure")
    registry.start("job", command, restart="always", max_restarts=RestartLimit(5, 60))
    assert_type(session.wait_for("Serving", timeout=10), str)
    assert_type(session.wait(), int)
    assert_type(session.follow(0), Iterator[bytes])
    assert_type(session.tail(5), str)
    session.send("quit\r")
    session.send(b"\x03")
    assert_type(session.stop(grace=2.5), State)
    return session


def find(registry: Registry) -> None:
    assert_type(registry.find("web"), Session | None)
    assert_type(registry.infos({"team": "x"}), list[SessionInfo])
    assert_type(registry.stop_all(now=True), list[str])
    registry.restart("web", env={"PORT": "9000"})
    registry.remove("web", force=True, keep_log=True)
    try:
        registry.get("nope")
    except SessionNotFound as error:
        assert_type(error.known, list[str])


def explain(state: State) -> str:
    match state:
        case Running(pid=pid):
            return f"pid {pid}"
        case BackingOff(until=until):
            return f"until {until}"
        case GaveUp(restarts=restarts):
            return f"{restarts} times"
        case Exited(code=code, signal=signal):
            return f"{code or signal}"
        case Lost(reason=reason) | FailedToStart(reason=reason) | Unknown(reason=reason):
            return reason


def cells(registry: Registry) -> CellResult | None:
    shell = registry.shell("main", shell="bash", env={"A": "b"})
    try:
        return run_cell(shell, "make", timeout=60)
    except CellCommandError as error:
        assert_type(error.returncode, int)
        return error.result
    except WaitTimeout:
        return None


def test_of_a_user(tmp_path: Path) -> None:
    def server(terminal: FakeTerminal) -> int:
        terminal.write("Serving\n")
        terminal.pause()
        return 0

    with FakeBackend({"server": server, "true": script("done\n", code=0)}) as backend:
        session = Registry(tmp_path, backend=backend).start("web", Command(("server",)))
        assert_type(session.info().labels, Mapping[str, str])
