"""What ``list`` shows: each session with what it uses and what it printed last, as rows and as a table of text."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psutil

from session_magics import text
from session_magics.errors import StoreError
from session_magics.log import LogReader
from session_magics.model import Exited, SessionInfo, describe
from session_magics.text.amounts import short_bytes, short_time
from session_magics.usage import Usage, UsageMeter

if TYPE_CHECKING:
    from session_magics.agents.activity import ActivityReader

LAST_LINE_BYTES = 4096
"""Bytes in which the last line is looked for: more than a page shows of it, also with many colours."""
COLUMNS = ("NAME", "STATE", "DOING", "PID", "AGE", "CPU", "MEMORY", "PORTS", "PROGRAM", "DIRECTORY", "LAST LINE")
RIGHT = frozenset(("PID", "AGE", "CPU", "MEMORY"))
"""Columns of numbers."""
WIDEST = {"DOING": 48, "PORTS": 17, "PROGRAM": 32, "DIRECTORY": 24, "LAST LINE": 48}
"""Characters of a cell that a table of text shows: a row should fit on the line of a page."""


@dataclass(frozen=True)
class Row:
    """One session at one moment."""

    info: SessionInfo
    usage: Usage | None
    """None where no process lives."""
    directory: str
    """Where the program is now, on systems that tell, or where it began; the user's home is ``~``."""
    until: float | None
    """Unix time of its end."""
    last_line: str
    """The last line of its output that is not blank, as plain text."""
    doing: str
    """What a coding agent does, and how its approval by rule stands; "" for other programs."""

    @property
    def program(self) -> str:
        """The command line, as one would type it."""
        return self.info.command_line

    def age(self, now: float) -> float:
        """Seconds for which the program has run, or did until its end."""
        since = self.info.since
        return max(0.0, (self.until or now) - since) if since else 0.0


class AgentWatch:
    """Tells what coding agents do; remembers what lets it tell so faster. For one thread."""

    def __init__(self) -> None:
        self._reader: ActivityReader | None = None

    def doing(self, info: SessionInfo) -> str:
        """What the agent of a session does, and how its approval by rule stands; "" for other programs."""
        if info.tool is None:
            return ""
        if self._reader is None:
            from session_magics.agents.activity import ActivityReader  # most lists have no agents

            self._reader = ActivityReader()
        return str(self._reader.read(info))


class Observer:
    """Makes rows; remembers what lets the next ones be made faster and measured better. For one thread."""

    def __init__(self) -> None:
        self._meter = UsageMeter()
        self._lines: dict[str, tuple[int, str]] = {}
        self._agents = AgentWatch()

    def rows(self, infos: Iterable[SessionInfo]) -> list[Row]:
        """Return the rows of these sessions, in their order."""
        infos = list(infos)
        usage = self._meter.measure(infos)
        lines = {info.id: self._line(info) for info in infos}
        self._lines = lines
        return [
            Row(
                info,
                usage.get(info.id),
                short_path(directory(info)),
                _until(info),
                lines[info.id][1],
                self._agents.doing(info),
            )
            for info in infos
        ]

    def _line(self, info: SessionInfo) -> tuple[int, str]:
        known = self._lines.get(info.id)
        return known if known is not None and known[0] == info.log_bytes else (info.log_bytes, last_line(info))


class Listing(list[SessionInfo]):
    """What ``list`` returns: a list of SessionInfo that shows itself as a table.

    ``rows`` has what the table has, ``labels`` those that were asked for.
    """

    fixed = False
    """Whether it stays as it is: some of its sessions are not of this machine."""

    def __init__(self, rows: Sequence[Row], labels: Mapping[str, str]) -> None:
        super().__init__(row.info for row in rows)
        self.rows, self.labels = rows, labels

    def _repr_pretty_(self, printer: object, _cycle: bool) -> None:
        printer.text(str(self))  # type: ignore[attr-defined]

    def __str__(self) -> str:
        return table(self.rows)


def table(rows: Sequence[Row]) -> str:
    """The rows as lines of text; a column that would be empty is left out."""
    if not rows:
        return "no sessions"
    now = time.time()
    columns = [
        [column, *cells]
        for column, cells in zip(COLUMNS, zip(*(_cells(row, now) for row in rows), strict=True), strict=True)
    ]
    padded = [_padded(column) for column in columns if any(column[1:])]
    return "\n".join("  ".join(line).rstrip() for line in zip(*padded, strict=True))


def _padded(column: Sequence[str]) -> list[str]:
    width = max(map(len, column))
    return [cell.rjust(width) if column[0] in RIGHT else cell.ljust(width) for cell in column]


def _cells(row: Row, now: float) -> tuple[str, ...]:
    info, usage = row.info, row.usage
    age = short_time(row.age(now)) if info.since else ""
    cpu, memory, ports = "", "", ""
    if usage is not None:
        cpu, memory, ports = f"{usage.cpu:.0f}%", short_bytes(usage.memory), " ".join(map(str, usage.ports))
    cells = (info.name, describe(info.state), row.doing, str(info.pid or ""), age, cpu, memory, ports)
    wide = (row.program, row.directory, row.last_line)
    return tuple(_cut(cell, WIDEST.get(column)) for column, cell in zip(COLUMNS, (*cells, *wide), strict=True))


def _cut(cell: str, width: int | None) -> str:
    cell = cell.replace("\n", "⏎").replace("\t", " ")
    return cell if width is None or len(cell) <= width else cell[: width - 1] + "…"


def last_line(info: SessionInfo) -> str:
    """The last line of the session's output that is not blank, as plain text; "" if there is none near the end."""
    with contextlib.suppress(StoreError, OSError), LogReader(info.directory) as log:
        end = log.end()
        lines = text.plain(log.bytes(max(0, end - LAST_LINE_BYTES), end)).split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
    return ""


def directory(info: SessionInfo) -> str:
    """Where the program is now, on systems that tell, or where it began; with its place, if that is not here."""
    if info.on is not None:
        return f"{info.on}:{info.cwd}" if info.cwd else info.on
    if info.running and info.pid:
        with contextlib.suppress(OSError, psutil.Error):
            linked = sys.platform == "linux"  # where that is ten times as fast, and says of one that it is deleted
            return os.readlink(f"/proc/{info.pid}/cwd") if linked else psutil.Process(info.pid).cwd()
    return info.cwd


def short_path(path: str, home: str | None = None) -> str:
    """The path with ``~`` for a home, which is this user's if none is told; the root is nobody's."""
    home = (os.path.expanduser("~") if home is None else home).rstrip("/")
    inside = bool(home) and f"{path}/".startswith(f"{home}/")
    return f"~{path[len(home) :]}" if inside else path


def _until(info: SessionInfo) -> float | None:
    return info.state.at if isinstance(info.state, Exited) else None
