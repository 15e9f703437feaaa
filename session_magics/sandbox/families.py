"""Killing a program with all that it has started, as far as that can be found."""

from __future__ import annotations

import os
import signal
import time

from session_magics.holder import processes, trees

FREEZE_ROUNDS = 100
"""Looks at the family while it is being frozen; one process that hands on to the next after 5 ms took up to 20, where
eight others wanted the two processors."""
PATIENCE = 2.0
"""Seconds from the KILL until what still lives is given up: a disk that hangs, another user's process."""
STEP = 0.002
"""Seconds between two looks at what was killed: most are gone at the first."""


def kill_group(leader: int) -> None:
    """Kill a process group, at once; ``leader`` has not been reaped."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:
        pass  # macOS: the leader is a zombie and there is nobody else; or all have become another user's


def kill_family(leader: int, cookie: str) -> None:
    """Kill ``leader``, its group and session, their descendants, and what carries the cookie's value.

    ``leader`` is a child of ours that has not been reaped, so that its number is nobody else's.
    """
    mark = f"{trees.RUN}={cookie}".encode()
    # each look seeks strays anew: one forks, and ends
    frozen = trees.freeze(lambda: _members(leader, trees.carrying(mark)), FREEZE_ROUNDS)
    kill_group(leader)
    for pid, tick in frozen.items():
        processes.send(pid, tick, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while any(map(_lives, frozen, frozen.values())) and time.monotonic() < deadline:
        time.sleep(STEP)


def _members(leader: int, strays: dict[int, int]) -> dict[int, int]:
    """Pid → start tick of what lives, and of strays that did a moment ago."""
    entries = processes.table()
    related = [pid for pid, one in entries.items() if leader in (one.pgid, one.sid) and pid != leader]
    known = [pid for pid in (*related, *strays) if pid in entries]
    found = {leader, *trees.descendants(leader, entries, strays=known)}
    return strays | {pid: entries[pid].tick for pid in found if pid in entries and not entries[pid].gone}


def _lives(pid: int, tick: int) -> bool:
    one = processes.entry(pid)
    return one is not None and one.tick == tick and not one.gone
