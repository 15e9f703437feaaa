"""The terminal of the person: taken over, written to without ever waiting for it, and given back as it was."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import time
from types import TracebackType
from typing import Self

from session_magics.errors import SessionError
from session_magics.holder.wire import SIZE_MOST

READ_BYTES = 64 * 1024
"""Bytes of input taken at once: a paste."""
LEAVE_LIMIT = 0.5
"""Seconds for a terminal to take what brings it back; one that has stopped reading keeps its state."""
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
HANDLED = (*ENDING, signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT)
PUSH_TITLE, POP_TITLE = b"\x1b[22;2t", b"\x1b[23;2t"


class Signals:
    """Signals as numbers to be taken by a loop: ``fileno`` is readable when there are any. For the main thread."""

    def __enter__(self) -> Self:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)
        self._wakeup = signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)
        self._handlers = {number: signal.signal(number, _ignored) for number in HANDLED}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._read)
        os.close(self._write)

    def fileno(self) -> int:
        """Readable when ``take`` has something."""
        return self._read

    def take(self) -> frozenset[int]:
        """Those that have come since the last call."""
        try:
            return frozenset(os.read(self._read, 4096))
        except BlockingIOError:
            return frozenset()

    @staticmethod
    def stop() -> None:
        """Do what SIGTSTP asks for; returns when the process is continued."""
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, handler)


def _ignored(*_: object) -> None:
    """It is the descriptor that tells of a signal."""


class OwnTerminal:
    """The terminal that standard input and output are. ``close`` gives it back; idempotent, and never raises.

    It is opened anew: a descriptor that does not block must be ours alone, as the shell shares standard input.
    """

    def __init__(self, *, newlines: bool) -> None:
        """Take it over. ``newlines``: it makes CR LF of the LF it is sent. Raises SessionError where there is none."""
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise SessionError("attach needs a terminal as input and output: %session tail -f NAME shows what comes")
        flags = os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            self._fd = os.open(os.ttyname(sys.stdin.fileno()), flags)
        except OSError:  # in a container its name may lead nowhere
            try:
                self._fd = os.open("/dev/tty", flags)
            except OSError as error:
                raise SessionError(f"the terminal cannot be opened: {error.strerror}") from None
        self._newlines = newlines
        self._out = bytearray()
        self._saved = termios.tcgetattr(self._fd)
        self._taken = False
        try:
            self.take()
        except termios.error as error:
            os.close(self._fd)
            raise SessionError(f"the terminal cannot be taken over: {error}") from None

    def take(self) -> None:
        """Make every key a byte; answers to questions of others that still come are dropped.

        Again where it is ours already, as after a stop that nobody told of: the modes may be another's, but the keys
        that have come since are for the session.
        """
        iflag, oflag, cflag, lflag, ispeed, ospeed, cc = termios.tcgetattr(self._fd)
        iflag &= ~(termios.IGNBRK | termios.BRKINT | termios.PARMRK | termios.ISTRIP)
        iflag &= ~(termios.INLCR | termios.IGNCR | termios.ICRNL | termios.IXON)
        oflag = oflag | termios.OPOST | termios.ONLCR if self._newlines else oflag & ~termios.OPOST
        cflag = (cflag & ~(termios.CSIZE | termios.PARENB)) | termios.CS8
        lflag &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN)
        cc = [*cc]
        cc[termios.VMIN], cc[termios.VTIME] = 1, 0
        when = termios.TCSANOW if self._taken else termios.TCSAFLUSH
        termios.tcsetattr(self._fd, when, [iflag, oflag, cflag, lflag, ispeed, ospeed, cc])
        if not self._taken:
            self._taken = True
            self.write(PUSH_TITLE)

    def fileno(self) -> int:
        """To wait for keys, and for room while ``pending``."""
        return self._fd

    def size(self) -> tuple[int, int]:
        """Rows and columns, of which a session has so many at most; a terminal that does not know has 24x80."""
        with contextlib.suppress(OSError):
            columns, rows = os.get_terminal_size(self._fd)
            if rows > 0 and columns > 0:
                return min(rows, SIZE_MOST[0]), min(columns, SIZE_MOST[1])
        return 24, 80

    def read(self) -> bytes | None:
        """What was typed; None when the terminal is gone."""
        try:
            return os.read(self._fd, READ_BYTES) or None
        except BlockingIOError:
            return b""
        except OSError:
            return None

    @property
    def pending(self) -> bool:
        """Whether it has not taken all that was written."""
        return bool(self._out)

    def write(self, data: bytes) -> None:
        """Write as much as it takes now; the rest goes with ``flush``."""
        self._out += data
        self.flush()

    def flush(self) -> None:
        """Write what is pending, as far as it goes."""
        try:
            while self._out:
                del self._out[: os.write(self._fd, self._out)]
        except BlockingIOError:
            pass
        except OSError:  # gone: reading tells
            self._out.clear()

    def release(self, farewell: bytes) -> None:
        """Give it back for now: what brings it back, then its old modes. Never raises."""
        if not self._taken:
            return
        self._taken = False
        if self._out:
            # It does not read: what waits in its queue is dropped, to make room for what brings it back. It may have
            # the beginning of a sequence, which CAN ends.
            with contextlib.suppress(termios.error):
                termios.tcflush(self._fd, termios.TCOFLUSH)
            self._out[:] = b"\x18"
        self.write(farewell + POP_TITLE)
        deadline = time.monotonic() + LEAVE_LIMIT
        poll = select.poll()
        poll.register(self._fd, select.POLLOUT)
        while self._out and (left := deadline - time.monotonic()) > 0:
            poll.poll(left * 1000)
            self.flush()
        self._out.clear()
        with contextlib.suppress(termios.error, OSError):
            termios.tcflush(self._fd, termios.TCIFLUSH)  # reports of the mouse that were on their way
            termios.tcsetattr(self._fd, termios.TCSANOW, self._saved)

    def close(self, farewell: bytes = b"") -> None:
        """Give it back for good."""
        if self._fd >= 0:
            self.release(farewell)
            os.close(self._fd)
            self._fd = -1
