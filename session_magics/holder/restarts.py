"""Starting a program again: when it was asked for, or by itself after its end."""

from __future__ import annotations

import os
import time

from session_magics.holder import statefiles
from session_magics.holder.child import SpawnError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from session_magics.holder.child import Terminal
    from session_magics.holder.farstart import FarStart
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
        self._told: list[Callable[[], None]] = []
        self.starting: FarStart | None = None
        """The start that is under way in another place; nothing runs meanwhile, and the loop serves."""
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
        self.again()

    def after_shell(self, ready: bool) -> None:
        """A shell that ended comes back by itself, unless it never gets as far as its first command."""
        self._failures = 0 if ready else self._failures + 1
        if self._failures >= SHELL_TRIES:
            self.fail("the shell ends as soon as it starts")
        else:
            self.again()

    # ---- the start

    def again(self, then: Callable[[], None] = lambda: None) -> None:
        """Start the program anew as the next generation; ``then`` is called when that has come to an end, any end."""
        holder = self._holder
        self._told.append(then)
        if self.starting is not None:
            return
        holder.launch.argv = holder.launch.again or holder.launch.argv
        holder.loop.go_on()
        self._start(holder.let_go())

    def _start(self, before: Terminal | None) -> None:
        """Start the program, when its terminal from before is closed."""
        self.record = {}
        if before is not None:
            before.close()
        self._count()
        try:
            self._holder.spawn()
        except (SpawnError, OSError) as error:
            self.fail(str(error))
        self._over()

    def _count(self) -> None:
        self._holder.generation += 1
        self._holder.log.event("restart", generation=self._holder.generation)

    def _over(self) -> None:
        self._holder.ring()
        told, self._told = self._told, []
        for then in told:
            then()

    def fail(self, reason: str) -> None:
        """Record that the program could not be started again."""
        holder = self._holder
        holder.failure, holder.over = reason, True
        statefiles.write_exit(holder.generation, "failed", reason)
        holder.write_run()
        if holder.shell is not None:
            holder.shell.abandon()
        holder.leave()
        holder.ring()

    def reaped(self, pid: int) -> None:
        """A child of ours has ended."""

    def cancel(self) -> None:
        """Start nothing any more, and forget what was counted: the program is over, if it does not run."""
        holder, waiting, self._waiting = self._holder, self._waiting, None
        self._failures = 0
        self._allowance.clear()
        if waiting is not None:
            holder.loop.cancel(waiting)
            self.record = {}
            holder.over = True
            holder.write_run()

    def close(self) -> None:
        """Leave no start behind that is under way."""
