"""How a session's approval stands: what its approver writes, and what all others read.

An approver holds a lock in the session's directory for its whole life; that lock alone says *on*.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from session_magics import durable
from session_magics.durable import read_bounded, write_atomic
from session_magics.errors import SessionError
from session_magics.holder import processes

if TYPE_CHECKING:
    from session_magics.agents.approval import Grant

LOCK, FILE = "approver.lock", "approval.json"
FILE_LIMIT = 1 << 20
"""Bytes of the file that are read at most; rules are a few hundred."""
LOCK_TRIES = 100
"""For an approver that comes up: who asks whether it is on has the lock for a moment."""
LOCK_STEP = 0.005
"""Seconds between them."""


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


def standing(directory: Path) -> Standing | None:
    """How a session's approval stands; None if there never was one, which takes one look at the directory."""
    try:
        record = read_record(directory)
        on = locked(directory)
        if not on:  # what it wrote last, it wrote before it gave up the lock
            record = read_record(directory)
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


def read_record(directory: Path) -> Any:
    """What the approver has written; raises OSError and ValueError."""
    return json.loads(read_bounded(f"{directory}/{FILE}", FILE_LIMIT))


def locked(directory: Path) -> bool:
    """Whether an approver lives: it has its lock. What cannot be told counts as not."""
    try:
        return durable.locked(f"{directory}/{LOCK}")
    except OSError:
        return False


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
            time.sleep(LOCK_STEP)
    raise SessionError("another approval has just been switched on")
