"""The line under a cell: where its shell is now, how the command ended, how long it took."""

from __future__ import annotations

import html
import signal

from session_magics.display.cell import Writer
from session_magics.display.rich import Rich
from session_magics.listing import short_path
from session_magics.model import CellResult
from session_magics.text.amounts import fine_time

SIGNAL_BASE = 128
"""A shell's status of a command that a signal has ended is this and the signal's number."""
_LINE = (
    "font:12px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;"
    "white-space:pre-wrap;padding:0 8px;color:#7d8590"
)
_GOOD, _BAD = "#2f9e57", "#e0524d"
"""Readable on white and on black, as the colours of the page are not known."""


def show_status(result: CellResult, writer: Writer) -> None:
    """Show the line of a command that has ended. What is captured gets none: it is the command's own output."""
    if writer.live:
        writer.display(status_line(result.cwd, result.returncode, result.duration, lost=result.state == "lost"))


def status_line(
    directory: str, returncode: int, seconds: float, *, lost: bool = False, home: str | None = None
) -> Rich:
    """``returncode`` is as in CellResult; ``lost``: it is unknown. ``home`` is as in ``short_path``."""
    path = "".join(one if one.isprintable() else "�" for one in short_path(directory, home))
    parts = [path] if path else []
    how = "? unknown" if lost else _how(returncode)
    good = returncode == 0 and not lost
    shown = f'<span style="color:{_GOOD if good else _BAD}">{how}</span>'
    times = [] if lost else [fine_time(seconds)]  # nobody has seen its end
    markup = " · ".join([*map(html.escape, parts), shown, *times])
    return Rich({"text/html": f'<div style="{_LINE}">{markup}</div>', "text/plain": " · ".join([*parts, how, *times])})


def _how(returncode: int) -> str:
    if returncode == 0:
        return "✓ 0"
    if returncode < 0:  # the shell itself
        return f"✗ {_signal(-returncode) or returncode}"
    name = _signal(returncode - SIGNAL_BASE)
    return f"✗ {returncode} {name}" if name else f"✗ {returncode}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
