"""The output of a terminal program as text that can be added to a page, piece by piece.

A notebook cell can append to what it shows, or clear it and show something else. ``LineModel`` takes the bytes as
they come, resolves what a terminal would do with them, and says which of the two to do.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from session_magics.text.escapes import has_c1, parse_csi, restyle, split, strip_styles
from session_magics.text.page import Page

__all__ = ["Append", "Change", "LineModel", "Rewrite", "plain", "strip_styles"]

STEP = 1 << 18
"""Bytes resolved at once: pieces of a larger feed would cost several times its size in memory."""
_CONTROL_BYTES = bytes({*range(32), 127} - {9, 10})
_ALTERNATE_SCREEN = {47, 1047, 1049}


@dataclass(frozen=True)
class Append:
    """``text`` is to be added to what was taken so far."""

    text: str


@dataclass(frozen=True)
class Rewrite:
    """All that was taken so far is to be replaced by ``text``."""

    text: str


Change = Append | Rewrite


class LineModel:
    """Lines of text made of a terminal's bytes; the result does not depend on how the bytes are cut into feeds.

    LF begins a new line (the PTY has ONLCR off), nothing wraps, and only the last ``rows`` lines can be edited. Text
    contains LF, TAB, printable characters, and SGR sequences where the style changes; every line but the unfinished
    last one ends in the default style, and after ``finish`` that one too. What programs do on the alternate screen
    leaves no trace. Not for use by several threads at once.
    """

    def __init__(self, rows: int = 24) -> None:
        self._page = Page(rows)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._alternate = False
        self._finished = False
        self._window: str | None = None
        self._taken_frozen = 0
        self._taken_window = ""

    def feed(self, data: bytes) -> None:
        """Add bytes; characters and sequences may be cut anywhere."""
        self._window = None
        self._finished = False
        for start in range(0, len(data), STEP):
            self._feed(data[start : start + STEP])

    def finish(self) -> None:
        """End the input: a cut-off character becomes U+FFFD, a cut-off sequence nothing. Feeding may go on."""
        self._resolve(self._pending + self._decoder.decode(b"", final=True))
        self._decoder.reset()
        self._pending = ""
        self._window = None
        self._finished = True

    def drop(self) -> None:
        """Forget the text, all of which was taken: what follows cannot change it, and is added to it."""
        self._page.drop()
        self._window = None
        self._taken_frozen, self._taken_window = 0, ""

    def text(self) -> str:
        """Return the whole text as it is now."""
        window = self._window_text()
        return self._page.frozen() + window

    @property
    def size(self) -> int:
        """Characters of ``text()``; cheap."""
        window = self._window_text()
        return self._page.frozen_size + len(window)

    def take(self) -> Change | None:
        """Return what to do to make what was taken so far the text as it is now; None if it is."""
        window = self._window_text()
        taken = self._taken_window
        fresh = self._page.frozen(self._taken_frozen) + window
        self._taken_frozen, self._taken_window = self._page.frozen_size, window
        if fresh == taken:
            return None
        if fresh.startswith(taken):
            return Append(fresh[len(taken) :])
        return Rewrite(self.text())

    def _window_text(self) -> str:
        if self._window is None:
            self._window = self._page.window(closed=self._finished)
        return self._window

    def _feed(self, data: bytes) -> None:
        text = self._decoder.decode(data)
        if self._pending or self._alternate or b"\x1b" in data:
            self._resolve(self._pending + text)
            return
        if b"\r" in data:
            data, text = data.replace(b"\r\n", b"\n"), text.replace("\r\n", "\n")
        if len(data.translate(None, _CONTROL_BYTES)) < len(data) or has_c1(text):
            self._resolve(text)
        else:
            self._page.write(text)

    def _resolve(self, text: str) -> None:
        pieces, self._pending = split(text)
        page = self._page
        for at in range(0, len(pieces), 2):
            if at:
                control = pieces[at - 1]
                if control[-1] == "m" and not self._alternate:
                    page.pen = restyle(page.pen, control)
                elif control != "\x1b[K" or not page.at_end:  # grep and gcc put one beside every SGR
                    self._control(control)
            if pieces[at] and not self._alternate:
                page.write(pieces[at])

    def _control(self, control: str) -> None:
        if control == "\x1bc":
            self._alternate = False
            self._clear()
            self._page.pen = ""
            return
        csi = parse_csi(control)
        if csi is not None and csi[0] == "?" and csi[2] in "hl" and not _ALTERNATE_SCREEN.isdisjoint(csi[1]):
            self._alternate = csi[2] == "h"
        if self._alternate:
            return
        if csi is not None:
            if not csi[0]:
                self._move(csi[2], *[*csi[1], 0][:2])
                self._edit(csi[2], csi[1][0])
        elif control[0] == "\r":
            if control[-1] == "\n":
                self._page.write("\n")
            else:
                self._page.carriage_return()
        elif control[0] == "\b":
            self._page.move(columns=-len(control))
        elif control == "\x1b7":
            self._page.save()
        elif control == "\x1b8":
            self._page.restore()

    def _move(self, final: str, number: int, second: int) -> None:
        page, steps = self._page, max(number, 1)
        match final:
            case "A":
                page.move(rows=-steps)
            case "B":
                page.move(rows=steps)
            case "C":
                page.move(columns=steps)
            case "D":
                page.move(columns=-steps)
            case "E":
                page.move(rows=steps)
                page.place(column=0)
            case "F":
                page.move(rows=-steps)
                page.place(column=0)
            case "G":
                page.place(column=steps - 1)
            case "d":
                page.place(row=steps - 1)
            case "H" | "f":
                page.place(row=steps - 1, column=second - 1)
            case "s":
                page.save()
            case "u":
                page.restore()

    def _edit(self, final: str, number: int) -> None:
        page, count = self._page, max(number, 1)
        match final:
            case "K":
                page.erase_line(number)
            case "J" if number == 0:
                page.erase_below()
            case "J" if number == 1:
                page.erase_above()
            case "J" if number == 2:
                self._clear()
            case "J" if number == 3:
                self._rebase()
                page.drop_frozen()
            case "P":
                page.delete_cells(count)
            case "@":
                page.insert_cells(count)
            case "X":
                page.erase_cells(count)
            case "L":
                page.insert_lines(count)
            case "M":
                page.delete_lines(count)

    def _clear(self) -> None:
        self._rebase()
        self._page.clear()

    def _rebase(self) -> None:
        """Keep what was taken as a whole, as the frozen text that it is an offset into will go."""
        self._taken_window = self._page.frozen()[: self._taken_frozen] + self._taken_window
        self._taken_frozen = 0


def plain(data: bytes) -> str:
    """Return all of data resolved into text without styles."""
    model = LineModel()
    model.feed(data)
    model.finish()
    return strip_styles(model.text())
