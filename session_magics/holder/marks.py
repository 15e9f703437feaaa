"""Cutting the marks of one command out of what the terminal says."""

from __future__ import annotations

NONE, BEGIN, END = 0, 1, 2
"""What stands behind a piece of text."""


class Cutter:
    """Takes bytes as they come and gives them back without the marks.

    The search is for exact bytes: an unterminated escape sequence before a mark cannot swallow it, and a mark with
    another nonce is text. Only what may be the beginning of the mark that comes next is held back.
    """

    def __init__(self) -> None:
        self._wanted: list[bytes] = []
        self._held = b""

    def expect(self, begin: bytes, end: bytes) -> None:
        """Look for these marks from now on, the one after the other."""
        self._wanted = [end, begin]

    def feed(self, data: bytes) -> list[tuple[bytes, int]]:
        """The text that is certain now, each piece with the mark behind it; NONE behind the last."""
        data, self._held = self._held + data, b""
        pieces = []
        while self._wanted:
            wanted = self._wanted[-1]
            at = data.find(wanted)
            if at < 0:
                keep = len(data) - _overlap(data, wanted)
                data, self._held = data[:keep], data[keep:]
                break
            pieces.append((data[:at], BEGIN if len(self._wanted) > 1 else END))
            data = data[at + len(wanted) :]
            self._wanted.pop()
        return [*pieces, (data, NONE)]

    def release(self) -> bytes:
        """What was held back, as no mark will come any more."""
        data, self._held, self._wanted = self._held, b"", []
        return data


def _overlap(data: bytes, wanted: bytes) -> int:
    """How many bytes at the end of the data may be the beginning of ``wanted``, which begins with its only ESC."""
    start = data.rfind(wanted[:1], max(0, len(data) - len(wanted)))
    return len(data) - start if start >= 0 and wanted.startswith(data[start:]) else 0
