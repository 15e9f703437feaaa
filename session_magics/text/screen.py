"""What a terminal of a given size shows after a program's bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any
from unicodedata import combining

from session_magics.errors import SessionError
from session_magics.text import plain
from session_magics.text.escapes import parse_csi, restyle, shift, split, strip_styles

SNAPSHOT_BYTES = 1 << 16
"""Bytes before the end that are looked at: some 30 full screens of 24x80, and a terminal emulator written in
Python takes about 0.1 s for them."""

_ALTERNATE_SCREEN = {47, 1047, 1049}
_MODES = {"": {4}, "?": {6, 7}}
"""Modes that change where characters go: insert; origin, wrapping. The emulator would change its size for others."""
_PARAMETERS = dict.fromkeys("@ABCDEFGJKLMPXade`g'", 1) | {"H": 2, "f": 2, "r": 2}
"""Sequences that move or edit, and how many numbers the emulator takes: it raises TypeError for more."""
_MODE_LIMITS = {"J": 3, "K": 2}
"""Greatest first number of sequences for which it is a choice: the emulator fails on others."""
_ESCAPES = {"\x1b7", "\x1b8", "\x1bD", "\x1bE", "\x1bM", "\x1bH"}
_CONTROLS = frozenset(map(chr, range(32)))
_DEFAULT = "default"
"""The emulator's own word for no colour, which is no style here."""
_NEWLINE_MODE = "\x1b[20h"
"""LF returns to column 0."""


def snapshot(data: bytes, size: tuple[int, int]) -> str:
    """Return what ``styled`` does as plain text, without blanks at line ends."""
    lines = [line.rstrip() for line in strip_styles(styled(data, size)).split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines)


def styled(data: bytes, size: tuple[int, int]) -> str:
    """Return the screen of (rows, columns) after data, with SGR sequences, without blank lines at its end.

    Only the last ``SNAPSHOT_BYTES`` count. Bytes that the emulator fails on are shown as the last lines of plain text.
    Raises SessionError if pyte is not installed.
    """
    lines = list(picture(data, size, behind=False).lines)
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines)


@dataclass(frozen=True)
class Picture:
    """A screen: one string of text and SGR sequences for each row, and where the program would go on."""

    lines: tuple[str, ...]
    row: int
    """Of the cursor, counted from 0, as is its column."""
    column: int
    columns: int
    """How many there are in a row."""
    last: str
    """The character that has filled the cursor's row, if what is written next goes to the row below; else empty."""
    pen: str
    """The style of what is written next."""
    margins: tuple[int, int] | None
    """First and last row of what scrolls; None: all of them."""
    behind: Picture | None
    """The main screen, where this is the alternate one and it is known that the program came from there."""


def picture(data: bytes, size: tuple[int, int], *, behind: bool = True, returns: bool = True) -> Picture:
    """Return the screen as ``styled`` does, with the cursor and what else a terminal needs to go on from there.

    Args:
        data: the program's output.
        size: rows and columns.
        behind: whether to look for the main screen behind the alternate one, too; it takes as long again.
        returns: whether LF goes to column 0, as in a shell session, whose PTY has ONLCR off.
    """
    try:
        import pyte  # takes 50 ms, and few processes need it
        from wcwidth import wcwidth  # pyte's own dependency
    except ImportError as error:
        raise SessionError("snapshots need pyte, which is not installed: pip install pyte") from error
    rows, columns = size
    data = _aligned_tail(data)
    shown: Picture | None = None
    screens = _screens(data.decode("utf-8", "replace"))
    for pieces in screens if behind else screens[-1:]:
        screen = pyte.Screen(columns, rows)
        try:
            needed = _still_there(pieces, rows, "\n" if returns else "\r\n")
            _emulate(pyte.Stream(screen), screen, [_NEWLINE_MODE * returns, *needed], wcwidth)
            shown = _taken(screen, size, wcwidth, behind=shown)
        except Exception:  # the emulator asserts and indexes its way through odd input; any error means the same here
            lines = [line.rstrip() for line in plain(data).split("\n")[-rows:]]
            column = min(len(lines[-1]), columns - 1)
            lines, row = [*lines, *[""] * (rows - len(lines))], len(lines) - 1
            shown = Picture(tuple(lines), row, column, columns, last="", pen="", margins=None, behind=None)
    assert shown is not None
    return shown


def _taken(screen: Any, size: tuple[int, int], width: Callable[[str], int], behind: Picture | None) -> Picture:
    rows, columns = size
    # Not `screen.display`: it fails on half a wide character, the other half of which was written over.
    cells = [[screen.buffer[row][column] for column in range(columns)] for row in range(rows)]
    lines = tuple(_render([(cell.data, cell.fg) for cell in line], width) for line in cells)
    cursor, margins = screen.cursor, screen.margins
    pen = "" if cursor.attrs.fg == _DEFAULT else cursor.attrs.fg
    region = (margins.top, margins.bottom) if margins is not None else None
    row, column, last = min(cursor.y, rows - 1), min(cursor.x, columns - 1), ""
    if cursor.x >= columns:
        column -= not cells[row][column].data  # the second half of a wide character is an empty cell
        last = _render([(cell.data, cell.fg) for cell in cells[row][column:]], width) or " "
    return Picture(lines, row, column, columns, last, pen, region, behind)


def _emulate(stream: Any, screen: Any, pieces: list[str], width: Callable[[str], int]) -> None:
    """Have the emulator take in the pieces. It carries our styles as its colours, of which it knows fewer."""
    # It drops the rest of a text after a character without width that is no accent (a joiner, an emoji's variation
    # selector).
    lost = {ord(char) for char in set("".join(pieces)) - _CONTROLS if width(char) <= 0 and not combining(char)}
    drop = dict.fromkeys(lost)
    for piece in pieces:
        if piece.startswith("\x1b[") and piece[-1] == "m":
            pen = screen.cursor.attrs
            screen.cursor.attrs = pen._replace(fg=restyle("" if pen.fg == _DEFAULT else pen.fg, piece) or _DEFAULT)
        elif piece:
            if piece.startswith("\x1b[") and piece[-1] == "M":
                for row in range(screen.lines):
                    screen.buffer[row]  # it moves up only rows that exist, which one that was looked at does
            stream.feed(piece.translate(drop))


def _render(cells: list[tuple[str, str]], width: Callable[[str], int]) -> str:
    """One row as text with the styles of its cells, without default blanks at its end."""
    shown = list(_fill(cells, width))
    while shown and shown[-1] == (" ", _DEFAULT):
        shown.pop()
    parts: list[str] = []
    opened = ""
    for fg, run in groupby(shown, key=itemgetter(1)):
        style = "" if fg == _DEFAULT else fg
        parts += shift(opened, style), "".join(text for text, _ in run)
        opened = style
    return "".join(parts) + shift(opened, "")


def _fill(cells: list[tuple[str, str]], width: Callable[[str], int]) -> Iterator[tuple[str, str]]:
    """Yield what each cell shows; half of a wide character, the other half of which was written over, is a blank."""
    inside = False
    for (cell, style), (after, _) in zip(cells, [*cells[1:], ("", "")], strict=True):
        if inside and not cell:
            inside = False
            continue
        inside = bool(cell) and width(cell[0]) == 2
        yield (cell if cell and not (inside and after) else " "), style


def _aligned_tail(data: bytes) -> bytes:
    """The end of data from the first place where neither a character nor a sequence can be half over."""
    if len(data) <= SNAPSHOT_BYTES:
        return data
    tail = data[-SNAPSHOT_BYTES:]
    newline, escape = tail.find(b"\n"), tail.find(b"\x1b")
    if escape >= 0 and (newline < 0 or escape < newline):
        return tail[escape:]
    if newline >= 0:
        return tail[newline + 1 :]
    return tail.lstrip(bytes(range(0x80, 0xC0)))


def _screens(text: str) -> list[list[str]]:
    """The pieces of text that decide what the screen shows, in a form that the emulator can read.

    Where the alternate screen is shown, those of the main one come before, if it is known to have been there. The
    emulator knows no alternate screen, so that is resolved here: entered, it is empty; left, the main one is as
    before (or empty, if it was entered before text begins). What a full clear has erased is left out; the style, the
    rows that scroll and the modes stay.
    """
    pieces, _ = split(text)
    kept: list[str] = []
    main: list[str] | None = None
    cleared = home = False  # whether the last control was an erasure of the screen, or a move to its start
    for at in range(0, len(pieces), 2):
        if at:
            control = pieces[at - 1]
            csi = parse_csi(control)
            if csi is not None and csi[0] == "?" and csi[2] in "hl" and not _ALTERNATE_SCREEN.isdisjoint(csi[1]):
                if csi[2] == "h":
                    main, kept = (kept if main is None else main), []
                else:
                    kept, main = main or [], None
            elif control == "\x1bc":
                kept, main = [], None
            else:
                erases = csi == ("", [2], "J")
                homes = csi is not None and not csi[0] and csi[2] in "Hf" and max(csi[1][:2]) <= 1
                if (erases and home) or (homes and cleared):
                    kept = _settings(kept)
                cleared, home = erases, homes
                kept.append(_translate(control, csi))
        if pieces[at]:
            kept.append(pieces[at])
            cleared = home = False
    return [kept] if main is None else [main, kept]


def _settings(pieces: list[str]) -> list[str]:
    """What pieces leave behind on a screen that has been cleared; the cursor is at its start."""
    region = [piece for piece in pieces if piece.startswith("\x1b[") and piece[-1] == "r"][-1:]
    modes = {piece[:-1]: piece for piece in pieces if piece.startswith("\x1b[") and piece[-1] in "hl"}
    pen = ""
    for piece in pieces:
        if piece.startswith("\x1b[") and piece[-1] == "m":
            pen = restyle(pen, piece)
    return [*region, *modes.values(), shift("", pen)]


def _still_there(pieces: list[str], rows: int, line_end: str) -> list[str]:
    """The pieces without what has scrolled away for sure: most of what a program prints line by line.

    A screen of lines brings the cursor to the lowest row from anywhere, and another one moves all rows out.
    """
    wanted, at = 2 * rows + 1, len(pieces)
    while at and wanted > 0 and (_is_text(pieces[at - 1]) or pieces[at - 1][-1] == "m"):
        at -= 1
        wanted -= pieces[at].count(line_end)
    if wanted > 0:
        return pieces
    text, end = pieces[at], 0
    for _ in range(1 - wanted):
        end = text.index(line_end, end) + len(line_end)
    before = [*pieces[:at], text[:end]]
    return pieces if any(map(_lasts, before)) else [*_settings(before), text[end:], *pieces[at + 1 :]]


def _is_text(piece: str) -> bool:
    return piece[:1] != "\x1b"


def _lasts(piece: str) -> bool:
    """Whether a piece may change what text means long after it: margins, modes, tab stops, character sets."""
    return "\x0e" in piece if _is_text(piece) else piece[-1] in "rhlg" or piece == "\x1bH"


def _translate(control: str, csi: tuple[str, list[int], str] | None) -> str:
    """The control as the emulator takes it, or "" if it changes no character of the screen."""
    if csi is None:
        return control if control[0] != "\x1b" or control in _ESCAPES else ""
    marker, numbers, final = csi
    if final == "m":
        return control if not marker else ""
    if final in "hl":
        modes = [number for number in numbers if number in _MODES.get(marker, ())]
        return f"\x1b[{marker}{';'.join(map(str, modes))}{final}" if modes else ""
    if marker or numbers[0] > _MODE_LIMITS.get(final, numbers[0]):
        return ""
    count = _PARAMETERS.get(final, 0)
    return f"\x1b[{';'.join(map(str, numbers[:count]))}{final}" if count else ""
