"""The pipe through which a shell gets what it shall do."""

from __future__ import annotations

import fcntl
import os
import struct
import termios

from session_magics.holder.loop import GONE, WRITE
from session_magics.holder.processes import read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from session_magics.holder.loop import Loop

CHUNK = 65536
"""Bytes for one write; a pipe takes no more at once."""
READ_BYTES = 1 << 20
"""Taken from a FIFO in one wake-up at most."""


class Pipe:
    """The writing end. Owns ``fd``; ``close`` gives it up. ``gone`` is called when no reader is left."""

    def __init__(self, loop: Loop, fd: int, gone: Callable[[], None]) -> None:
        self._loop, self._fd, self._gone = loop, fd, gone
        self._unsent = b""
        self._read = True
        os.set_blocking(fd, False)
        loop.watch(fd, self._event, 0)

    def send(self, data: bytes) -> None:
        """Write the bytes now, or as soon as they fit; nothing happens when no reader is left."""
        if self._read:
            self._unsent += data
            self._event(0)

    @property
    def taken(self) -> bool:
        """Whether all that was sent has been read."""
        if not self._read or self._unsent:
            return False
        return not struct.unpack("i", fcntl.ioctl(self._fd, termios.FIONREAD, b"\0\0\0\0"))[0]

    def _event(self, events: int) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._fd, self._unsent[:CHUNK]) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            events |= GONE
        if events & GONE:
            self._read = False
            self._loop.forget(self._fd)
            self._gone()
        else:
            self._loop.watch(self._fd, self._event, WRITE if self._unsent else 0)

    def close(self) -> None:
        """Give the descriptor up; idempotent."""
        self._read = False
        if self._fd >= 0:
            self._loop.forget(self._fd)
            os.close(self._fd)
            self._fd = -1


def reads_pipe(pid: int) -> bool:
    """Whether the process waits for a pipe; True where the system does not tell."""
    try:
        place = read_file(f"/proc/{pid}/wchan")
    except OSError:
        return True
    return place in (b"", b"0") or b"pipe" in place


def make_fifo(name: str) -> None:
    """Make a FIFO in the session's directory, if it is not there."""
    try:
        os.mkfifo(name, 0o600)
    except FileExistsError:
        pass


def open_fifo(name: str) -> int:
    """Make a FIFO in the session's directory if need be. It is open for writing too: never an end of file."""
    make_fifo(name)
    return os.open(name, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)


class Reader:
    """The end of a FIFO at which ``take`` is given what comes; of all readers and writers it alone is here."""

    def __init__(self, loop: Loop, name: str, take: Callable[[bytes], None]) -> None:
        self._loop, self._take = loop, take
        self._fd = open_fifo(name)
        loop.watch(self._fd, self._readable)

    def _readable(self, _events: int) -> None:
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return
        self._take(data)

    def close(self) -> None:
        """Give it up."""
        self._loop.forget(self._fd)
        os.close(self._fd)
