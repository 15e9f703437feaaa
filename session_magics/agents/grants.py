"""Switching approval on and off for a session, and telling whether it is on.

While it is on, a small process of its own (``approver``) answers; like the session it outlives whoever started it. It
holds a lock in the session's directory for its whole life, and that lock alone says *on*.
"""

from __future__ import annotations

import fcntl
import getpass
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from session_magics.agents.approval import Grant
from session_magics.agents.audit import encode
from session_magics.agents.judge import Rules
from session_magics.durable import read_bounded, write_atomic
from session_magics.environment import COOKIE
from session_magics.errors import SessionError, UsageMistake
from session_magics.holder import processes, trees, waiting
from session_magics.model import SessionInfo, describe
from session_magics.session import Session

LOCK, FILE = "approver.lock", "approval.json"
FILE_LIMIT = 1 << 20
"""Bytes of the file that are read at most; rules are a few hundred."""
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
LOCK_TRIES = 100
"""For an approver that comes up: who asks whether it is on has the lock for a moment."""


class ToolLike(Protocol):
    """What has to be known of a tool (see ``tools.Tool``)."""

    @property
    def name(self) -> str: ...

    @property
    def processes(self) -> tuple[str, ...]: ...

    @property
    def prompts(self) -> str: ...


@dataclass(frozen=True)
class Standing:
    """How a session's approval stands."""

    on: bool
    until: float
    """Unix time, for display."""
    left: int
    """Answers that it may still give."""
    answered: int
    reason: str
    """On: why the question that waits is left to the person, if one is. Off: why it went off."""
    tool: str = ""
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    enabled_by: str = ""

    @property
    def badge(self) -> str:
        """A few words for lists and views; empty when it is off."""
        if not self.on:
            return ""
        minutes = max(1, math.ceil((self.until - time.time()) / 60))
        return f"auto-approve · {self.left} left · {minutes}m"


def clock() -> float:
    """Seconds on the clock of grants: the same in all processes, never set, and running while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


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


def standing(directory: Path) -> Standing | None:
    """How a session's approval stands; None if there never was one, which takes one look at the directory."""
    try:
        record = _record(directory)
        on = locked(directory)
        if not on:  # what it wrote last, it wrote before it gave up the lock
            record = _record(directory)
        off = str(record["off"]) or "its process was killed"
        return Standing(
            on=on,
            until=float(record["until"]),
            left=int(record["left"]),
            answered=int(record["answered"]),
            reason=str(record["waiting"]) if on else off,
            tool=str(record["tool"]),
            allow=tuple(record["allow"]),
            deny=tuple(record["deny"]),
            enabled_by=str(record["enabled_by"]),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return Standing(locked(directory), 0.0, 0, 0, "its record cannot be read")


def locked(directory: Path) -> bool:
    """Whether an approver lives: it has its lock. What cannot be told counts as not."""
    try:
        fd = os.open(f"{directory}/{LOCK}", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        fcntl.flock(fd, fcntl.LOCK_UN)  # by hand: a child that is being forked may have a copy of the descriptor
        return False
    except BlockingIOError:
        return True
    finally:
        os.close(fd)


# -------------------------------------------------------- for the approver alone


class RecordWriter:
    """Writes what others may know of an approval; only its own process does."""

    def __init__(self, directory: Path, order: Grant) -> None:
        self._path = f"{directory}/{FILE}"
        self._fields: dict[str, object] = {
            "schema": 1, "pid": os.getpid(), "tick": processes.start_tick(os.getpid()), "tool": order.tool,
            "until": time.time() + order.until - clock(), "left": order.most, "answered": 0,
            "allow": order.rules.allow, "deny": order.rules.deny, "enabled_by": order.enabled_by,
            "waiting": "", "off": "",
        }  # fmt: skip

    def write(self, **changes: object) -> None:
        """Change some of it; the file is replaced in one step. Raises OSError."""
        if not changes or any(self._fields[key] != value for key, value in changes.items()):
            self._fields |= changes
            write_atomic(self._path, json.dumps(self._fields).encode())


def take_lock(directory: Path) -> int:
    """The descriptor of the lock that says *on*; raises SessionError if another approver has it."""
    fd = os.open(f"{directory}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except BlockingIOError:
            time.sleep(STEP)
    raise SessionError("another approval has just been switched on")


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
        raise UsageMistake(f"{minutes:g} minutes: approval lasts up to {MINUTES_LIMIT} minutes, such as 30")
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
        record = _record(directory)
        processes.send(int(record["pid"]), int(record["tick"]), signum)


def _record(directory: Path) -> Any:
    return json.loads(read_bounded(f"{directory}/{FILE}", FILE_LIMIT))
