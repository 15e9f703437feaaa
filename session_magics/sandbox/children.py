"""A child process with pipes: its bytes, its end, and its kill."""

from __future__ import annotations

import io
import os
import selectors
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Protocol

from session_magics.holder import processes
from session_magics.sandbox import STDERR_TAIL
from session_magics.sandbox.families import kill_family, kill_group

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

CHUNK = 1 << 16
"""Bytes asked per read: what a pipe holds on Linux."""
QUIET = 0.05
"""Seconds without a byte after which a stream is given up that is still open after the program's end."""
DRAIN = 0.25
"""Seconds for which it is read at most, where a job that was left behind goes on writing."""
UNSEEN = 0.01
"""Seconds between two questions whether a program has ended, where the system does not tell of itself."""


class Child:
    """A child process: one thread reaps it, any may kill it. With a cookie, all that carries it is killed too."""

    def __init__(self, popen: subprocess.Popen[bytes], cookie: str) -> None:
        self._popen, self._cookie = popen, cookie
        self._lock = threading.Lock()
        assert popen.stdout is not None and popen.stderr is not None
        self.stdin, self.stdout, self.stderr = popen.stdin, popen.stdout, popen.stderr
        self.exit_fd: int | None = None
        """Readable once it has ended; None where the system has no such thing, and if it had ended before."""
        self._ended = False
        try:
            self.exit_fd = processes.watch_exit(popen.pid, 0)
        except ProcessLookupError:
            self._ended = True
        except OSError:
            pass

    @property
    def pid(self) -> int:
        """Its number, which is nobody else's until it has been reaped."""
        return self._popen.pid

    def handed_over(self) -> tuple[IO[bytes], IO[bytes]]:
        """Its input and output for a caller, who closes them whenever that may be."""
        assert self.stdin is not None
        stdin, stdout = Input(os.dup(self.stdin.fileno()), "w"), os.fdopen(os.dup(self.stdout.fileno()), "rb")
        self.stdin.close()
        self.stdout.close()
        return stdin, stdout

    def ended(self) -> bool:
        """Whether it has ended, as far as can be told without its descriptor."""
        if not self._ended and self.exit_fd is None:
            with self._lock:
                self._ended = self._popen.poll() is not None
        return self._ended

    def end_seen(self) -> None:
        """Its descriptor has told that it has ended."""
        self._ended = True

    def reap(self) -> int:
        """Wait for its end; its status, or minus the signal."""
        if self.exit_fd is not None and not self._ended:
            with selectors.DefaultSelector() as selector:
                selector.register(self.exit_fd, selectors.EVENT_READ)
                selector.select()
        while not (self._ended or self.exit_fd is not None or self.ended()):
            time.sleep(UNSEEN)
        with self._lock:  # nobody signals its number while it is given up
            return self._popen.wait()

    def kill(self) -> None:
        """Kill it and what it has started; nothing if it was reaped."""
        with self._lock:
            if self._popen.returncode is not None:
                return
            if self._cookie:
                kill_family(self._popen.pid, self._cookie)
            else:
                kill_group(self._popen.pid)

    def close(self) -> None:
        """Give up its descriptors."""
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        if self.exit_fd is not None:
            os.close(self.exit_fd)
            self.exit_fd = None


class Input(io.FileIO):
    """Hands over at once and whole what is written."""

    def write(self, data: ReadableBuffer, /) -> int:
        rest = memoryview(data).cast("B")
        size = len(rest)
        while rest:
            rest = rest[super().write(rest) or 0 :]
        return size


class Reader(Protocol):
    """What takes the bytes of a stream."""

    def take(self, piece: bytes) -> None:
        """Here they are."""


class Beginning:
    """The first ``cap`` bytes of a stream; the rest is counted in ``dropped``."""

    def __init__(self, cap: int) -> None:
        self._room, self.dropped = cap, 0
        self._pieces: list[bytes] = []

    def take(self, piece: bytes) -> None:
        """See Reader."""
        kept = piece[: self._room]
        self._pieces.append(kept)
        self._room -= len(kept)
        self.dropped += len(piece) - len(kept)

    def data(self) -> bytes:
        """What was kept."""
        return b"".join(self._pieces)


class Ending:
    """The newest STDERR_TAIL bytes of a stream; to be read from any thread."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._lock = threading.Lock()

    def take(self, piece: bytes) -> None:
        """See Reader."""
        with self._lock:
            self._kept += piece
            del self._kept[:-STDERR_TAIL]

    def data(self) -> bytes:
        """What is kept now."""
        with self._lock:
            return bytes(self._kept)


class Pump:
    """Moves bytes between a child and us until it has ended, and for a moment more.

    ``stdin`` is fed to it, if it has a pipe there; of the streams in ``readers`` each gets what comes.
    """

    def __init__(self, child: Child, readers: Mapping[IO[bytes], Reader], stdin: bytes = b"") -> None:
        self._child, self._readers = child, readers
        self._rest = memoryview(stdin)

    def run(self, deadline: float | None = None, kill: Callable[[], None] = lambda: None) -> bool:
        """Return at the child's end; whether it was killed because it ran at ``deadline`` (monotonic) still."""
        timed_out = False
        with selectors.DefaultSelector() as self._selector:
            self._begin()
            while not self._child.ended():
                left = None if deadline is None or timed_out else deadline - time.monotonic()
                if left is not None and left <= 0:
                    timed_out, left = True, None
                    kill()
                if self._child.exit_fd is None:
                    left = UNSEEN if left is None else min(UNSEEN, left)
                self._step(left)
            self._drain()
        return timed_out

    def _begin(self) -> None:
        for stream in self._readers:
            os.set_blocking(stream.fileno(), False)
            self._selector.register(stream, selectors.EVENT_READ)
        if self._child.exit_fd is not None:
            self._selector.register(self._child.exit_fd, selectors.EVENT_READ)
        if self._rest and self._child.stdin is not None:
            os.set_blocking(self._child.stdin.fileno(), False)
            self._selector.register(self._child.stdin, selectors.EVENT_WRITE)
        elif self._child.stdin is not None:
            self._child.stdin.close()

    def _step(self, timeout: float | None) -> bool:
        """Wait for something and do it; False if nothing came."""
        events = self._selector.select(timeout)
        for key, _ in events:
            if key.fileobj == self._child.exit_fd:
                self._child.end_seen()
                self._selector.unregister(key.fileobj)
            elif key.fileobj is self._child.stdin:
                self._feed(self._child.stdin)
            else:
                self._read(key.fileobj)  # type: ignore[arg-type]
        return bool(events)

    def _feed(self, stdin: IO[bytes]) -> None:
        try:
            self._rest = self._rest[os.write(stdin.fileno(), self._rest) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self._rest = self._rest[:0]
        if not self._rest:
            self._selector.unregister(stdin)
            stdin.close()

    def _read(self, stream: IO[bytes]) -> None:
        try:
            piece = os.read(stream.fileno(), CHUNK)
        except BlockingIOError:
            return
        if piece:
            self._readers[stream].take(piece)
        else:
            self._selector.unregister(stream)

    def _drain(self) -> None:
        """Read what is there yet; whoever holds a stream open after the end is not waited for."""
        if self._rest and self._child.stdin is not None:
            self._selector.unregister(self._child.stdin)
        if self._child.exit_fd is not None and self._child.exit_fd in self._selector.get_map():
            self._selector.unregister(self._child.exit_fd)
        deadline = time.monotonic() + DRAIN
        while self._selector.get_map() and time.monotonic() < deadline:
            if not self._step(QUIET):
                return
