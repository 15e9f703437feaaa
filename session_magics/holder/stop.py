"""Ending a session's whole tree: ask, wait, force, and name what is left.

The ladder is a state machine that the holder's loop drives and that does not sleep. The tree is every descendant of the
holder (as subreaper it inherits the orphans) and every process that carries the session's cookie in its environment.
"""

from __future__ import annotations

import _signal
import time

from session_magics.holder import processes, trees

STOP_POLL = 0.05
"""Seconds between two looks at the tree: a stop feels immediate, and a look takes 2 ms among 100 processes."""
KILL_PATIENCE = 2.0
"""Seconds from the first KILL until what still lives is called a survivor (a disk that hangs, another user's)."""
FREEZE_ROUNDS = 20
"""Looks at the tree in one step while it is being frozen; a fork bomb of 50 took 2 or 3."""

NOBODY = 0x7FFFFFFE
"""A pid that no process has, as the root of a tree that has lost its holder."""

ASKING, GRACE, KILLING, FINISHED = "asking", "grace", "killing", "finished"


class StopLadder:
    """One stop of one session's tree.

    ``root_pid`` is the holder, which is never signalled. ``leader_pid`` is the session's program; with
    ``hangup_leader`` it is asked by HUP, because an interactive shell ignores TERM. Times are monotonic seconds.
    """

    __slots__ = (
        "_asked", "_cookie", "_deadline", "_halted", "_hangup_leader", "_leader_pid", "_phase", "_root_pid", "_strays",
        "grace", "survivors",
    )  # fmt: skip

    def __init__(
        self, root_pid: int, leader_pid: int, cookie: bytes, *, grace: float, now: float, hangup_leader: bool
    ) -> None:
        self._root_pid, self._leader_pid, self._cookie = root_pid, leader_pid, cookie
        self._hangup_leader = hangup_leader
        self._phase = ASKING
        self.grace = grace
        self._deadline = now + grace
        self._asked: set[tuple[int, int]] = set()
        self._halted: set[int] = set()  # of the last look
        self._strays: dict[int, int] = {}  # pid → tick of those found by the cookie, outside the tree perhaps
        self.survivors: list[int] = []
        """Pids that lived on; known when ``finished``."""

    @property
    def finished(self) -> bool:
        """Is there nothing more to do?"""
        return self._phase is FINISHED

    def step(self, now: float) -> float | None:
        """Do what is due; return when to call again, or None when finished.

        It may be called earlier, for example when a child has been reaped: that only makes the stop quicker.
        """
        if self._phase is FINISHED:
            return None
        if self._phase is ASKING:
            self._seek_strays()
            self._phase = GRACE
        members = self._members() or self._last_look()
        if not members:
            self._phase = FINISHED
            return None
        if self._phase is GRACE and (now < self._deadline or not self._asked):
            self._ask(members)
            return max(now, min(now + STOP_POLL, self._deadline))
        if self._phase is GRACE:
            self._phase, self._deadline = KILLING, now + KILL_PATIENCE
        if now >= self._deadline:
            self._phase, self.survivors = FINISHED, sorted(members)
            return None
        self._force()
        return now + STOP_POLL

    def hurry(self, by: float) -> None:
        """End the grace at that time if it would last longer; the present one means that the next step forces."""
        if self._phase in (ASKING, GRACE):
            self._deadline = min(self._deadline, by)

    def _members(self) -> dict[int, int]:
        """Pid → tick of what lives, parents before children."""
        self._halted.clear()
        entries = processes.table()
        self._strays = {
            pid: tick
            for pid, tick in self._strays.items()
            if pid in entries and entries[pid].tick == tick and not entries[pid].gone
        }
        pids = trees.descendants(self._root_pid, entries, strays=self._strays)
        self._halted.update(pid for pid in pids if entries[pid].state in processes.STOPPED_STATES)
        return {pid: entries[pid].tick for pid in pids if pid > 1 and pid != self._root_pid}

    def _seek_strays(self) -> None:
        self._strays.update(trees.carrying(self._cookie))

    def _last_look(self) -> dict[int, int]:
        """Look again, for strays too: one look can miss an orphan that changes its parent meanwhile."""
        self._seek_strays()
        return self._members()

    def _ask(self, members: dict[int, int]) -> None:
        """Ask each one once, also those that have come since; one that is stopped could not answer."""
        for pid, tick in members.items():
            if (pid, tick) not in self._asked:
                self._asked.add((pid, tick))
                hangup = self._hangup_leader and pid == self._leader_pid
                processes.send(pid, tick, _signal.SIGHUP if hangup else _signal.SIGTERM)
            if pid in self._halted:
                processes.send(pid, tick, _signal.SIGCONT)

    def _force(self) -> None:
        for pid, tick in trees.freeze(self._members, FREEZE_ROUNDS).items():
            processes.send(pid, tick, _signal.SIGKILL)


def end_tree(root: int, cookie: bytes) -> tuple[int, ...]:
    """End what is below a process, and what carries the cookie, by force; the pids that survived."""
    ladder = StopLadder(root, 0, cookie, grace=0.0, now=time.monotonic(), hangup_leader=False)
    while (due := ladder.step(time.monotonic())) is not None:
        time.sleep(max(0.0, due - time.monotonic()))
    return tuple(ladder.survivors)
