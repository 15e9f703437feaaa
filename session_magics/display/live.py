"""A cell's output while its command runs: text first, a terminal once it takes longer, text again at the end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from session_magics.display.cell import CellOutput, Writer
from session_magics.display.rich import Piece, Rich, joined, replaced
from session_magics.shell import Cell

PATIENCE = 0.5
"""Seconds for which a cell is text: most commands end before, and their output never needs to change its form."""
SILENT_PATIENCE = 2.0
"""The same for a command that has printed nothing: an empty terminal is of use to those who wait longer."""
ANSWER_LIMIT = 1.5
"""Seconds for a page to say that it has a terminal; after them the cell stays text. The first one of a page is slow."""
_DRAWS = re.compile(rb"\x1b\[(?:\?(?:\d+;)*(?:47|1047|1049)h|\d*;?\d*[Hf]|\d*[ABd])")
"""Switching to the alternate screen, or moving the cursor up, down or to a place."""
_LOOK_BYTES = 65536


class Screen(Protocol):
    """A terminal that shows the output from the cell's beginning on."""

    @property
    def answered(self) -> bool:
        """Whether a page has it, though it need not be in sight yet."""

    def appear(self) -> None:
        """Be displayed below the cell."""

    def vanish(self) -> None:
        """Be closed; whoever displayed it puts something else there."""


class Curtain:
    """A Writer that can hold back what it is given, and show all of it later."""

    live = True
    clearable = True

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._pieces: list[Piece] = []
        self._notices: list[str] = []
        self.down = False

    def append(self, text: str) -> None:
        """See Writer."""
        self._pieces.append(text)
        if not self.down:
            self._writer.append(text)

    def rewrite(self, pieces: Sequence[Piece]) -> None:
        """See Writer."""
        self._pieces = list(pieces)
        if not self.down:
            self._writer.rewrite(pieces)

    def display(self, rich: Rich, *, again: bool = False) -> None:
        """See Writer. Nothing of it is held back: it stands below what takes the text's place."""
        replaced(self._pieces, rich) if again else self._pieces.append(rich)
        self._writer.display(rich, again=again)

    def notice(self, line: str) -> None:
        """See Writer."""
        if self.down:
            self._notices.append(line)
        else:
            self._writer.notice(line)

    def lower(self) -> None:
        """Take all out of sight; displays come back with ``show_displays``."""
        self.down = True
        if self._pieces:
            self._writer.rewrite([])

    def show_displays(self) -> None:
        """Show the displays below what has taken the text's place, but run no JavaScript twice."""
        for piece in self._pieces:
            if isinstance(piece, Rich) and not piece.runs:
                self._writer.display(piece)

    def rise(self) -> None:
        """Show all there is, in place of whatever is there; JavaScript, whose output was cleared, runs once more."""
        self.down = False
        self._writer.rewrite(joined(self._pieces))
        for line in self._notices:
            self._writer.notice(line)
        self._notices.clear()


class LiveOutput:
    """A Sink: see the module. ``screen`` makes a cell's terminal after ``patience`` seconds; None: it cannot be."""

    def __init__(
        self,
        cell: Cell,
        output: CellOutput,
        curtain: Curtain,
        screen: Callable[[Cell], Screen | None],
        *,
        patience: float = PATIENCE,
    ) -> None:
        self._cell, self._output, self._curtain = cell, output, curtain
        self._make, self._patience = screen, patience
        self._begun = time.monotonic()
        self._printed = False
        self._screen: Screen | None = None
        self._asked: float | None = None
        self._looked = 0

    def due(self, now: float) -> float:
        """See Sink."""
        due = self._output.due(now)
        return min(due, now + PATIENCE) if self._asked is None or not self._curtain.down else due

    def advance(self, cell: Cell, upto: int) -> None:
        """See Sink."""
        self._printed = True
        now = time.monotonic()
        if now >= self._output.due(now):
            self._output.advance(cell, upto)
        if self._asked is None and (now - self._begun >= self._patience or self._draws(cell, upto)):
            self._ask(cell, now)
        self._appear()

    def finish(self, cell: Cell, end: int) -> None:
        """See Sink."""
        self._output.finish(cell, end)
        self.close()

    def notice(self, line: str) -> None:
        """See Sink."""
        self._output.notice(line)

    def close(self) -> None:
        """Have text instead of the terminal, also where the cell came to no end; idempotent."""
        if self._curtain.down:
            self._curtain.rise()
        if self._screen is not None:
            self._screen.vanish()
            self._screen = None

    def at_hand(self, asks: bool) -> bool:
        """Whether the person types into the terminal itself, or is about to; see Foreground."""
        now = time.monotonic()
        patience = self._patience if self._printed else SILENT_PATIENCE
        if self._asked is None and self._cell.begin is not None and (asks or now - self._begun >= patience):
            self._ask(self._cell, now)
        self._appear()
        waiting = self._screen is not None and self._asked is not None and now - self._asked < ANSWER_LIMIT
        return self._curtain.down or waiting

    def _draws(self, cell: Cell, upto: int) -> bool:
        begin = max(self._looked, cell.begin or 0, upto - _LOOK_BYTES)
        self._looked = max(begin, upto - 16)  # a sequence may be cut
        return _DRAWS.search(cell.log.bytes(begin, upto)) is not None

    def _ask(self, cell: Cell, now: float) -> None:
        self._asked = now
        self._screen = self._make(cell)

    def _appear(self) -> None:
        if self._screen is not None and not self._curtain.down and self._screen.answered:
            self._curtain.lower()
            self._screen.appear()
            self._curtain.show_displays()
