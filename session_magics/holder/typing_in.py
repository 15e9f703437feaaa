"""Typing into a terminal: what waits until the program reads, and long lines where it hands over whole lines."""

from __future__ import annotations

from session_magics.holder.loop import READ, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from session_magics.holder.child import Terminal
    from session_magics.holder.loop import Loop, Timer

INPUT_QUEUE = 1024 * 1024
"""Bytes of input that wait for a program to read; more is refused as busy."""

PIECE = 4000
"""Bytes of a line after which it is handed over. Linux drops what goes beyond 4095 (macOS: 1023) without a word, and a
line's end has to fit as well."""
LINE_ENDS = b"\n\r"


def canonical_pieces(data: bytes, *, eof: bytes = b"\x04", column: int = 0, piece: int = PIECE) -> tuple[bytes, int]:
    """What to type so that the reader gets ``data`` whole, and the column reached.

    The terminal's end-of-file character ``eof`` hands over what was typed so far and is not delivered itself. It never
    comes at the beginning of a line here, where it would mean the end of the input. ``column`` is how many bytes of
    the line were typed before, the second value of the call before. Only for a terminal in canonical mode.
    """
    typed = bytearray()
    for byte in data:
        if column == piece and byte not in LINE_ENDS and byte != eof[0]:
            typed += eof
            column = 0
        typed.append(byte)
        column = 0 if byte in LINE_ENDS or byte == eof[0] else column + 1
    return bytes(typed), column


class InputQueue:
    """Input that the program has not taken yet. ``watch`` is told for which events its terminal is to be watched."""

    def __init__(self, loop: Loop, watch: Callable[[int], None]) -> None:
        self._loop, self._watch = loop, watch
        self._waiting = b""
        self._again: Timer | None = None

    def put(self, terminal: Terminal, data: bytes) -> bool:
        """Take input; False, and nothing taken, if too much waits already."""
        if len(self._waiting) + len(data) > INPUT_QUEUE:
            return False
        if len(data) > PIECE and terminal.canonical():
            data, _ = canonical_pieces(data)
        self._waiting += data
        self.feed(terminal)
        return True

    def feed(self, terminal: Terminal) -> None:
        """Give the terminal what it takes now, and see to it that it gets the rest."""
        self._loop.cancel(self._again)
        while self._waiting:
            count = terminal.write(self._waiting[: terminal.piece])
            if not count:
                break
            self._waiting = self._waiting[count:]
        if not terminal.retry:
            self._watch(READ | WRITE if self._waiting else READ)
        elif self._waiting:
            self._again = self._loop.later(terminal.retry, lambda: self.feed(terminal))

    def drop(self) -> None:
        """Forget what waits: its terminal is no more."""
        self._loop.cancel(self._again)
        self._waiting = b""
