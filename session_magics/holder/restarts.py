"""Whether, and when, a program that has ended is started again by itself."""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from session_magics.holder.holder import Holder
    from session_magics.holder.loop import Timer

BACK_OFF = (0.5, 60.0)
"""Seconds before the first restart by policy, doubled each time, and the most."""
DOUBLINGS = 16
"""Most doublings that are worked out, long after the most is reached: 2 ** 1024 is no float any more."""
STEADY = 10.0
"""Seconds a program must have run for the back-off to begin anew."""
SHELL_TRIES = 3
"""Starts of a shell in a row that may end before its first command."""


def pause(failures: int) -> float:
    """Seconds to wait after so many failures in a row, within ten per cent of the plan."""
    first, most = BACK_OFF
    jitter = 0.9 + os.urandom(1)[0] / 1275
    return min(most, first * 2.0 ** min(failures - 1, DOUBLINGS)) * jitter


def wanted(policy: str, code: int | None) -> bool:
    """Whether a policy has a program start again that ended like this; ``code`` is None after a signal."""
    return policy == "always" or (policy == "on-failure" and code != 0)


class Allowance:
    """Counts restarts by policy, of which so many are allowed: ``most`` (0: any number) within ``window`` seconds.

    Without a window they count from the program's first start on. How long the program ran between them is no matter.
    """

    def __init__(self, most: int, window: float) -> None:
        self._most, self._window = most, window
        self._times: list[float] = []

    def spent(self, now: float) -> int:
        """How many restarts there were, if that is all there may be; else 0. ``now`` is monotonic."""
        if self._window:
            self._times = [at for at in self._times if now - at <= self._window]
        return len(self._times) if self._most and len(self._times) >= self._most else 0

    def take(self, now: float) -> None:
        """Count one."""
        if self._most:
            self._times.append(now)

    def clear(self) -> None:
        """Somebody has asked for a stop or a start: it all begins anew."""
        self._times.clear()


class Restarts:
    """Carries out the policy of one session, in the holder's loop."""

    def __init__(self, holder: Holder) -> None:
        self._holder = holder
        self._allowance = Allowance(*holder.launch.max_restarts)
        self._failures = 0
        self._waiting: Timer | None = None
        self.record: dict[str, object] = {}
        """For the run record: how the program ended, and when it starts again or that it does not. Empty while it runs.

        It has code and signal itself, as it is written before the exit record, which would be taken for the last end.
        """

    def after(self, code: int | None, signal: int | None) -> bool:
        """Whether the program that has ended like this comes back; if so, all is on record and under way."""
        holder, now = self._holder, time.monotonic()
        if not wanted(holder.launch.restart, code):
            return False
        self.record = {"code": code, "signal": signal, "ended": time.time()}
        if restarts := self._allowance.spent(now):
            self.record["gave_up"] = restarts
            holder.write_run()
            return False
        self._failures = 1 if now - holder.began > STEADY else self._failures + 1
        seconds = pause(self._failures)
        self.record["until"] = time.time() + seconds
        holder.write_run()
        holder.write_end()
        self._waiting = holder.loop.later(seconds, self._due)
        return True

    def _due(self) -> None:
        self._waiting = None
        self._allowance.take(time.monotonic())
        self._holder.again()

    def after_shell(self, ready: bool) -> None:
        """A shell that ended comes back by itself, unless it never gets as far as its first command."""
        self._failures = 0 if ready else self._failures + 1
        if self._failures >= SHELL_TRIES:
            self._holder.fail("the shell ends as soon as it starts")
        else:
            self._holder.again()

    def cancel(self) -> bool:
        """Start nothing by policy any more, and forget what was counted; whether a start was under way."""
        waiting, self._waiting = self._waiting, None
        self._failures = 0
        self._allowance.clear()
        if waiting is None:
            return False
        self._holder.loop.cancel(waiting)
        self.record = {}
        return True
