"""Switching approval on and off for a session.

While it is on, a small process of its own (``approver``) answers; like the session it outlives whoever started it. It
holds a lock in the session's directory for its whole life, and that lock alone says *on*.
"""

from __future__ import annotations

import getpass
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from session_magics.agents.approval import Grant
from session_magics.agents.audit import encode
from session_magics.agents.standing import Standing, clock, locked, read_record, standing
from session_magics.agents.verdicts.judge import Rules
from session_magics.environment import COOKIE
from session_magics.errors import SessionError, UsageMistake
from session_magics.holder import processes, trees, waiting
from session_magics.model import SessionInfo, describe
from session_magics.session import Session

MINUTES, MOST = 30.0, 50
MINUTES_LIMIT = 24 * 60
"""Longest approval: whoever wants more says so again."""
MOST_LIMIT = 1000
UP_LIMIT = 10.0
"""Seconds for an approver to come up; it takes about 0.3."""
PATIENCE = 2.0
"""Seconds between telling an approver to go and killing it; it takes milliseconds unless it is stopped."""
KILLED = 3.0
"""Seconds after which one that was killed should be gone, however busy the machine."""
STEP = 0.005


class ToolLike(Protocol):
    """What has to be known of a tool (see ``tools.Tool``)."""

    @property
    def name(self) -> str: ...

    @property
    def processes(self) -> tuple[str, ...]: ...

    @property
    def prompts(self) -> str: ...


def grant(
    session: Session,
    tool: ToolLike | None,
    *,
    minutes: float = MINUTES,
    most: int = MOST,
    allow: Sequence[str],
    deny: Sequence[str] = (),
    version: str | None = None,
) -> Standing:
    """Have questions of the tool that runs in a session answered by rule; replaces an approval that is on.

    Args:
        session: it must run.
        tool: what runs in it; None: it is not known.
        minutes: after which it ends.
        most: number of answers after which it ends.
        allow: rules of what may be approved; all else is left to the person.
        deny: rules that win over those.
        version: of the tool, for its prompts.

    Raises:
        UsageMistake: with what is wrong; nothing was changed.
        SessionError: it could not be switched on, and is off.
    """
    info = session.info()
    known = _check(session, info, tool, minutes, most, allow)
    order = Grant(
        tool=known.name,
        processes=tuple(known.processes),
        prompts=known.prompts,
        version=version,
        until=clock() + minutes * 60,
        most=most,
        rules=Rules(allow=tuple(allow), deny=tuple(deny)),
        cwd=info.cwd,
        home=os.path.expanduser("~"),
        enabled_by=_who(),
    )
    revoke(session)
    _launch(session, order)
    found = standing(session.directory)
    if found is None or not found.on:
        raise _failed(session, found.reason if found is not None else "its record is gone")
    return found


def revoke(session: Session) -> bool:
    """Switch a session's approval off; whether it was on. No key is typed by it once this has returned.

    Raises SessionError if its process cannot be ended.
    """
    return bool(revoke_all([session]))


def revoke_all(sessions: Iterable[Session]) -> tuple[str, ...]:
    """Switch approval off for all of these; the names of those for which it was on. Raises as ``revoke`` does."""
    on = [session for session in sessions if locked(session.directory)]
    for session in on:
        _signal(session.directory, signal.SIGTERM)
    begun, errors = time.monotonic(), []
    for session in on:
        try:
            _await_end(session, begun)
        except SessionError as error:
            errors.append(str(error))
        # A key that it sent last may still be on its way: what the holder answers after that, it has read before.
        with suppress(SessionError), session.link() as link:
            link.probe()
    if errors:
        raise SessionError("; ".join(errors))
    return tuple(session.name for session in on)


# ---------------------------------------------------------------------- checks


def _check(
    session: Session, info: SessionInfo, tool: ToolLike | None, minutes: float, most: int, allow: Sequence[str]
) -> ToolLike:
    """Raise UsageMistake for what cannot be approved; the tool."""
    if tool is None:
        raise UsageMistake(f"session {session.name!r} runs no known tool: start it with --tool to approve by rule")
    if not tool.prompts or not tool.processes:
        raise UsageMistake(f"the questions of {tool.name} are not known, so nothing can be approved by rule")
    if not info.running:
        raise UsageMistake(f"session {session.name!r} is not running ({describe(info.state)}): approve it when it is")
    if not 0 < minutes <= MINUTES_LIMIT:
        raise UsageMistake(f"{minutes:.0f} minutes: approval lasts up to {MINUTES_LIMIT} minutes, such as 30")
    if not 1 <= most <= MOST_LIMIT:
        raise UsageMistake(f"{most} answers: approval gives 1 to {MOST_LIMIT}, such as 50")
    if not allow:
        raise UsageMistake("nothing is allowed yet: say what may be approved, such as 'git status' or 'Edit(src/**)'")
    if os.environ.get(COOKIE) == session.id:
        raise UsageMistake(f"session {session.name!r} cannot approve itself: do it from outside")
    if sys.platform != "linux" or os.uname().machine not in waiting.CALLS:
        raise UsageMistake("this system does not tell whether a program waits for input: approval by rule is off")
    return tool


def _who() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a uid without a name
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()} pid {os.getpid()}"


# ----------------------------------------------------------------- its process


def _launch(session: Session, order: Grant) -> None:
    """Start the approver; returns when it is up. What is started here ends at once, once that has detached itself."""
    root = session.directory.parent.parent
    message = {"root": str(root), "id": session.id, "name": session.name, "grant": encode(order)}
    starter = subprocess.Popen(
        [sys.executable, "-P", "-m", "session_magics.agents.approver"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        cwd="/",
        env=_environment(session),
    )
    try:
        answer, complaint = starter.communicate(json.dumps(message).encode(), timeout=UP_LIMIT)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(starter.pid, signal.SIGKILL)
        starter.communicate()
        raise _failed(session, f"no approver came up within {UP_LIMIT:g} s") from None
    if answer != b"ok":
        reason = answer or complaint.strip().rpartition(b"\n")[2] or b"its process ended at once"
        raise _failed(session, reason.decode("utf-8", "replace"))


def _environment(session: Session) -> dict[str, str]:
    """Without the mark of a session that we may be part of, or the approver would end with that one.

    It has the mark of holders, so that it does not count as what a session left behind from inside of which it was
    started.
    """
    env = {key: value for key, value in os.environ.items() if key != COOKIE}
    return env | {trees.HOLDER_MARK.decode().rstrip("="): session.id}


def _failed(session: Session, reason: str) -> SessionError:
    return SessionError(f"approval of session {session.name!r} could not be switched on: {reason}")


def _await_end(session: Session, begun: float) -> None:
    """Wait until an approver that was told to go has gone; kill it if it does not."""
    while locked(session.directory):
        waited = time.monotonic() - begun
        if waited > PATIENCE + KILLED:
            raise SessionError(f"the approver of session {session.name!r} could not be ended: kill its process by hand")
        # One that has just come up has its lock, and not yet its record.
        _signal(session.directory, signal.SIGKILL if waited > PATIENCE else signal.SIGTERM)
        time.sleep(STEP)


def _signal(directory: Path, signum: int) -> None:
    with suppress(OSError, ValueError, KeyError, TypeError):
        record = read_record(directory)
        processes.send(int(record["pid"]), int(record["tick"]), signum)
