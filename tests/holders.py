"""The holder of a session as a process: its pid, and what it uses of descriptors, memory and time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from session_magics import Command, Registry, Session
from session_magics.log import EventReader
from session_magics.store.states import read_run

MB = 1024 * 1024


def holder(session: Session) -> int:
    """The pid of the holder by the run record."""
    record = read_run(str(session.directory))
    assert record
    return record.holder


def descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def memory(pid: int, what: str = "VmRSS") -> int:
    """Bytes of memory that a process has now, or by ``VmHWM`` had at most."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(what)


def share(pid: int) -> int:
    """Bytes of memory with shared pages counted by share (PSS)."""
    return _rolled_up(pid, "Pss:")


def private(pid: int) -> int:
    """Bytes of memory that are a process's own."""
    return _rolled_up(pid, "Private_")


def bare() -> int:
    """What an interpreter has that does nothing."""
    command = [sys.executable, "-I", "-S", "-c", "print(flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        size = private(process.pid)
        process.communicate(b"\n")
    return size


def _rolled_up(pid: int, begin: str) -> int:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith(begin))


def cpu(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def faults(session: Session) -> list[object]:
    """What the holder has recorded of exceptions that nobody caught."""
    return [event.data for event in EventReader(session.directory).events()[0] if event.kind == "fault"]


@pytest.fixture
def echoing(registry: Registry) -> Iterator[Session]:
    """A program that echoes what it is sent, and has to outlive whatever the test does to its holder."""
    started = registry.start("cat", Command(("sh", "-c", "stty raw -echo; echo up; exec cat")))
    started.wait_for("up", 10)
    state = started.state()
    yield started
    assert started.state() == state
    assert faults(started) == []
