"""A cell's output as stream text: live, bounded, and the same in the end as on a terminal."""

from __future__ import annotations

import math
import time
from typing import Protocol

from session_magics.shell import Cell
from session_magics.text import Append, LineModel, Rewrite

LIMIT = 2_000_000
"""Bytes of a cell's output that are shown; of more, the first and the last half."""
BATCH = 0.04
"""Seconds between two messages: fast enough for the eye, and 25 a second for a front end."""
FREE_MESSAGES = 400
"""Messages at that pace; after them the pace halves every SLOWER messages, so that a cell that prints for hours stays
below the thousand messages that slow clients can be behind (they lose what comes beyond two thousand)."""
SLOWER = 40
LONGEST_GAP = 60.0
REWRITE_BYTES_PER_SECOND = 2_000_000
"""Pace of rewriting all that is shown, which a progress bar asks for with every frame."""
LINE_START_WITHIN = 4096
"""Bytes into the last half in which a line's beginning is looked for, so as to begin with a whole line."""


class Writer(Protocol):
    """Puts text into the output of one notebook cell."""

    live: bool
    """Whether text appears at once; where it does not, it is written once, at the end."""
    clearable: bool
    """Whether all that the cell shows is ours, so that it may be cleared."""

    def append(self, text: str) -> None:
        """Add text."""

    def rewrite(self, text: str) -> None:
        """Put text in place of all that was shown."""

    def notice(self, line: str) -> None:
        """Show a line of ours beside the output."""


class CellOutput:
    """A Sink that reads the log and writes text: by batches while the command runs, the rest at its end."""

    def __init__(self, writer: Writer, *, limit: int = LIMIT, rows: int = 24) -> None:
        self._writer, self._half, self._rows = writer, limit // 2, rows
        self._limit = limit
        self._model = LineModel(rows)
        self._position: int | None = None
        self._next = -math.inf
        self._messages = 0
        self._written = ""
        self._held = False

    def due(self, now: float) -> float:
        """See Sink."""
        return self._next

    def advance(self, cell: Cell, upto: int) -> None:
        """See Sink. Beyond the first half nothing is shown before the end."""
        assert cell.begin is not None
        self._feed(cell, min(upto, cell.begin + self._half))
        if self._writer.live:
            self._emit()

    def finish(self, cell: Cell, end: int) -> None:
        """See Sink."""
        assert cell.begin is not None
        begin = cell.begin
        if end - begin <= self._limit:
            self._feed(cell, end)
            self._model.finish()
            self._emit_last()
            return
        self._feed(cell, begin + self._half)
        self._model.finish()
        self._emit_last()
        start = self._line_start(cell, end - self._half)
        missing = start - (begin + self._half)
        tail = LineModel(self._rows)
        for _, data in cell.log.read(start, end):
            tail.feed(data)
        tail.finish()
        joint = "" if self._written.endswith("\n") or not self._written else "\n"
        where = f"%session tail {cell.session} has them"
        self._writer.append(f"{joint}… {missing:,} bytes not shown: {where} …\n{tail.text()}")

    def notice(self, line: str) -> None:
        """See Sink."""
        self._writer.notice(line)

    def _feed(self, cell: Cell, upto: int) -> None:
        position = cell.begin if self._position is None else self._position
        assert position is not None
        for offset, data in cell.log.read(position, upto):
            self._model.feed(data)
            position = offset + len(data)
        self._position = max(position, upto)

    def _line_start(self, cell: Cell, start: int) -> int:
        """The beginning of the first whole line after ``start``, or else of a character."""
        data = cell.log.bytes(start, start + LINE_START_WITHIN)
        line = data.find(b"\n") + 1
        if line:
            return start + line
        return start + next((at for at, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)

    def _emit(self) -> None:
        change = self._model.take()
        if change is None:
            return
        if self._held or (isinstance(change, Rewrite) and not self._writer.clearable):
            self._held = True  # what is shown cannot be taken back: the rest waits for the end
            return
        self._write(change)

    def _write(self, change: Append | Rewrite) -> None:
        size = 0
        if isinstance(change, Append):
            self._writer.append(change.text)
            self._written = self._written[-1:] + change.text if self._writer.clearable else self._written + change.text
            self._messages += 1
        else:
            self._writer.rewrite(change.text)
            self._written = change.text[-1:]
            self._messages += 2
            size = len(change.text)
        slower = max(0, self._messages - FREE_MESSAGES) // SLOWER
        gap = max(min(LONGEST_GAP, BATCH * 2**slower), size / REWRITE_BYTES_PER_SECOND)
        self._next = time.monotonic() + gap

    def _emit_last(self) -> None:
        change = self._model.take()
        if not self._held:
            if change is not None:
                self._write(change)
            return
        final = self._model.text()
        if final.startswith(self._written):
            self._writer.append(final[len(self._written) :])
            return
        common = 0  # lines that stand already
        shown, whole = self._written.split("\n"), final.split("\n")
        while common < min(len(shown), len(whole)) - 1 and shown[common] == whole[common]:
            common += 1
        self._writer.append("\n" + "\n".join(whole[common:]))
