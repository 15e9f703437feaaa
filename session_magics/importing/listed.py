"""A JSON list of sessions of coding tools: ``id``, ``tool``, ``workDir``, ``args``, ``status``, ``exitCode``, …

The end's time is not recorded, so the begin stands for it. Its own program forgets what is older than seven days,
unless it is recorded as running in tmux; so does the import.
"""

from __future__ import annotations

import base64
import binascii
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from session_magics.errors import UsageMistake
from session_magics.importing.past import BrokenRow, Left, Past, moment, outcome, text, texts, whole
from session_magics.model import DEFAULT_SIZE, check_size

MAX_AGE = 7 * 24 * 3600.0
"""Seconds since the begin after which a session counts as forgotten."""
STATUSES = ("running", "exited")
KNOWN_KEYS = ("id", "tool", "createdAt")
"""What tells such a list from any other."""
LABELS = {"tool": "tool", "toolSessionId": "tool-session", "parentId": "parent"}
"""What of a row becomes a label."""


def is_list_of_sessions(content: Sequence[Any]) -> bool:
    """Whether this is such a list at all: some row looks like one."""
    return not content or any(isinstance(row, dict) and set(KNOWN_KEYS) & set(row) for row in content)


def rows(content: Sequence[Any]) -> Iterator[Past | Left]:
    """Read each row."""
    for number, row in enumerate(content, 1):
        was = row.get("id") if isinstance(row, dict) else None
        name = was if isinstance(was, str) and was else f"row {number}"
        try:
            past = _past(row)
        except BrokenRow as error:
            yield Left(name, str(error), row, broken=True)
            continue
        exempt = row["status"] == "running" and past.tmux is not None
        if time.time() - past.created > MAX_AGE and not exempt:
            yield Left(name, f"older than {MAX_AGE / 86400:g} days", row, broken=False)
        else:
            yield past


def _past(row: Any) -> Past:
    if not isinstance(row, dict):
        raise BrokenRow("it is no object")
    status = text(row, "status")
    if status not in STATUSES:
        raise BrokenRow(f"status {status[:40]!r} is none of {', '.join(STATUSES)}")
    created = moment(row, "createdAt")
    code, lost = outcome(whole(row, "exitCode"), f"recorded as {status}, without an exit code")
    if status == "running":  # a code from before a restart
        code, lost = None, "recorded as running, without an exit code"
    was, tool, session = text(row, "id"), text(row, "tool"), text(row, "tmuxSessionName", "")
    if not was or not tool:
        raise BrokenRow("id or tool is empty")
    return Past(
        was=was,
        argv=(tool, *texts(row, "args")),
        cwd=text(row, "workDir", ""),
        created=created,
        ended=created,
        code=code,
        lost=lost,
        labels={label: value for key, label in LABELS.items() if (value := text(row, key, ""))},
        size=_size(row),
        output=_last_output(text(row, "lastOutput", "")),
        tmux=("", session) if session else None,
        tool=tool,
        conversation=text(row, "toolSessionId", ""),
    )


def _size(row: Mapping[str, Any]) -> tuple[int, int]:
    size = whole(row, "lastRows") or 0, whole(row, "lastCols") or 0
    try:
        return check_size(size) if all(size) else DEFAULT_SIZE
    except UsageMistake:
        raise BrokenRow(f"{size[0]}x{size[1]} is no terminal size") from None


def _last_output(written: str) -> bytes:
    try:
        return base64.b64decode(re.sub(r"[\r\n]", "", written), validate=True)
    except (binascii.Error, ValueError):
        raise BrokenRow("lastOutput is no base64") from None
