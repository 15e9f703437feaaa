"""The commands of a shell session, from the index of its log: while it runs, and after its end."""

from __future__ import annotations

import html
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from session_magics.errors import UsageMistake
from session_magics.listing import short_path
from session_magics.log import EventReader
from session_magics.session import Session
from session_magics.text.amounts import fine_time

COLUMNS = ("WHEN", "TOOK", "STATUS", "DIRECTORY", "COMMAND")
WIDEST = {"DIRECTORY": 32, "COMMAND": 80}
"""Characters of a cell that a table of text shows."""
_TABLE_STYLE = "text-align:left;font-family:monospace;white-space:pre"


@dataclass(frozen=True)
class Ran:
    """One command of a shell session."""

    number: int
    text: str
    """The first line of the cell, as far as the index keeps it."""
    began: float
    """Unix time."""
    seconds: float | None
    """How long it took; None while it runs, and where its end is not on record."""
    status: int | None
    """Its exit status, or minus the signal that ended the shell; None as above."""
    state: str
    """``done``; of a command with which the shell went ``exited`` or ``replaced``; ``running`` or ``lost``."""
    directory: str
    """Where the shell was at its end."""


class History(list[Ran]):
    """What ``history`` returns: commands, oldest first, that show themselves as a table."""

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(str(self))

    def __str__(self) -> str:
        if not self:
            return "no commands"
        rows = [COLUMNS, *(tuple(map(_cut, COLUMNS, _cells(one))) for one in self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)

    def _repr_html_(self) -> str:
        if not self:
            return "<i>no commands</i>"
        head = "".join(f'<th style="text-align:left">{column.lower()}</th>' for column in COLUMNS)
        return f"<table><tr>{head}</tr>{''.join(map(_html_row, self))}</table>"


def history(session: Session, *, last: int | None = None, failed: bool = False) -> History:
    """The commands of a shell session, oldest first.

    Args:
        session: a session whose program is, or was, a shell of ours; UsageMistake for another.
        last: how many at most, the newest ones; None: all that are on record.
        failed: only those whose status is not 0.
    """
    info = session.info()
    if info.shell is None:
        raise UsageMistake(f"session {info.name!r} runs {info.argv[0]} and no shell of ours: it has no history")
    commands = _commands(session, running=info.running)
    found = [one for one in commands if not failed or one.status]
    return History(found if last is None else found[max(0, len(found) - last) :])


def _commands(session: Session, *, running: bool) -> Iterable[Ran]:
    events, _ = EventReader(session.directory).events()
    begun: dict[int, Ran] = {}
    found: list[Ran] = []
    for event in events:
        number = event.data.get("n")
        if not isinstance(number, int):
            continue
        if event.kind == "begin":
            begun[number] = Ran(number, str(event.data.get("text", "")), event.time, None, None, "lost", "")
        elif event.kind == "end" and number in begun:
            begin = begun.pop(number)
            found.append(_ended(begin, event.time, event.data))
    open_ones = sorted(begun.values(), key=lambda one: one.began)
    for one in open_ones:
        state = "running" if running and one is open_ones[-1] else "lost"
        found.append(Ran(one.number, one.text, one.began, None, None, state, one.directory))
    return sorted(found, key=lambda one: one.began)


def _ended(begin: Ran, at: float, data: dict[str, object]) -> Ran:
    seconds, status = data.get("seconds"), data.get("status")
    took = float(seconds) if isinstance(seconds, int | float) else None
    return Ran(
        begin.number,
        begin.text,
        begin.began if took is None else at - took,  # of a short one the begin is written with the end
        took,
        status if isinstance(status, int) else None,
        str(data.get("state", "done")),
        str(data.get("cwd", "")),
    )


def _cells(one: Ran) -> tuple[str, ...]:
    status = one.state if one.status is None else str(one.status) + ("" if one.state == "done" else f" {one.state}")
    took = "" if one.seconds is None else fine_time(one.seconds)
    return _when(one.began), took, status, short_path(one.directory), one.text


def _when(moment: float) -> str:
    then, today = time.localtime(moment), time.localtime()
    return time.strftime("%H:%M:%S" if then[:3] == today[:3] else "%Y-%m-%d %H:%M", then)


def _cut(column: str, cell: str) -> str:
    width = WIDEST.get(column)
    return cell if width is None or len(cell) <= width else cell[: width - 1] + "…"


def _html_row(one: Ran) -> str:
    colour = ";color:#c62828" if one.status else ""
    cells = (f'<td style="{_TABLE_STYLE}{colour}">{html.escape(cell)}</td>' for cell in _cells(one))
    return f"<tr>{''.join(cells)}</tr>"
