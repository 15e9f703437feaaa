"""One stop at a time of a holder's session, for whoever asked."""

from __future__ import annotations

import os
import time

from session_magics.holder.stop import StopLadder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from session_magics.holder.holder import Holder
    from session_magics.holder.loop import Timer

COOKIE = b"SESSION_MAGICS_SESSION"
"""The environment variable by which a session's processes are known even outside its tree."""


class Stopping:
    """Drives the ladder by the holder's loop and reports when the tree is gone *and* the end recorded."""

    def __init__(self, holder: Holder) -> None:
        self._holder = holder
        self._ladder: StopLadder | None = None
        self._calls: list[Callable[[list[int]], None]] = []
        self._timer: Timer | None = None

    @property
    def active(self) -> bool:
        """Whether a stop is under way."""
        return self._ladder is not None

    def begin(self, grace: float, then: Callable[[list[int]], None] | None, *, hurry: bool) -> None:
        """Start a stop, or join the one that is under way, whose grace can only become shorter: ``hurry`` ends it."""
        if then is not None:
            self._calls.append(then)
        holder, now = self._holder, time.monotonic()
        if self._ladder is None:
            cookie = COOKIE + b"=" + holder.launch.env[COOKIE]
            self._ladder = StopLadder(
                os.getpid(), holder.leader(), cookie, grace=grace, now=now, hangup_leader=holder.launch.hangup
            )
        self._ladder.hurry(now if hurry else now + grace)
        self.step()

    def step(self) -> None:
        """Do what is due; harmless at any time."""
        ladder = self._ladder
        if ladder is None:
            return
        self._holder.loop.cancel(self._timer)
        due = ladder.step(time.monotonic())
        if due is not None:
            self._timer = self._holder.loop.later(max(0.0, due - time.monotonic()), self.step)
        elif self._holder.settled or ladder.survivors:
            self._ladder = None
            calls, self._calls = self._calls, []
            for call in calls:
                call(ladder.survivors)
            self._holder.ring()
            self._holder.leave()
