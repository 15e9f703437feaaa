"""The one poll loop of a holder: descriptors with callbacks, and timers. Single thread, no queue but these."""

from __future__ import annotations

import _signal
import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

READ = select.POLLIN
WRITE = select.POLLOUT
GONE = select.POLLERR | select.POLLHUP | select.POLLNVAL


class Timer:
    """A call that is due at a monotonic time, once."""

    __slots__ = ("call", "when")

    def __init__(self, when: float, call: Callable[[], None]) -> None:
        self.when, self.call = when, call


class Loop:
    """Waits for descriptors and timers and calls what is due until ``stop`` is called."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._calls: dict[int, Callable[[int], None]] = {}
        self._timers: list[Timer] = []
        self._running = True
        wake_r, wake_w = os.pipe()
        os.set_blocking(wake_r, False)
        os.set_blocking(wake_w, False)
        self._signals: dict[int, Callable[[], None]] = {}
        _signal.set_wakeup_fd(wake_w, warn_on_full_buffer=False)
        self.watch(wake_r, self._signalled)
        self._wake = wake_r

    def watch(self, fd: int, call: Callable[[int], None], events: int = READ) -> None:
        """Call ``call(events)`` whenever the descriptor has one of the events, or is in error. Repeat to change."""
        self._calls[fd] = call
        self._poll.register(fd, events)

    def forget(self, fd: int) -> None:
        """Stop watching; must come before the descriptor is closed. Harmless if it is not watched."""
        if self._calls.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def on_signal(self, number: int, call: Callable[[], None]) -> None:
        """Call ``call()`` from the loop, never inside a handler, when the signal has come."""
        self._signals[number] = call
        _signal.signal(number, lambda *_: None)

    def _signalled(self, _events: int) -> None:
        try:
            numbers = os.read(self._wake, 512)
        except BlockingIOError:
            return
        for one in set(numbers):
            if one in self._signals:
                self._signals[one]()

    def later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Call ``call()`` once after that many seconds; keep the Timer to cancel it."""
        timer = Timer(time.monotonic() + seconds, call)
        self._timers.append(timer)
        return timer

    def cancel(self, timer: Timer | None) -> None:
        """Drop a timer; harmless if it has fired."""
        if timer in self._timers:
            self._timers.remove(timer)

    def stop(self) -> None:
        """Let ``run`` return after the callbacks of this round."""
        self._running = False

    def run(self) -> None:
        """Serve until ``stop``."""
        while self._running:
            for fd, events in self._poll.poll(self._patience()):
                call = self._calls.get(fd)  # an earlier callback of this round may have dropped it
                if call is not None:
                    call(events)
            now = time.monotonic()
            for timer in [one for one in self._timers if one.when <= now]:
                if timer in self._timers:
                    self._timers.remove(timer)
                    timer.call()

    def _patience(self) -> float | None:
        if not self._timers:
            return None
        seconds = min(one.when for one in self._timers) - time.monotonic()
        return max(0.0, seconds * 1000 + 0.5)
