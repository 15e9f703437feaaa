"""The one poll loop of a holder: descriptors with callbacks, and timers. Single thread, no queue but these."""

from __future__ import annotations

import _signal
import os
import select
import time

from session_magics.holder import processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FAULT_PAUSE = 0.05
"""Seconds of rest after a fault, so that one that repeats itself costs no processor."""
FAULTS_TOLD = 20
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
        self._faults = 0
        self.on_fault: Callable[[str], None] = lambda _what: None
        """Is told of the first FAULTS_TOLD exceptions that nobody caught."""
        wake_r, wake_w = os.pipe()
        os.set_blocking(wake_r, False)
        os.set_blocking(wake_w, False)
        self._signals: dict[int, Callable[[], None]] = {}
        _signal.set_wakeup_fd(wake_w, warn_on_full_buffer=False)
        self.watch(wake_r, self._signalled)
        self._wake, self._pipe = wake_r, (wake_r, wake_w)

    def watch(self, fd: int, call: Callable[[int], None], events: int = READ) -> None:
        """Call ``call(events)`` whenever the descriptor has one of the events, or is in error. Repeat to change."""
        self._calls[fd] = call
        self._poll.register(fd, events)

    def forget(self, fd: int) -> None:
        """Stop watching; must come before the descriptor is closed. Harmless if it is not watched."""
        if self._calls.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def on_end(self, process: tuple[int, int], call: Callable[[], None]) -> None:
        """Call once when a process has ended, given by pid and start tick; nothing with a pid of 0."""
        if not process[0]:
            return

        def gone(_events: int) -> None:
            self.forget(fd)
            os.close(fd)
            call()

        try:
            fd = processes.watch_exit(*process)
        except ProcessLookupError:
            call()
        else:
            self.watch(fd, gone)

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

    def go_on(self) -> None:
        """Take back a ``stop`` of this round."""
        self._running = True

    def close(self) -> None:
        """Give up the descriptors of the loop itself."""
        _signal.set_wakeup_fd(-1)
        for fd in self._pipe:
            self.forget(fd)
            os.close(fd)

    def run(self) -> None:
        """Serve until ``stop``. An exception in a callback is reported and ends nothing."""
        while self._running:
            for fd, events in self._poll.poll(self._patience()):
                call = self._calls.get(fd)  # an earlier callback of this round may have dropped it
                if call is not None:
                    self._guard(call, events)
            now = time.monotonic()
            for timer in [one for one in self._timers if one.when <= now]:
                if timer in self._timers:
                    self._timers.remove(timer)
                    self._guard(timer.call)

    def _guard(self, call: Callable[..., None], *arguments: int) -> None:
        try:
            call(*arguments)
        except Exception as error:
            self._faults += 1
            if self._faults <= FAULTS_TOLD:
                self.on_fault(_describe(error))
            time.sleep(FAULT_PAUSE)

    def _patience(self) -> float | None:
        if not self._timers:
            return None
        seconds = min(one.when for one in self._timers) - time.monotonic()
        return max(0.0, seconds * 1000 + 0.5)


def _describe(error: Exception) -> str:
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{os.path.basename(place.tb_frame.f_code.co_filename)}:{place.tb_lineno}" if place else "?"
    return f"{type(error).__name__}: {error} ({where})"
