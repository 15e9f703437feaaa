"""What the title bar of a terminal says about a session, read from its directory and from the system."""

from __future__ import annotations

from collections.abc import Mapping

from session_magics.errors import SessionError
from session_magics.listing import AgentWatch, directory, short_path
from session_magics.model import BackingOff, Exited, FailedToStart, GaveUp, Lost, Running, State, describe
from session_magics.session import Session

PROGRAM_LENGTH = 200
"""Characters of a command that are shown; the page cuts it to its width."""

Facts = Mapping[str, object]

_KINDS: Mapping[type, str] = {
    Running: "running",
    BackingOff: "backing-off",
    Exited: "exited",
    GaveUp: "exited",
    Lost: "lost",
    FailedToStart: "failed",
}


def read(session: Session, agents: AgentWatch, *, owner: str = "", waiting: str = "") -> Facts:
    """All that is shown about a session now. Raises nothing: what cannot be read is shown as unknown.

    ``owner`` is the view that its size follows, ``waiting`` what it waits for ("", "input", "secret").
    """
    try:
        info = session.info()
    except SessionError as error:
        return _gone(session, str(error))
    code, signal, until = _end(info.state)
    command = session.begun() if info.shell and info.running else None
    return {
        "name": info.name,
        "state": state_word(info.state),
        "text": describe(info.state),
        "program": cut(info.command_line),
        "directory": short_path(directory(info)),
        "since": command.time if command is not None else info.since,
        "until": until,
        "code": code,
        "signal": signal,
        "size": list(info.size),
        "owner": owner,
        "waiting": waiting if info.running else "",
        "command": cut(str(command.data.get("text", ""))) if command is not None else "",
        "generation": info.generation,
        "doing": agents.doing(info),
    }


def removed(before: Facts) -> Facts:
    """What is said about a session that has been removed: what it was, so that its picture stays as it is."""
    return {**before, "state": "unknown", "text": "removed", "owner": "", "waiting": "", "doing": ""}


def _gone(session: Session, reason: str) -> Facts:
    return {
        "name": session.name, "state": "unknown", "text": f"unknown ({reason})", "program": "", "directory": "",
        "since": 0, "until": None, "code": None, "signal": None, "size": [24, 80], "owner": "", "waiting": "",
        "command": "", "generation": 0, "doing": "",
    }  # fmt: skip


def _end(state: State) -> tuple[int | None, int | None, float | None]:
    match state:
        case Exited(code=code, signal=number, at=at):
            return code, number, at
    return None, None, None


def state_word(state: State) -> str:
    """The kind of a state in the words that views know."""
    return _KINDS.get(type(state), "unknown")


def cut(text: str) -> str:
    """The beginning of a text that is too long."""
    return text if len(text) <= PROGRAM_LENGTH else text[: PROGRAM_LENGTH - 1] + "…"
