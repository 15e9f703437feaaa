"""Ending a session's tree in another place, by what the script there finds and does."""

from __future__ import annotations

import time

from session_magics.holder.farterminal import FarTerminal
from session_magics.holder.stop import KILL_PATIENCE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from session_magics.holder.holder import Holder
    from session_magics.holder.loop import Timer

LOOK_PAUSE = 0.1
"""Seconds between two looks at the tree there; one takes 2 to 50 ms of that place's time."""

LOST_LIMIT = 4.5
"""Seconds without a connection after which a stop waits for no end any more: more than a rescue takes."""


class FarStopping:
    """See Stopping: one stop at a time, joined by whoever asks meanwhile."""

    def __init__(self, holder: Holder) -> None:
        self._holder = holder
        self._calls: list[Callable[[list[int]], None]] = []
        self._timer: Timer | None = None
        self._deadline = self._forced = self._cut_off = 0.0
        self._empty = self._looking = False
        self.active = False
        """Whether a stop is under way."""

    def begin(self, grace: float, then: Callable[[list[int]], None] | None, *, hurry: bool) -> None:
        """Start a stop, or join the one that is under way, whose grace can only become shorter: ``hurry`` ends it."""
        if then is not None:
            self._calls.append(then)
        now = time.monotonic()
        by = now if hurry else now + grace
        if not self.active:
            self.active, self._empty, self._deadline = True, False, by
            self._forced = self._cut_off = 0.0
        self._deadline = min(self._deadline, by)
        self.step()

    def step(self) -> None:
        """Look at once; harmless at any time."""
        if not self.active:
            return
        terminal = self._holder.terminal
        if not isinstance(terminal, FarTerminal) or not terminal.control.live:
            self._holder.loop.cancel(self._timer)
            if self._holder.settled:
                self._done([])
                return
            now = time.monotonic()
            self._cut_off = self._cut_off or now
            if now - self._cut_off > LOST_LIMIT:
                self._holder.lose("its connection broke while it was being ended; what ran there may still run")
            else:  # that it is lost is told in a moment
                self._timer = self._holder.loop.later(LOOK_PAUSE, self.step)
            return
        if self._empty and self._holder.settled:
            self._done([])
            return
        if self._looking:
            return
        self._holder.loop.cancel(self._timer)
        self._looking = True
        force = time.monotonic() >= self._deadline
        if force:
            self._forced = self._forced or time.monotonic()
        terminal.members(self._looked, b"force" if force else b"ask")
        self._timer = self._holder.loop.later(KILL_PATIENCE, self._unheard)

    def _unheard(self) -> None:
        self._looking = False
        self.step()

    def _looked(self, pids: list[int]) -> None:
        if not self.active:
            return
        self._looking = False
        self._holder.loop.cancel(self._timer)
        self._empty = not pids
        if self._empty and self._holder.settled:
            self._done([])
        elif pids and self._forced and time.monotonic() - self._forced > KILL_PATIENCE:
            self._done(sorted(pids))
        elif self._empty and self._forced and time.monotonic() - self._forced > LOST_LIMIT:
            self._holder.lose("it was ended by force, and how it ended is not told")
        else:
            pause = LOOK_PAUSE if self._forced else min(LOOK_PAUSE, max(0.0, self._deadline - time.monotonic()))
            self._timer = self._holder.loop.later(pause, self.step)

    def _done(self, survivors: list[int]) -> None:
        self.active = self._looking = False  # a look that is under way may never be answered, see part
        self._holder.loop.cancel(self._timer)
        calls, self._calls = self._calls, []
        for call in calls:
            call(survivors)
        self._holder.ring()
        self._holder.leave()
