"""Starting a program in another place again: that takes its time, and the loop serves meanwhile."""

from __future__ import annotations

import time

from session_magics.holder.farstart import FarStart
from session_magics.holder.opening import take_away
from session_magics.holder.restarts import Restarts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from session_magics.holder.child import Terminal


class FarRestarts(Restarts):
    """See Restarts."""

    def _start(self, before: Terminal | None) -> None:
        holder, launch, shell = self._holder, self._holder.launch, self._holder.shell
        if holder.over and holder.outcome is not None:  # on request; the state is that before a restart by policy
            code, signal = holder.outcome
            self.record = {"code": code, "signal": signal, "ended": time.time(), "until": time.time()}
            holder.write_run()
        holder.over = False
        argv = launch.argv if shell is None else shell.dialect.argv
        self.starting = FarStart(
            holder.loop, launch, holder.size, holder, argv, shell=shell is not None, then=self._arrived
        )
        self.starting.begin(before)

    def _arrived(self, failure: str) -> None:
        """The program runs in the other place, or not."""
        holder, start, self.starting = self._holder, self.starting, None
        self.record = {}
        self._count()
        if failure or start is None or start.terminal is None:
            self.fail(failure)
        else:
            take_away(holder.shell, start.terminal, holder.launch)
            holder.take(start.terminal)
            if holder.size != start.size:
                start.terminal.resize(*holder.size)
        self._over()

    def reaped(self, pid: int) -> None:
        """See Restarts."""
        if self.starting is not None:
            self.starting.reaped(pid)

    def cancel(self) -> None:
        """See Restarts."""
        super().cancel()
        if self.starting is not None:
            self.starting.cancel(self._given_up)

    def _given_up(self) -> None:
        """Nothing is left of a start that was under way: the program has ended as it did before."""
        holder, self.starting = self._holder, None
        self.record = {}
        if holder.shell is not None:
            holder.shell.abandon()
            holder.write_end()
        holder.over = True
        holder.write_run()
        self._over()
        holder.stopping.step()

    def close(self) -> None:
        """See Restarts."""
        if self.starting is not None:
            self.starting.close()
