"""One thread that sends the output of all shown sessions to the page, under one limit."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from typing import Protocol

MESSAGES_PER_SECOND = 100
"""Messages for all sessions together: each costs the kernel 0.5 ms, and more of them move nothing more smoothly. The
server drops everything beyond a thousand, without a word."""
BURST = 40
"""Messages that may go at once after a pause."""
MILLISECONDS = 1000


class Source(Protocol):
    """What has something to send now and then. ``step`` and the rest are called from the sender's thread alone."""

    def fileno(self) -> int | None:
        """A descriptor that becomes readable when there may be more, if there is one now."""

    def news(self) -> None:
        """Take in what has come on the descriptor."""

    def urgent(self, now: float) -> bool:
        """Whether a person types, and waits for the echo: then it goes beyond the limit."""

    def step(self, now: float) -> tuple[bool, float | None]:
        """Send one message if one is due: (whether one was sent, when to come again; None: when woken).

        Where nothing waits to be sent, it sees to it that the descriptor becomes readable with the next output.
        """


class Sender:
    """Serves sources in turns. ``add``, ``remove``, ``wake`` and ``close`` may be called from any thread."""

    def __init__(self) -> None:
        self._sources: list[Source] = []
        self._lock, self._serving = threading.Lock(), threading.Lock()
        self._woken, self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else _pipe()
        self._closed = False
        self._tokens, self._counted = float(BURST), time.monotonic()
        self._thread: threading.Thread | None = None

    def add(self, source: Source) -> None:
        """Serve it from now on."""
        with self._lock:
            self._sources.append(source)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="session views", daemon=True)
                self._thread.start()
        self.wake()

    def remove(self, source: Source) -> None:
        """Serve it no more."""
        with self._lock, contextlib.suppress(ValueError):
            self._sources.remove(source)
        self.wake()

    def rest(self) -> None:
        """Wait for the end of the round that may be under way: what was removed before is not used after."""
        with self._serving:
            pass

    def wake(self) -> None:
        """Something has changed."""
        with contextlib.suppress(BlockingIOError, OSError):
            os.write(self._waker, b"\0")

    def close(self) -> None:
        """End the thread."""
        self._closed = True
        self.wake()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(1.0)

    def _run(self) -> None:
        due: float | None = None
        while not self._closed:
            ready = self._wait(due)
            with self._serving:
                with self._lock:
                    sources = list(self._sources)
                for source in sources:
                    if source.fileno() in ready:
                        source.news()
                due = self._round(sources)

    def _wait(self, due: float | None) -> set[int | None]:
        """Wait until something is due or comes; the descriptors on which something came."""
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        with self._serving, self._lock:
            fds = [fd for source in self._sources if (fd := source.fileno()) is not None]
        for fd in fds:
            poll.register(fd, select.POLLIN)
        wait = None if due is None else max(0.0, due - time.monotonic()) * MILLISECONDS
        ready = {fd for fd, _ in poll.poll(wait)}
        if self._woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken, 4096)
        return {fd for fd in ready if fd != self._woken}

    def _round(self, sources: list[Source]) -> float | None:
        """Give each its turn; the time of the next one."""
        dues: list[float] = []
        for source in sources:
            now = time.monotonic()
            if not self._may(now) and not source.urgent(now):
                dues.append(now + 1 / MESSAGES_PER_SECOND)
                continue
            sent, due = source.step(now)
            self._tokens -= sent
            if due is not None:
                dues.append(due)
        if self._sources and len(sources) > 1:  # who came last is first in the next round
            with self._lock:
                self._sources.append(self._sources.pop(0))
        return min(dues, default=None)

    def _may(self, now: float) -> bool:
        self._tokens = min(BURST, self._tokens + (now - self._counted) * MESSAGES_PER_SECOND)
        self._counted = now
        return self._tokens >= 1


def _pipe() -> tuple[int, int]:
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    return ends
