"""A session's screen, drawn on a terminal as a whole: no byte of its history is repeated."""

from __future__ import annotations

from session_magics.log import LogReader
from session_magics.text.escapes import RESET, parse_styled, shift
from session_magics.text.fit import fit
from session_magics.text.modes import MODE_BYTES, Modes
from session_magics.text.screen import Picture

Size = tuple[int, int]

ANCHORS = (b"\x1b[?1049", b"\x1b[?47")
"""Programs that draw on the whole screen set their modes where they enter the alternate screen."""
ANCHOR_BYTES = 256 * 1024
"""Bytes around such a place that are looked at."""
BLOCK_BYTES = 1024 * 1024
"""Step of looking for it backwards; the whole of a log takes 30 ms."""
BEGIN, END = b"\x1b[?2026h\x1b[?25l", b"\x1b[?2026l"
"""Terminals that know it show what is between at once."""
PLAIN = b"\x1b[0m\x1b[r\x1b[?6l\x1b[4l"
"""No style, all rows scroll, rows count from the top, and nothing moves: as drawing needs it."""


def modes_at(log: LogReader, begin: int, end: int) -> Modes:
    """The modes that a program has set by the log offset ``end``, which ran from ``begin`` on."""
    begin = max(begin, log.start())
    recent = max(begin, end - MODE_BYTES)
    modes = Modes()
    anchor = _anchor(log, begin, recent)
    if anchor is not None:
        modes.see(log.bytes(max(begin, anchor - ANCHOR_BYTES), min(recent, anchor + ANCHOR_BYTES)))
    modes.see(log.bytes(recent, end))
    return modes


def _anchor(log: LogReader, begin: int, end: int) -> int | None:
    while end > begin:
        start = max(begin, end - BLOCK_BYTES)
        block = log.bytes(start, end)
        found = max(block.rfind(anchor) for anchor in ANCHORS)
        if found >= 0:
            return start + found
        end = start + max(map(len, ANCHORS)) if start > begin else begin
    return None


def draw(picture: Picture, size: Size, modes: Modes, before: Modes | None, *, scroll: bool) -> bytes:
    """What makes a terminal of this size show the picture, cut to it, and brings it into the program's modes.

    ``before``: the modes it is in; None: those of a fresh one. ``scroll``: what its main screen shows is the
    person's, and is to be found by scrolling back.
    """
    known = before is not None and before == modes and not (modes.inserts or modes.origin)
    out = [BEGIN]
    if before is not None and not known:
        out.append(before.leave())
    if modes.alternate and not known:
        if scroll and (behind := picture.behind) is not None and any(behind.lines):
            out += [_scrolled_up(size), PLAIN, _lines(behind, size), _at(behind, size, Modes())]
        out.append(b"\x1b[?1049h")
    elif scroll and not modes.alternate:
        out.append(_scrolled_up(size))
    out += [PLAIN, _lines(picture, size)]
    if not known:
        out.append(modes.enter())
    out += [resume(picture, size, modes), END]
    return b"".join(out)


def resume(picture: Picture, size: Size, modes: Modes) -> bytes:
    """What puts the cursor where the program has it, and all else that drawing has changed as it was."""
    out = b""
    if picture.margins is not None and len(picture.lines) == size[0]:
        out += b"\x1b[%d;%dr" % (picture.margins[0] + 1, picture.margins[1] + 1)
    out += _at(picture, size, modes) + RESET.encode()
    if picture.columns == size[1]:
        out += picture.last.encode("utf-8", "replace")  # no sequence but its writing leaves the cursor behind it
    out += shift("", picture.pen).encode()
    return out + (b"\x1b[?25h" if modes.cursor_shown else b"\x1b[?25l")


def notice(text: str, size: Size) -> bytes:
    """A line of ours on the last row, until the next drawing."""
    return b"\x1b[?25l\x1b[?6l\x1b[%d;1H\x1b[0;7m%b\x1b[0m\x1b[K" % (size[0], fit(f" {text} ", size[1]).encode())


def _scrolled_up(size: Size) -> bytes:
    return b"\x1b[%d;1H" % size[0] + b"\n" * size[0]


def _first_row(picture: Picture, size: Size) -> int:
    """The first row that is shown of a picture that is too high: the cursor is to be seen."""
    return max(0, min(picture.row - size[0] + 1, len(picture.lines) - size[0]))


def _at(picture: Picture, size: Size, modes: Modes) -> bytes:
    row = picture.row - _first_row(picture, size)
    if modes.origin and picture.margins is not None:
        row -= picture.margins[0]
    return b"\x1b[%d;%dH" % (max(0, min(row, size[0] - 1)) + 1, min(picture.column, size[1] - 1) + 1)


def _lines(picture: Picture, size: Size) -> bytes:
    first = _first_row(picture, size)
    shown = picture.lines[first : first + size[0]]
    rows = [f"\x1b[{row};1H\x1b[K{_cut(line, size[1])}" for row, line in enumerate(shown, 1)]
    below = f"\x1b[{len(shown) + 1};1H\x1b[J" if len(shown) < size[0] else ""
    return ("".join(rows) + below).encode("utf-8", "replace")


def _cut(line: str, width: int) -> str:
    """The beginning of a line with styles."""
    if "\x1b" not in line:
        return _fitted(line, width)[0]
    parts: list[str] = []
    opened = ""
    for style, text in parse_styled(line):
        text, width = _fitted(text, width)
        parts += shift(opened, style), text
        opened = style
        if width <= 0:
            break
    return "".join(parts) + shift(opened, "")


def _fitted(text: str, width: int) -> tuple[str, int]:
    """As much of the text as has room, and the room that is left."""
    if text.isascii():
        return text[:width], max(0, width - len(text))
    from wcwidth import wcwidth  # the emulator's own dependency

    for at, char in enumerate(text):
        columns = max(0, wcwidth(char))
        if columns > width:
            return text[:at], 0
        width -= columns
    return text, width
