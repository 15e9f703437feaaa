"""The screen that a recording begins with, where its program had drawn one before."""

from __future__ import annotations

from session_magics.text.modes import Modes
from session_magics.text.screen import SNAPSHOT_BYTES, picture


def opening(data: bytes, size: tuple[int, int]) -> bytes:
    """What a fresh terminal of (rows, columns) has to be sent to show what one shows after a program's output."""
    modes = Modes()
    modes.see(data)
    shown = picture(data[-SNAPSHOT_BYTES:], size, behind=False, returns=False)
    lines = "\r\n".join(shown.lines).rstrip("\r\n")
    margins = f"\x1b[{shown.margins[0] + 1};{shown.margins[1] + 1}r" if shown.margins else ""
    place = f"\x1b[{shown.row + 1};{shown.column + 1}H"
    alternate = "\x1b[?1049h" if modes.alternate else ""
    return f"{alternate}\x1b[H{lines}{margins}{place}{shown.pen}".encode() + modes.enter()
