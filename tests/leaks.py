"""What a test may not leave behind: processes of its sessions, children, threads, descriptors.

A module of its own, so that the checks can be tested themselves.
"""

from __future__ import annotations

import gc
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

# Seconds that what was told to end (a holder, a thread) may take to be gone.
SETTLE = 20.0
STEP = 0.005


@dataclass(frozen=True)
class Baseline:
    """What this process had before a test."""

    threads: frozenset[threading.Thread]
    children: frozenset[int]
    descriptors: frozenset[str]


def baseline() -> Baseline:
    return Baseline(frozenset(threading.enumerate()), frozenset(children()), frozenset(descriptors()))


def children() -> dict[int, psutil.Process]:
    """The direct children of this process, those that nobody waited for included."""
    return {child.pid: child for child in psutil.Process().children()}


def descriptors() -> set[str]:
    """Each open descriptor with what it leads to, as ``7 -> /path``; empty where the system does not tell."""
    folder = Path("/proc/self/fd")
    found = set()
    for number in os.listdir(folder) if folder.is_dir() else ():
        try:
            found.add(f"{number} -> {os.readlink(folder / number)}")
        except OSError:
            continue  # the descriptor of this very listing
    return found


def processes_of(root: Path) -> list[psutil.Process]:
    """The processes that carry, in environment or arguments, the mark of a session below ``root``."""
    marks = {f"SESSION_MAGICS_HOME={root}"}
    if (root / "sessions").is_dir():
        marks |= {f"SESSION_MAGICS_SESSION={name}" for name in os.listdir(root / "sessions")}
    return [
        process for process in psutil.process_iter() if process.pid != os.getpid() and carries(process, marks, root)
    ]


def carries(process: psutil.Process, marks: set[str], root: Path) -> bool:
    """Whether a process has one of the marks; one that is gone or not ours has none."""
    try:
        environment = {f"{name}={value}" for name, value in process.environ().items()}
        return bool(marks & environment) or any(f"{root}{os.sep}" in word for word in process.cmdline())
    except (psutil.Error, OSError):
        return False


def outlived(processes: list[psutil.Process], limit: float | None = None) -> list[psutil.Process]:
    """Wait until these have ended, or the limit (None: SETTLE) is over; those that have not.

    A zombie has ended: some init takes seconds to bury it.
    """
    deadline = time.monotonic() + (SETTLE if limit is None else limit)
    while processes and time.monotonic() < deadline:
        processes = [process for process in processes if lives(process)]
        time.sleep(STEP if processes else 0)
    return processes


def lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def leaked(root: Path, before: Baseline) -> list[str]:
    """Wait until everything is gone or SETTLE is over; kill what is left and return one line for each leak."""
    found = []
    for process in outlived(processes_of(root)):
        found.append(f"process {describe(process)}")
        kill(process)
    for child in unwaited(before):
        found.append(f"child {describe(child)}")
        kill(child)
    for thread in set(threading.enumerate()) - before.threads:
        thread.join(SETTLE)
        if thread.is_alive():
            found.append(f"thread {thread.name}")
    gc.collect()
    gc.freeze()  # what is there need not be looked through after the next test: it took 40 ms and more
    return found + [f"descriptor {line}" for line in sorted(descriptors() - before.descriptors)]


def unwaited(before: Baseline) -> list[psutil.Process]:
    """The new children that nobody has waited for when SETTLE is over: a thread may be about to."""
    deadline = time.monotonic() + SETTLE
    while found := [child for pid, child in children().items() if pid not in before.children]:
        if time.monotonic() > deadline:
            break
        time.sleep(STEP)
    return found


def describe(process: psutil.Process) -> str:
    try:
        return f"{process.pid} ({process.status()}): {' '.join(process.cmdline()) or process.name()}"
    except psutil.Error:
        return f"{process.pid} (gone meanwhile)"


def kill(process: psutil.Process) -> None:
    try:
        process.kill()
        process.wait(SETTLE)
    except psutil.Error:
        pass  # gone meanwhile
