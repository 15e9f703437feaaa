"""Programs that are Python functions, and the terminal that they see."""

from __future__ import annotations

import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

INPUT_QUEUE = 1024 * 1024
"""Bytes of input that wait for a program to read, as in our own holder; more is refused as busy."""


class Signalled(BaseException):
    """A signal has reached the program. Who does not catch it dies of it, as programs do."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(f"signal {number}")


class FakeTerminal:
    """A program's terminal: raw, without echo. The program's thread calls the methods without an underscore.

    Signals are raised as ``Signalled`` by whichever method the program is in, or calls next; KILL (9) is raised by
    every call from then on. A program that makes no calls cannot be ended, and shows as a survivor of the stop.
    """

    def __init__(
        self,
        argv: tuple[str, ...],
        env: Mapping[str, str],
        cwd: str,
        size: tuple[int, int],
        output: Callable[[bytes], None],
    ) -> None:
        self.argv, self.env, self.cwd = argv, dict(env), cwd
        self.echo = False
        """What the program says about the terminal's echo; only ``probe`` and secret input look at it."""
        self._size, self._output = size, output
        self._changed = threading.Condition()
        self._signals: deque[int] = deque()
        self._killed = False
        self._input = bytearray()
        self._reading = False

    @property
    def size(self) -> tuple[int, int]:
        """(rows, columns) now."""
        return self._size

    def write(self, data: bytes | str) -> None:
        """Print; text as UTF-8. Nothing is translated."""
        with self._changed:
            self._raise_signal()
        self._output(data.encode() if isinstance(data, str) else data)

    def read(self, limit: int = 65536) -> bytes:
        """Wait for typed bytes and take up to ``limit`` of them; never empty."""
        self._reading = True
        try:
            self.block(lambda: bool(self._input))
        finally:
            self._reading = False
        with self._changed:
            data = bytes(self._input[:limit])
            del self._input[:limit]
        return data

    def pause(self, seconds: float | None = None) -> None:
        """Wait (None: for ever), or until the size changes."""
        before = self._size
        self.block(lambda: self._size != before, seconds)

    def block(self, ready: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until ``ready()``, which is looked at whenever something happens to the terminal; False: time over."""
        deadline = None if seconds is None else time.monotonic() + seconds
        with self._changed:
            while True:
                self._raise_signal()
                if ready():
                    return True
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    return False
                self._changed.wait(left)

    def _raise_signal(self) -> None:
        if self._killed:
            raise Signalled(signal.SIGKILL)
        if self._signals:
            raise Signalled(self._signals.popleft())

    # What the holder's side calls, from other threads.

    def deliver(self, number: int) -> None:
        """Send a signal."""
        with self._changed:
            self._killed = self._killed or number == signal.SIGKILL
            self._signals.append(number)
            self._changed.notify_all()

    def revive(self) -> None:
        """Forget the signals: what they were for has ended."""
        with self._changed:
            self._killed = False
            self._signals.clear()

    def type(self, data: bytes) -> bool:
        """Take input; False, and nothing taken, if too much waits already."""
        with self._changed:
            if len(self._input) + len(data) > INPUT_QUEUE:
                return False
            self._input += data
            self._changed.notify_all()
            return True

    def resize(self, size: tuple[int, int]) -> None:
        """Change the size."""
        with self._changed:
            self._size = size
            self._changed.notify_all()

    def wake(self) -> None:
        """Let ``block`` look again."""
        with self._changed:
            self._changed.notify_all()

    @property
    def reading(self) -> bool:
        """Whether the program waits in ``read`` now."""
        return self._reading and not self._input


Program = Callable[[FakeTerminal], "int | None"]
"""Runs in a thread of its own; returns its exit code (None: 0). An exception that it lets out is printed, and is 1."""
CellProgram = Callable[[FakeTerminal, str], "int | None"]
"""The same for the cells of a shell session: gets the cell's text, returns its status. SystemExit ends the shell."""


def script(*output: bytes | str, code: int = 0, ask: str | None = None) -> Program:
    """A program that prints each piece and exits. ``ask``: it first waits for a line of input after printing this."""

    def program(terminal: FakeTerminal) -> int:
        if ask is not None:
            terminal.write(ask)
            line = b""
            while not line.endswith((b"\r", b"\n")):
                line += terminal.read()
        for piece in output:
            terminal.write(piece)
        return code

    return program
