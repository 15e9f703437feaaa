"""A cell's output as stream text: live, bounded, and the same in the end as on a terminal."""

from __future__ import annotations

import codecs
import math
import time
from collections.abc import Sequence
from typing import Protocol

from session_magics.display.rich import Piece, Rich, replaced
from session_magics.display.shown import Shown
from session_magics.model import CellResult
from session_magics.shell import Cell
from session_magics.showing import FUNCTIONS_FILE, Mark, Marks
from session_magics.text import Append, LineModel, Rewrite

LIMIT = 2_000_000
"""Bytes of a cell's output that are shown; of more, the first and the last half."""
BATCH = 0.04
"""Seconds between two messages: fast enough for the eye, and 25 a second for a front end."""
FREE_MESSAGES = 400
"""Messages at that pace; after them the gap doubles every SLOWER messages, so that a cell that prints for days stays
below the thousand messages that slow clients can be behind (they lose what comes beyond two thousand)."""
SLOWER = 30
LAST_LIVE = 980
"""Messages after which all waits for the end; whoever prints without a pause gets there after a week."""
REWRITE_BYTES_PER_SECOND = 2_000_000
"""Pace of rewriting all that is shown, which a progress bar asks for with every frame."""
WHOLE_LINE_WITHIN = 4096
"""Bytes at both sides of what is left out in which the end of a line is looked for; a fourth of the half at most."""


class Writer(Protocol):
    """Puts text into the output of one notebook cell."""

    live: bool
    """Whether text appears at once; where it does not, it is written once, at the end."""
    clearable: bool
    """Whether all that the cell shows is ours, so that it may be cleared."""

    def append(self, text: str) -> None:
        """Add text."""

    def rewrite(self, pieces: Sequence[Piece]) -> None:
        """Put these in place of all that was shown; notices stay."""

    def display(self, rich: Rich, *, again: bool = False) -> None:
        """Add a display; ``again``: it takes the place of the one with its key."""

    def notice(self, line: str) -> None:
        """Show a line of ours beside the output."""


class CellOutput:
    """A Sink that reads the log and writes text: by batches while the command runs, the rest at its end."""

    def __init__(self, writer: Writer, *, limit: int = LIMIT, rows: int = 24) -> None:
        self._writer, self._half, self._rows = writer, limit // 2, rows
        self._limit, self._around = limit, max(4, min(WHOLE_LINE_WITHIN, limit // 8))  # a character has up to 4 bytes
        self.result: CellResult | None = None
        """How the command ended, once all its output is shown."""
        self._model = LineModel(rows)
        self._marks = Marks()
        self._shown: Shown | None = None
        self._clearable = writer.clearable
        self._pieces: list[Piece] = []  # what stands before the model's text, if it may have to be written again
        self._updates: dict[str, Rich] = {}  # by key, what is to be shown in an earlier one's place
        self._position: int | None = None
        self._head: int | None = None
        self._beyond: tuple[int, Marks] | None = None  # how far displays were looked for behind it
        self._lost = 0
        self._next = -math.inf
        self._messages = 0
        self._written: list[str] = []  # where it can be cleared, only the end of it
        self._held = False

    def due(self, now: float) -> float:
        """See Sink."""
        return self._next

    def advance(self, cell: Cell, upto: int) -> None:
        """See Sink. Beyond the first half nothing is shown before the end."""
        self._feed(cell, self._live_end(cell, upto))
        self._show_beyond(cell, upto)
        if self._writer.live:
            self._emit()

    def finish(self, cell: Cell, end: int) -> None:
        """See Sink."""
        begin = _begin(cell)
        self.result = cell.result
        if end == begin:
            return
        whole = end - begin <= self._limit
        head = end if whole else self._live_end(cell, end)
        self._feed(cell, head)
        if not whole:
            self._show_beyond(cell, end)
        self._model.feed(self._marks.rest())
        self._write_all()
        if not whole:
            self._add_tail(cell, head, end)
        if self._lost:
            self._writer.notice(f"{self._lost:,} bytes of the output are lost: the log had no room for them")

    def notice(self, line: str) -> None:
        """See Sink."""
        self._writer.notice(line)

    # ---- what is shown

    def _feed(self, cell: Cell, upto: int) -> None:
        position = _begin(cell) if self._position is None else self._position
        for offset, data in cell.log.read(position, upto):
            self._lost += offset - position
            self._take(cell, data)
            position = offset + len(data)
        self._lost += max(0, upto - position)
        self._position = max(position, upto)

    def _take(self, cell: Cell, data: bytes) -> None:
        """Feed the model, and show what a function of the shell wants to be shown here."""
        for part in self._marks.feed(data):
            if isinstance(part, Mark):
                self._show(cell, part)
            else:
                self._model.feed(part)

    def _show_beyond(self, cell: Cell, upto: int) -> None:
        """Show the displays in output of which the text waits for the end, or is not shown."""
        if self._head is None or not (cell.log.directory / FUNCTIONS_FILE).exists():
            return
        position, marks = self._beyond or (self._head, self._marks.copy())
        for offset, data in cell.log.read(position, upto):
            position = offset + len(data)
            for part in marks.feed(data):
                if isinstance(part, Mark):
                    self._show(cell, part)
        self._beyond = position, marks

    def _show(self, cell: Cell, mark: Mark) -> None:
        self._shown = self._shown or Shown(cell.log.directory)
        taken = self._shown.take(mark)
        if isinstance(taken, str):
            self._writer.notice(taken)
        elif taken is not None:
            rich, again = taken
            if again:
                replaced(self._pieces, rich)
                self._updates[rich.key] = rich
                return
            self._close_text()
            self._clearable = self._clearable and not rich.runs  # else it would run again with each frame of a bar
            self._pieces.append(rich)
            if self._writer.live:
                self._writer.display(rich)
                self._messages += 1

    def _close_text(self) -> None:
        """Write what stands before a display; text that follows cannot change it."""
        self._model.finish()
        if self._writer.live:
            self._emit_last()
        if (text := self._model.text()) and (self._writer.clearable or not self._writer.live):
            self._pieces.append(text)
        self._model, self._written, self._held = LineModel(self._rows), [], False

    def _live_end(self, cell: Cell, upto: int) -> int:
        """How much of the first half may be shown: when its border comes near, only whole lines."""
        if self._head is not None:
            return self._head
        border = _begin(cell) + self._half
        if upto < border - self._around:
            return upto
        stop = min(upto, border)
        data = cell.log.bytes(max(_begin(cell), stop - self._around), stop)
        line = data.rfind(b"\n") + 1
        at = max(stop - len(data) + line if line else stop - _incomplete(data), self._position or 0)
        if upto >= border:
            self._head = at
        return at

    def _add_tail(self, cell: Cell, head: int, end: int) -> None:
        """Write the last half, from a line's beginning if one is near, and say how much is between."""
        start = self._tail_start(cell, end)
        tail = LineModel(self._rows)
        for _, data in cell.log.read(start, end):
            tail.feed(data)
        tail.finish()
        joint = "" if not self._written or self._written[-1].endswith("\n") else "\n"
        dropped = cell.log.missing(head, start)
        rest = f"{dropped:,} of them the log has dropped" if dropped else f"%session tail {cell.session} has them"
        self._writer.append(f"{joint}… {start - head:,} bytes not shown: {rest} …\n{tail.text()}")

    def _tail_start(self, cell: Cell, end: int) -> int:
        start = end - self._half
        data = cell.log.bytes(start - 1, min(end, start + self._around))
        line = data.find(b"\n")
        if 0 <= line < len(data) - 1:
            return start + line
        ahead = data[1:5]
        only_rests = len(ahead) if len(ahead) < 4 else 0  # four in a row are no UTF-8
        return start + next((at for at, byte in enumerate(ahead) if byte & 0xC0 != 0x80), only_rests)

    # ---- how it is written

    def _emit(self) -> None:
        self._emit_updates()
        if self._held or self._messages >= LAST_LIVE:
            return
        change = self._model.take()
        if isinstance(change, Rewrite) and not self._clearable:
            self._held = True  # what is shown cannot be taken back: the rest waits for the end
        elif change is not None:
            self._write(change)

    def _emit_updates(self) -> None:
        for rich in self._updates.values():
            self._writer.display(rich, again=True)
        if self._updates:
            self._messages += len(self._updates)
            self._pause(sum(rich.size for rich in self._updates.values()))
        self._updates.clear()

    def _write_all(self) -> None:
        """Write what is not written yet; the command has ended."""
        if self._writer.live:
            self._emit_updates()
        else:
            for piece in self._pieces:
                self._writer.append(piece) if isinstance(piece, str) else self._writer.display(piece)
        self._model.finish()
        self._emit_last()

    def _write(self, change: Append | Rewrite) -> None:
        size = 0
        if isinstance(change, Append):
            self._writer.append(change.text)
            self._messages += 1
        else:
            pieces = [*self._pieces, *([change.text] if change.text else [])]
            self._writer.rewrite(pieces)
            self._messages += 1 + len(pieces)
            size = sum(len(piece) if isinstance(piece, str) else piece.size for piece in pieces)
        if self._clearable:
            self._written = [change.text[-1:]]
        else:
            self._written.append(change.text)
        self._pause(size)

    def _pause(self, size: int) -> None:
        """Have nothing written for a moment, which is longer after much was."""
        slower = max(0, self._messages - FREE_MESSAGES) // SLOWER
        gap = max(BATCH * 2**slower, size / REWRITE_BYTES_PER_SECOND)
        self._next = time.monotonic() + gap if self._messages < LAST_LIVE else math.inf

    def _emit_last(self) -> None:
        change = None if self._held else self._model.take()
        if not self._held and (isinstance(change, Append) or self._clearable or change is None):
            if change is not None:
                self._write(change)
            return
        final, shown = self._model.text(), "".join(self._written)
        rest = final[len(shown) :] if final.startswith(shown) else "\n" + _after_common_lines(shown, final)
        if rest:
            self._write(Append(rest))


def _begin(cell: Cell) -> int:
    assert cell.begin is not None
    return cell.begin


def _incomplete(data: bytes) -> int:
    """How many bytes at the end are the beginning of a character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    return len(decoder.getstate()[0])


def _after_common_lines(shown: str, final: str) -> str:
    """``final`` without the lines at its beginning that stand already."""
    standing, lines = shown.split("\n"), final.split("\n")
    common = 0
    while common < min(len(standing), len(lines)) - 1 and standing[common] == lines[common]:
        common += 1
    return "\n".join(lines[common:])
