"""What the readers of other registries have in common: one row as they found it, and checks of its values."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from session_magics.model import DEFAULT_SIZE

HIGHEST_CODE = 0xFFFFFFFF
"""Exit codes go up to 255 on Unix and have 32 bits on Windows."""
ENDED_BY_SIGNAL = "killed by a signal that the old registry did not record"


@dataclass(frozen=True)
class Past:
    """One session as another registry tells it: it has ended with ``code``, or is lost with a reason."""

    was: str
    """What it was called there."""
    argv: tuple[str, ...]
    cwd: str
    created: float
    ended: float
    code: int | None = None
    lost: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    size: tuple[int, int] = DEFAULT_SIZE
    output: bytes | Path | None = None
    """Its last output, or the file that has it."""
    of_pipe: bool = False
    """Whether the output was a pipe's, whose lines end without a carriage return."""
    pid: int = 0
    tmux: tuple[str, str] | None = None
    """Socket name ("" for tmux's own) and session in which it may still run."""
    tool: str = ""
    """The coding tool that it was, whose arguments alone are behind the first word of ``argv``."""
    conversation: str = ""
    """The tool's own id of what was said."""
    note: str = ""


@dataclass(frozen=True)
class Left:
    """A row that is not imported: ``broken``, so that it is set aside, or left out on purpose."""

    was: str
    reason: str
    row: Any
    broken: bool


class BrokenRow(ValueError):
    """A value of a row is not what it should be."""


def text(row: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """The text under a key; without a ``default`` it has to be there."""
    value = row.get(key, default)
    if not isinstance(value, str) or not _is_text(value):
        raise BrokenRow(f"{key} is missing" if value is None else f"{key} is no text")
    return value


def texts(row: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The list of texts under a key; empty if there is none."""
    value = row.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(one, str) and _is_text(one) for one in value):
        raise BrokenRow(f"{key} is no list of texts")
    return tuple(value)


def pairs(row: Mapping[str, Any], key: str) -> dict[str, str]:
    """The texts by name under a key; empty if there are none."""
    value = row.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(
        isinstance(one, str) and _is_text(name) and _is_text(one) for name, one in value.items()
    ):
        raise BrokenRow(f"{key} are no pairs of texts")
    return value


def whole(row: Mapping[str, Any], key: str) -> int | None:
    """The whole number under a key, None if there is none."""
    value = row.get(key)
    if value is not None and type(value) is not int:
        raise BrokenRow(f"{key} is no whole number")
    return value


def moment(row: Mapping[str, Any], key: str) -> float:
    """The time under a key as Unix time, 0 for the one that stands for "never set" (the year 1)."""
    written = text(row, key)
    try:
        time = datetime.datetime.fromisoformat(written)
        return max(0.0, time.timestamp()) if time.tzinfo else _refuse(key, written)
    except (ValueError, OverflowError):
        return _refuse(key, written)


def outcome(code: int | None, otherwise: str) -> tuple[int | None, str]:
    """Code and reason of a loss by the exit code on record; ``otherwise`` is the reason where there is none."""
    if code is None:
        return None, otherwise
    if code < 0:
        return None, ENDED_BY_SIGNAL
    if code > HIGHEST_CODE:
        raise BrokenRow("its exit code is none")
    return code, ""


def _refuse(key: str, written: str) -> float:
    raise BrokenRow(f"{key} is no time with a zone: {written[:40]!r}")


def _is_text(value: str) -> bool:
    try:
        return b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:  # half a surrogate pair
        return False
