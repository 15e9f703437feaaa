"""Version 1 of a ``sessions.json``: an object with ``version`` and ``sessions``, a row a name.

A row has ``name``, ``backend`` (native or tmux), ``state``, ``dir``, ``started_at``, ``updated_at``, and where known
``pid``, ``tmux_name``, ``log_path``, ``exit_code`` and ``labels``. The program is not among them. A native session's
exit code may be in a file beside its log alone: that is written by its starter, which may have ended first.

The line in a log of the tmux kind that tells its exit code is not believed: any program can print one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from session_magics.durable import read_bounded
from session_magics.importing.past import BrokenRow, Left, Past, moment, outcome, pairs, text, whole

VERSION = 1
STATES = ("starting", "running", "exited", "stopped", "unknown")
SOCKET = "shepherd"
"""Name of the tmux socket that such a registry uses when it is not told another."""
CODE_BYTES = 32
"""Of the file with the exit code; a number has at most 11."""


def rows(sessions: Mapping[str, Any], source: Path) -> Iterator[Past | Left]:
    """Read each row; ``source`` is the file that they are from."""
    for name, row in sessions.items():
        try:
            yield _past(name, row, source)
        except BrokenRow as error:
            yield Left(name, str(error), row, broken=True)


def _past(name: str, row: Any, source: Path) -> Past:
    if not isinstance(row, dict):
        raise BrokenRow("it is no object")
    state = text(row, "state")
    if state not in STATES:
        raise BrokenRow(f"state {state[:40]!r} is none of {', '.join(STATES)}")
    backend = text(row, "backend", "native")
    if backend not in ("native", "tmux"):
        raise BrokenRow(f"backend {backend[:40]!r} is neither native nor tmux")
    created, updated = moment(row, "started_at"), moment(row, "updated_at")
    log, note = _log(text(row, "log_path", ""), source)
    code = whole(row, "exit_code")
    if code is None and log is not None and backend == "native":
        code = _code_beside(log)
    code, lost = outcome(code, f"{'' if state == 'unknown' else 'recorded as '}{state}, without an exit code")
    session = text(row, "tmux_name", "")
    return Past(
        was=name,
        argv=(),
        cwd=text(row, "dir", ""),
        created=created,
        ended=max(created, updated),
        code=code,
        lost=lost,
        labels=pairs(row, "labels"),
        output=log,
        of_pipe=backend == "native",
        pid=whole(row, "pid") or 0,
        tmux=(SOCKET, session) if session else None,
        note=note,
    )


def _log(recorded: str, source: Path) -> tuple[Path | None, str]:
    """The log's file, or why there is none. It is looked for beside the registry too, which may have been moved."""
    if not recorded:
        return None, "no log was recorded"
    for place in (source.parent / recorded, source.parent / "logs" / Path(recorded).name):
        if place.is_file():
            return (place, "") if os.access(place, os.R_OK) else (None, f"its log {recorded} may not be read")
    return None, f"its log {recorded} is missing"


def _code_beside(log: Path) -> int | None:
    try:
        written = read_bounded(f"{log}.exit", CODE_BYTES).strip()
    except OSError:
        return None
    return int(written) if re.fullmatch(rb"-?[0-9]{1,10}", written) else None
