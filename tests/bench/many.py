"""A hundred sessions at once: starting them, what each costs in memory and idle CPU, stopping them."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from report import Figure, median
from rig import running_kernel, scratch

SESSIONS = 100
# Seconds over which the idle CPU time of all holders is taken.
IDLE = 10.0
START = f"""
for _number in range({SESSIONS}):
    _ = get_ipython().run_line_magic("session", f"start s{{_number}} -- sleep 1000")
"""
LIST = "_ = %session list"
STOP = "_ = %session stop --all"


def holders(root: Path) -> list[psutil.Process]:
    """The holders of all sessions below a root, as their run records name them."""
    records = [json.loads(path.read_text()) for path in root.glob("sessions/*/run.json")]
    return [psutil.Process(record["holder"]) for record in records]


def proportional(process: psutil.Process) -> float:
    """Megabytes of memory that are a process's own, shared pages counted by share (PSS)."""
    text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    [line] = [line for line in text.splitlines() if line.startswith("Pss:")]
    return int(line.split()[1]) / 1024


def cpu_seconds(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def popen_seconds() -> float:
    """What starting as many plain processes costs."""
    start = time.perf_counter()
    started = [subprocess.Popen(["sleep", "1000"]) for _ in range(SESSIONS)]
    seconds = time.perf_counter() - start
    for process in started:
        process.kill()
        process.wait()
    return seconds


def hundred() -> Iterator[Figure]:
    """All figures of one run."""
    plain = popen_seconds()
    with scratch() as root, running_kernel(environment={"SESSION_MAGICS_HOME": str(root)}) as kernel:
        start = kernel.good(START).seconds
        alive = holders(root)
        if len(alive) != SESSIONS:
            raise RuntimeError(f"{len(alive)} holders found, {SESSIONS} sessions started")
        memory = [proportional(process) for process in alive]
        before, since = cpu_seconds(alive), time.perf_counter()
        time.sleep(IDLE)
        cpu = (cpu_seconds(alive) - before) / (time.perf_counter() - since) * 100
        listing = kernel.good(LIST).seconds
        pids = [child.pid for process in alive for child in process.children(recursive=True)]
        stop = kernel.good(STOP).seconds
        left = [pid for pid in pids if psutil.pid_exists(pid)]
    yield Figure(f"{SESSIONS} sessions: start all", start, "s")
    yield Figure(f"{SESSIONS} sessions: start all / {SESSIONS} × Popen", start / plain, "×")
    yield median(f"{SESSIONS} sessions: memory of a holder (PSS)", memory, "MB", 4)
    yield Figure(f"{SESSIONS} sessions: CPU of all holders, idle", cpu, "%", 0.5)
    yield Figure(f"{SESSIONS} sessions: list", listing * 1000, "ms")
    yield Figure(f"{SESSIONS} sessions: stop all", stop, "s")
    yield Figure(f"{SESSIONS} sessions: processes left after stop", len(left), "", 0)
