"""A large registry: listing 1000 sessions that have ended beside 200 that run, and 200 starts at once."""

from __future__ import annotations

import contextlib
import os
import signal
import statistics
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from many import cpu_seconds, holders, proportional
from report import Figure, median
from rig import scratch
from session_magics import Command, Registry
from session_magics.listing import Observer, table
from terminals import CLI

FINISHED, RUNNING, STOPPED = 1000, 200, 5
ROUNDS = 40
# How many make the sessions that are listed: more would only wait for the processors.
MAKERS = 8
# Between two listings, so that the processor's use is measured anew each time; a page asks once a second.
PAUSE = 0.3
# Seconds over which the idle CPU time of all holders is taken.
IDLE = 10.0
SLEEP = Command(("sleep", "1000"))


def listed() -> Iterator[Figure]:
    """`list` with processor, memory, ports and last line: 1000 sessions that have ended, 200 that run."""
    with scratch() as root:
        registry = Registry(root)
        try:
            with ThreadPoolExecutor(MAKERS) as makers:
                ended = Command(("sh", "-c", "echo done; exit 3"))
                running = Command(("sh", "-c", "echo running; exec sleep 1000"))
                list(makers.map(lambda number: registry.start(f"f{number}", ended).wait(), range(FINISHED)))
                list(makers.map(lambda number: registry.start(f"r{number}", running), range(RUNNING)))
            plain = _seconds(registry)
            frozen = [parent_pid(info.pid) for info in registry.infos() if info.pid][-STOPPED:]
            with _stopped(frozen):
                slowed = _seconds(registry)
            command_line = [_command_line(root) for _ in range(ROUNDS // 4)]
        finally:
            registry.stop_all(now=True)
    yield Figure(f"list of {FINISHED} ended, {RUNNING} running: 95 of 100", _p95(plain) * 1000, "ms", 150)
    yield median("the same, median", [one * 1000 for one in plain], "ms")
    with_stopped = (statistics.median(slowed) - statistics.median(plain)) * 1000
    yield Figure(f"more with {STOPPED} stopped holders, median", with_stopped, "ms", 10)
    yield Figure(f"more with {STOPPED} stopped holders, 95 of 100", (_p95(slowed) - _p95(plain)) * 1000, "ms")
    yield median("session-magics list, the whole command", [one * 1000 for one in command_line], "ms")


def parent_pid(pid: int) -> int:
    """The holder of a program."""
    return psutil.Process(pid).ppid()


def _seconds(registry: Registry) -> list[float]:
    observer, taken = Observer(), []
    table(observer.rows(registry.infos()))  # what is read for the first time
    for _ in range(ROUNDS):
        time.sleep(PAUSE)
        began = time.perf_counter()
        table(observer.rows(registry.infos()))
        taken.append(time.perf_counter() - began)
    return taken


def _p95(values: list[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


def _command_line(root: Path) -> float:
    began = time.perf_counter()
    environment = os.environ | {"SESSION_MAGICS_HOME": str(root)}
    subprocess.run((*CLI, "list"), stdout=subprocess.DEVNULL, check=True, env=environment)
    return time.perf_counter() - began


@contextlib.contextmanager
def _stopped(pids: list[int]) -> Iterator[None]:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def at_once() -> Iterator[Figure]:
    """200 starts at once, each from a thread of its own, until all are ready; what they cost idle."""
    with scratch() as root:
        registry = Registry(root)
        try:
            began = time.perf_counter()
            with ThreadPoolExecutor(RUNNING) as starters:
                list(starters.map(lambda number: registry.start(f"s{number}", SLEEP), range(RUNNING)))
            ready = time.perf_counter() - began
            alive = holders(root)
            memory = [proportional(process) for process in alive]
            before, since = cpu_seconds(alive), time.perf_counter()
            time.sleep(IDLE)
            cpu = (cpu_seconds(alive) - before) / (time.perf_counter() - since) * 100
            states = sum(info.running for info in registry.infos())
        finally:
            began = time.perf_counter()
            registry.stop_all(now=True)
    yield Figure(f"{RUNNING} starts at once: all ready", ready, "s", 6)
    yield Figure("not running", RUNNING - states, "", 0)
    yield median("memory of a holder (PSS)", memory, "MB", 3.5)
    yield Figure("CPU of all holders, idle", cpu, "%", 1)
    yield Figure("stopping all", time.perf_counter() - began, "s")
