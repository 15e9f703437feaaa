"""What the processes of sessions use: processor, memory, ports they listen on. Asked of the system through psutil."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from session_magics.errors import StoreError
from session_magics.holder import processes, trees
from session_magics.model import Exited, SessionInfo
from session_magics.store.records import RunRecord, read_run

PORTS_EVERY = 3.0
"""Seconds for which known ports are taken to be right: to find them costs as much as all the rest together."""
SHORTEST = 0.2
"""Seconds between two measurements of the processor; the ticks it is counted in are 0.01 s long."""


@dataclass(frozen=True)
class Usage:
    """What all processes of one session use together."""

    cpu: float
    """Percent of one core: since the measurement before, or on average since the start if this is the first one."""
    memory: int
    """Resident bytes; what several processes share counts in each."""
    ports: tuple[int, ...]
    """TCP ports that one of them listens on, in order."""


@dataclass(frozen=True)
class _Count:
    """Processor seconds used by a moment (monotonic), and the percentage that followed from them."""

    seconds: float
    at: float
    cpu: float


class UsageMeter:
    """Measures, and remembers what the next measurement is compared with. For one thread."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, int], _Count] = {}
        self._ports: dict[int, set[int]] = {}
        self._ports_of: frozenset[int] = frozenset()
        self._ports_at = 0.0

    def measure(self, infos: Iterable[SessionInfo]) -> dict[str, Usage]:
        """Return id → usage for those sessions of which a process lives; what cannot be read counts as nothing."""
        here = [info for info in infos if info.on is None and _lives(info)]
        runs = {(info.id, info.generation): run for info in here if (run := _run(info.directory))}
        if not runs:
            self._counts.clear()
            return {}
        entries = processes.table()
        families = trees.children(entries)
        below = {key: tree for key, run in runs.items() if (tree := trees.descendants(run.holder, entries, families))}
        ports = self._listeners({pid for tree in below.values() for pid in tree})
        used, counts = {}, {}
        for key, tree in below.items():
            counts[key] = self._count(key, runs[key], tree)
            listened = sorted(set().union(*(ports.get(pid, ()) for pid in tree)))
            used[key[0]] = Usage(counts[key].cpu, _memory(tree), tuple(listened))
        self._counts = counts
        return used

    def _count(self, key: tuple[str, int], run: RunRecord, tree: Sequence[int]) -> _Count:
        now, before = time.monotonic(), self._counts.get(key)
        if before is not None and now - before.at < SHORTEST:
            return before
        seconds = _processor_seconds(run.holder, tree)
        if before is not None:
            used, over = seconds - before.seconds, now - before.at
        else:
            used, over = seconds, max(time.time() - run.since, SHORTEST)
        return _Count(seconds, now, max(0.0, 100 * used / over))

    def _listeners(self, pids: Collection[int]) -> Mapping[int, set[int]]:
        now = time.monotonic()
        if now - self._ports_at >= PORTS_EVERY or not self._ports_of.issuperset(pids):
            self._ports, self._ports_at, self._ports_of = listeners(pids), now, frozenset(pids)
        return self._ports


def listeners(pids: Collection[int]) -> dict[int, set[int]]:
    """Return pid → TCP ports it listens on, for those of the processes that do and that may be asked."""
    import psutil

    found: dict[int, set[int]] = {}
    if sys.platform == "linux":  # one look at all; elsewhere only root may have that
        pairs = [(pid, one) for one in psutil.net_connections("tcp") if (pid := one.pid) is not None and pid in pids]
    else:
        pairs = [(pid, one) for pid in pids for one in _connections(pid)]
    for pid, connection in pairs:
        if connection.status == psutil.CONN_LISTEN and connection.laddr:
            found.setdefault(pid, set()).add(connection.laddr.port)
    return found


def _connections(pid: int) -> Sequence:  # type: ignore[type-arg]
    import psutil

    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).net_connections("tcp")
    return ()


def _lives(info: SessionInfo) -> bool:
    return info.running or (isinstance(info.state, Exited) and info.state.background)


def _run(directory: Path) -> RunRecord | None:
    with contextlib.suppress(StoreError, OSError, ValueError):
        return read_run(str(directory))
    return None


def _processor_seconds(holder: int, tree: Iterable[int]) -> float:
    """Seconds used by a tree from its beginning on, also by those of its processes that have ended.

    A parent that has waited for a child has that child's time; for those without a parent the holder waits.
    """
    import psutil

    seconds = 0.0
    for pid in (holder, *tree):
        with contextlib.suppress(psutil.Error):
            times = psutil.Process(pid).cpu_times()
            seconds += times.children_user + times.children_system
            seconds += times.user + times.system if pid != holder else 0.0
    return seconds


def _memory(tree: Iterable[int]) -> int:
    import psutil

    total = 0
    for pid in tree:
        with contextlib.suppress(psutil.Error):
            total += psutil.Process(pid).memory_info().rss
    return total
