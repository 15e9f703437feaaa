"""Answering programs that ask the terminal a question while no view is there to do it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from session_magics.holder.child import Terminal
    from session_magics.holder.loop import Loop

ANSWERS = (
    (b"\033[c", b"\033[?62;22c"),
    (b"\033[0c", b"\033[?62;22c"),
    (b"\033[>c", b"\033[>0;276;0c"),
    (b"\033[>0c", b"\033[>0;276;0c"),
    (b"\033[5n", b"\033[0n"),
)
CURSOR = b"\033[6n"
LONGEST = max(len(query) for query, _ in ANSWERS)
RETRY = (0.005, 0.01, 0.02, 0.04, 0.08)
"""Seconds to wait for a program that asks first and switches the echo off after; while the echo is on, an answer
would be printed, and nobody who reads lines wants one."""


class Answerer:
    """Looks for questions in the output and types the answers.

    The cursor's column is reckoned from the last line of the output and its row is always the last: enough for
    programs that want to know whether they stand at the beginning of a line.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._tail = b""

    def look(self, terminal: Terminal, data: bytes, rows: int) -> None:
        """See new output; answer what it asks."""
        seen = self._tail + data if self._tail else data
        self._tail = b""
        at = seen.rfind(b"\033", max(0, len(seen) - LONGEST + 1))
        if at >= 0:
            self._tail = seen[at:]
        if b"\033[" not in seen:
            return
        answers = [answer for query, answer in ANSWERS for _ in range(seen.count(query))]
        if CURSOR in seen:
            self._tail = b""
            column = len(_printed(seen[: seen.rfind(CURSOR)])) + 1
            answers += [b"\033[%d;%dR" % (rows, column)] * seen.count(CURSOR)
        if answers:
            self._tail = b""
            self._answer(terminal, b"".join(answers), 0)

    def _answer(self, terminal: Terminal, answer: bytes, tries: int) -> None:
        if terminal.tty_fd < 0:
            return
        if not terminal.echoes():
            terminal.write(answer)
        elif tries < len(RETRY):
            self._loop.later(RETRY[tries], lambda: self._answer(terminal, answer, tries + 1))


def _printed(output: bytes) -> bytes:
    """The printable bytes of the last line, escape sequences aside."""
    line = output[max(output.rfind(b"\n"), output.rfind(b"\r")) + 1 :][-4096:]
    kept, skipping = bytearray(), False
    for byte in line:
        if skipping:
            skipping = not (0x40 <= byte <= 0x7E) or byte == 0x5B
        elif byte == 0x1B:
            skipping = True
        elif byte >= 0x20 and byte & 0xC0 != 0x80:  # a character of several bytes counts once
            kept.append(byte)
    return bytes(kept)
