"""What the title bar of a terminal says about a session, read from its directory and from the system."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Mapping

from session_magics.errors import SessionError
from session_magics.model import BackingOff, Exited, FailedToStart, Lost, Running, SessionInfo, State, describe
from session_magics.session import Session
from session_magics.store.states import read_run

PROGRAM_LENGTH = 200
"""Characters of a command that are shown; the page cuts it to its width."""

Facts = Mapping[str, object]

_KINDS: Mapping[type, str] = {
    Running: "running",
    BackingOff: "backing-off",
    Exited: "exited",
    Lost: "lost",
    FailedToStart: "failed",
}


def read(session: Session, *, owner: str = "", waiting: str = "") -> Facts:
    """All that is shown about a session now. Raises nothing: what cannot be read is shown as unknown.

    ``owner`` is the view that its size follows, ``waiting`` what it waits for ("", "input", "secret").
    """
    try:
        info = session.info()
    except SessionError as error:
        return _gone(session, str(error))
    code, signal, until = _end(info.state)
    return {
        "name": info.name,
        "state": _KINDS.get(type(info.state), "unknown"),
        "text": describe(info.state),
        "program": _cut(shlex.join(info.argv)),
        "directory": _short(_directory(info)),
        "since": _since(info),
        "until": until,
        "code": code,
        "signal": signal,
        "size": list(info.size),
        "owner": owner,
        "waiting": waiting if info.running else "",
        "command": _cut(session.command() or "") if info.shell and info.running else "",
        "generation": info.generation,
    }


def _gone(session: Session, reason: str) -> Facts:
    return {
        "name": session.name, "state": "unknown", "text": f"unknown ({reason})", "program": "", "directory": "",
        "since": 0, "until": None, "code": None, "signal": None, "size": [24, 80], "owner": "", "waiting": "",
        "command": "", "generation": 0,
    }  # fmt: skip


def _end(state: State) -> tuple[int | None, int | None, float | None]:
    match state:
        case Exited(code=code, signal=number, at=at):
            return code, number, at
    return None, None, None


def _since(info: SessionInfo) -> float:
    if isinstance(info.state, Running):
        return info.state.since
    with contextlib.suppress(SessionError, OSError, ValueError):
        run = read_run(str(info.directory))
        if run is not None:
            return run.since
    return 0.0


def _directory(info: SessionInfo) -> str:
    """Where the program is now, on systems that tell, or where it began."""
    if info.running and info.pid:
        with contextlib.suppress(OSError):
            return os.readlink(f"/proc/{info.pid}/cwd")
    return info.cwd


def _short(path: str) -> str:
    home = os.path.expanduser("~")
    inside = path == home or path.startswith(f"{home}/")
    return f"~{path[len(home) :]}" if inside and home != "/" else path


def _cut(text: str) -> str:
    return text if len(text) <= PROGRAM_LENGTH else text[: PROGRAM_LENGTH - 1] + "…"
