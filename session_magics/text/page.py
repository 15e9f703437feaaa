"""The lines a program has written, and the cursor that edits the last of them.

Lines are as long as the program makes them: nothing wraps. The last ``rows`` lines are the *window*, where the
cursor moves; lines above it are *frozen*. One code point is one cell, also where a terminal would use none or two.
"""

from __future__ import annotations

from itertools import groupby

from session_magics.text.escapes import NUMBER_LIMIT, RESET, parse_styled, shift

BLOCK = 1 << 16
"""Characters up to which frozen text is joined: big enough that the objects weigh nothing, small to copy."""

PARTS = 1 << 14
"""Collected pieces at which they are cut into lines though nobody looks: each weighs 60 bytes more than its text."""


class Line:
    """One line of the window: a rendered string, read into cells only when something edits it.

    ``raw`` is the rendered string or None if the cells are newer. A style that is still on at its end is in ``open``.
    """

    __slots__ = ("_cells", "_styles", "open", "raw")

    def __init__(self, raw: str = "", opened: str = "") -> None:
        self.raw: str | None = raw
        self.open = opened
        self._cells: str | None = None
        self._styles: list[str] | None = None

    def __len__(self) -> int:
        """Number of cells."""
        return len(self._parsed())

    def splice(self, start: int, stop: int, text: str, style: str = "") -> None:
        """Replace the cells from start to stop by text; blanks fill a gap before start."""
        cells = self._parsed()
        padding = max(start - len(cells), 0)
        if padding:
            if not text:
                return
            start, text = len(cells), " " * padding + text
        if style and self._styles is None:
            self._styles = [""] * len(cells)
        if self._styles is not None:
            self._styles[start:stop] = [""] * padding + [style] * (len(text) - padding)
        self._cells = cells[:start] + text + cells[stop:]
        self.raw = None

    def render(self, *, closed: bool) -> str:
        """Return the line as text with its styles; closed ends in the default style."""
        raw = self._render() if self.raw is None else self.raw
        return raw + RESET if closed and self.open else raw

    def _parsed(self) -> str:
        if self._cells is None:
            raw = self.raw or ""
            if "\x1b" in raw:
                runs = list(parse_styled(raw))
                self._cells = "".join(text for _, text in runs)
                self._styles = [style for style, text in runs for _ in text]
            else:
                self._cells = raw
        return self._cells

    def _render(self) -> str:
        cells = self._cells or ""
        self.open = ""
        if self._styles is None:
            self.raw = cells
            return cells
        parts: list[str] = []
        at = 0
        for style, group in groupby(self._styles):
            end = at + len(list(group))
            parts += shift(self.open, style), cells[at:end]
            self.open, at = style, end
        self.raw = "".join(parts)
        return self.raw


class Page:
    """Text under a cursor. ``pen`` is the style of what is written next; every change of text comes by a method.

    Most output is only ever appended. While it is (``_appending``: the cursor is at the end of the last line, which
    has no cells yet), text is collected rendered in ``_parts`` and cut into lines once, in ``_settle``.
    """

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self.pen = ""
        self._saved = (0, 0, "")
        self.clear()

    def clear(self, opened: str = "") -> None:
        """Drop all lines, frozen ones too; the cursor is at the start, in a style that was left on."""
        self._blocks: list[str] = []
        self.frozen_size = 0
        self._lines = [Line("", opened)]
        self._parts: list[str] = []
        self._open = opened
        self._row = self._column = 0
        self._appending = True

    def drop(self) -> None:
        """Drop all lines; writing goes on behind them, as if nothing were before."""
        self._settle()
        self.clear(self._lines[-1].open)

    def drop_frozen(self) -> None:
        """Drop the lines above the window."""
        self._settle()
        self._blocks = []
        self.frozen_size = 0

    def frozen(self, since: int = 0) -> str:
        """Return the frozen text from an offset (in characters) on."""
        missing = self.frozen_size - since
        blocks: list[str] = []
        for block in reversed(self._blocks):
            if missing <= 0:
                break
            blocks.append(block[-missing:])
            missing -= len(block)
        return "".join(reversed(blocks))

    def window(self, *, closed: bool) -> str:
        """Return the text of the window; closed ends in the default style."""
        self._settle()
        *lines, last = self._lines
        return "".join([line.render(closed=True) + "\n" for line in lines]) + last.render(closed=closed)

    @property
    def at_end(self) -> bool:
        """Whether the cursor is known to be at the end of the text: there is nothing to erase after it."""
        return self._appending

    def write(self, text: str) -> None:
        """Write text, which may contain LF and TAB, at the cursor over what is there."""
        while not self._appending:
            segment, newline, text = text.partition("\n")
            if segment:
                self._line().splice(self._column, self._column + len(segment), segment, self.pen)
                self._column += len(segment)
            if not newline:
                return
            self._next_line()
        if not self.pen:
            if self._open and text:
                self._parts.append(RESET)
                self._open = ""
            self._parts.append(text)
        else:
            self._append_styled(text)
        if len(self._parts) > PARTS:
            self._settle()

    def carriage_return(self) -> None:
        """Move the cursor to column 0."""
        self._edit()
        self._column = 0

    def move(self, *, rows: int = 0, columns: int = 0) -> None:
        """Move the cursor within the window; below its last line there may be lines that do not exist yet."""
        self._edit()
        self._row = min(max(self._row + rows, 0), self._rows - 1)
        self._column = min(max(self._column + columns, 0), max(self._column, NUMBER_LIMIT))

    def place(self, *, row: int | None = None, column: int | None = None) -> None:
        """Put the cursor on a row of the window, a column, or both, counted from 0."""
        self._edit()
        if row is not None:
            self._row = min(max(row, 0), self._rows - 1)
        if column is not None:
            self._column = max(column, 0)

    def save(self) -> None:
        """Remember cursor and pen."""
        self._edit()
        self._saved = (self._row, self._column, self.pen)

    def restore(self) -> None:
        """Bring cursor and pen back to where ``save`` found them, at first the start of the window."""
        self._edit()
        self._row, self._column, self.pen = self._saved

    def erase_line(self, mode: int) -> None:
        """Erase in the line: 0 from the cursor on, 1 up to it, 2 all."""
        if mode == 0 and self._appending:
            return
        self._edit()
        if self._row >= len(self._lines):
            return
        line = self._lines[self._row]
        if mode == 0:
            line.splice(self._column, len(line), "")
        elif mode == 2 or self._column + 1 >= len(line):
            line.splice(0, len(line), "")
        elif mode == 1:
            line.splice(0, self._column + 1, " " * (self._column + 1))

    def erase_below(self) -> None:
        """Erase from the cursor to the end of the window; lines below it cease to exist."""
        self.erase_line(0)
        if not self._appending:
            del self._lines[self._row + 1 :]

    def erase_above(self) -> None:
        """Erase from the start of the window up to the cursor."""
        self._edit()
        for row in range(min(self._row, len(self._lines))):
            self._lines[row] = Line()
        self.erase_line(1)

    def delete_cells(self, count: int) -> None:
        """Take cells out at the cursor; the rest of the line moves left."""
        self._edit()
        if self._row < len(self._lines):
            self._lines[self._row].splice(self._column, self._column + count, "")

    def insert_cells(self, count: int) -> None:
        """Put blanks in at the cursor; the rest of the line moves right."""
        self._edit()
        if self._row < len(self._lines) and self._column < len(self._lines[self._row]):
            self._lines[self._row].splice(self._column, self._column, " " * count)

    def erase_cells(self, count: int) -> None:
        """Make cells blank from the cursor on."""
        self._edit()
        if self._row < len(self._lines):
            line = self._lines[self._row]
            blanks = " " * count if self._column + count < len(line) else ""
            line.splice(self._column, self._column + count, blanks)

    def delete_lines(self, count: int) -> None:
        """Take lines out from the cursor's on; those below move up."""
        self._edit()
        del self._lines[self._row : self._row + count]
        self._lines = self._lines or [Line()]
        self._column = 0

    def insert_lines(self, count: int) -> None:
        """Put empty lines in before the cursor's; those that no longer fit in the window are lost."""
        self._edit()
        if self._row < len(self._lines):
            self._lines[self._row : self._row] = [Line() for _ in range(min(count, self._rows))]
            del self._lines[self._rows :]
        self._column = 0

    def _append_styled(self, text: str) -> None:
        """Collect text in a style other than the default; empty lines get no sequences."""
        parts = self._parts
        for number, line in enumerate(text.split("\n")):
            if number:
                parts.append(RESET + "\n" if self._open else "\n")
                self._open = ""
            if line:
                if self._open != self.pen:
                    parts.append(shift(self._open, self.pen))
                    self._open = self.pen
                parts.append(line)

    def _settle(self) -> None:
        """Cut collected text into lines and freeze what leaves the window."""
        if not self._parts:
            return
        last = self._lines.pop()
        # At most `rows` cuts: all that is above the new window stays one string.
        lines = ((last.raw or "") + "".join(self._parts)).rsplit("\n", self._rows)
        self._parts = []
        if len(lines) > self._rows:
            self._freeze(len(self._lines))
            self._freeze_text(lines.pop(0) + "\n")
        self._lines += [Line(line) for line in lines]
        self._lines[-1].open = self._open
        self._freeze(len(self._lines) - self._rows)

    def _edit(self) -> None:
        """Leave off appending: lines and cursor are true from here on."""
        if self._appending:
            self._settle()
            self._appending = False
            self._row = len(self._lines) - 1
            self._column = len(self._lines[-1])

    def _line(self) -> Line:
        """The cursor's line; it and the lines above it are made if they do not exist yet."""
        while len(self._lines) <= self._row:
            self._lines.append(Line())
        return self._lines[self._row]

    def _next_line(self) -> None:
        self._row += 1
        self._column = 0
        self._line()
        if len(self._lines) > self._rows:
            self._freeze(1)
            self._row -= 1
        if self._row == len(self._lines) - 1 and not len(self._lines[-1]):
            self._lines[-1] = Line()
            self._open = ""
            self._appending = True

    def _freeze(self, count: int) -> None:
        if count > 0:
            self._freeze_text("".join([line.render(closed=True) + "\n" for line in self._lines[:count]]))
            del self._lines[:count]

    def _freeze_text(self, text: str) -> None:
        self.frozen_size += len(text)
        if self._blocks and len(self._blocks[-1]) < BLOCK:
            self._blocks[-1] += text
        else:
            self._blocks.append(text)
