"""``play`` in a terminal: the recording's output as it came, until its end or until somebody leaves."""

from __future__ import annotations

import contextlib
import select
import signal
import sys
import time

from session_magics.cli.terminal import ENDING, OwnTerminal, Signals
from session_magics.errors import SessionError
from session_magics.recording.formats import Cast
from session_magics.recording.playing import Settings
from session_magics.recording.timing import Shortener
from session_magics.text.modes import Modes
from session_magics.text.queries import QueryFilter

LEAVE_KEYS = (b"\x03", b"q", b"\x1c")
"""Ctrl-C, q, Ctrl-\\: the terminal makes no signals of keys while it plays."""
PAUSE_KEY = b" "


def play(cast: Cast, settings: Settings) -> int:
    """Play on this terminal; 0, or 128 and the signal that ended it. Raises SessionError where there is no terminal."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SessionError("play needs a terminal as input and output; in a notebook: %session play FILE")
    with contextlib.ExitStack() as stack:
        signals = stack.enter_context(Signals())  # first and last: none may end this process in between
        terminal = stack.enter_context(contextlib.closing(OwnTerminal(newlines=False)))
        show = _Show(cast, settings, terminal, signals)
        stack.callback(lambda: terminal.close(show.farewell()))
        return show.run()


class _Show:
    """Plays once; waits for keys, signals and the next event, all at once."""

    def __init__(self, cast: Cast, settings: Settings, terminal: OwnTerminal, signals: Signals) -> None:
        self._terminal, self._signals = terminal, signals
        shortener = Shortener(settings.idle_limit)
        self._events = [(event.time, shortener.shorten(event)) for event in cast.events]
        self._speed = settings.speed
        self._skipped = next((short.time for real, short in self._events if real >= settings.start_at), 0.0)
        self._began = time.monotonic() - self._skipped / self._speed
        self._paused: float | None = None
        self._filter, self._modes = QueryFilter(), Modes()

    def run(self) -> int:
        """Play to the end, or until the leave key (both 0), or a signal."""
        for _, event in self._events:
            while (left := self._left(event.time)) is None or left > 0 or self._terminal.pending:
                ended = self._wait(left)
                if ended is not None:
                    return ended
            if event.code == "o":
                safe = self._filter.feed(event.data.encode("utf-8", "replace"))
                self._modes.see(safe)
                self._terminal.write(safe)
        while self._terminal.pending:
            ended = self._wait(None)
            if ended is not None:
                return ended
        return 0

    def farewell(self) -> bytes:
        """What brings the terminal back."""
        string = b"\x1b\\" if self._filter.inside else b""
        return string + self._modes.leave() + b"\x1b[0m\x1b[?25h\r\n"

    def _left(self, moment: float) -> float | None:
        """Seconds until a time of the recording; None while it rests."""
        if self._paused is not None:
            return None
        return max(0.0, self._began + moment / self._speed - time.monotonic())

    def _wait(self, seconds: float | None) -> int | None:
        """Wait so long for what happens; the exit status if that ends it."""
        poll = select.poll()
        poll.register(self._signals.fileno(), select.POLLIN)
        poll.register(self._terminal.fileno(), select.POLLIN | (select.POLLOUT if self._terminal.pending else 0))
        busy = self._terminal.pending
        happened = dict(poll.poll(None if seconds is None or busy else seconds * 1000))
        if happened.get(self._terminal.fileno(), 0) & select.POLLOUT:
            self._terminal.flush()
        if happened.get(self._terminal.fileno(), 0) & ~select.POLLOUT:
            keys = self._terminal.read()
            if keys is None:
                return 128 + signal.SIGHUP
            if any(key in keys for key in LEAVE_KEYS):
                return 0
            if PAUSE_KEY in keys:
                self._pause()
        return self._signalled() if self._signals.fileno() in happened else None

    def _pause(self) -> None:
        """Rest, or go on."""
        now = time.monotonic()
        if self._paused is None:
            self._paused = now
        else:
            self._began, self._paused = self._began + now - self._paused, None

    def _signalled(self) -> int | None:
        taken = self._signals.take()
        ending = next((number for number in ENDING if number in taken), None)
        if ending is not None:
            return 128 + ending
        if signal.SIGTSTP in taken:
            self._terminal.release(self.farewell())
            self._signals.stop()
        if signal.SIGTSTP in taken or signal.SIGCONT in taken:
            self._terminal.take()
        return None
