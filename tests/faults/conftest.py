"""Fixtures of the fault suite: patience, and what only root can have: small disks, PID namespaces, traces."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

import registries
from disks import need_root
from held import cap_logs
from rounds import sessions
from session_magics import Registry
from session_magics.backends import native

real = registries.real

PROJECT = str(Path(__file__).parents[2])
# Seconds for one test with the full counts; the longest here takes about twenty minutes.
FULL_LIMIT = 3600.0
# Seconds for a program in a namespace or under a trace.
PROGRAM_LIMIT = 120.0
PREAMBLE = f"import sys; sys.path[:0] = [{PROJECT!r}, {PROJECT + '/tests'!r}]\n"
SIGNALS = "kill,tkill,tgkill,pidfd_send_signal,rt_sigqueueinfo,rt_tgsigqueueinfo"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if config.getoption("--full") and item.path.is_relative_to(here):
            item.add_marker(pytest.mark.timeout(FULL_LIMIT), append=False)


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    """A registry of real programs, all stopped at the end."""
    with sessions(root) as opened:
        yield opened


@pytest.fixture
def capped(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """``capped(bytes)``: what sessions that are started from now on keep of their output."""
    return partial(cap_logs, monkeypatch)


# ----------------------------------------- programs in a namespace, under a trace


@pytest.fixture
def pid_namespace() -> Callable[..., str]:
    """``pid_namespace(code, *arguments)``: what Python printed as PID 1 of a namespace of its own.

    It can import the package and the modules of tests. It reaps nobody unasked, and all in there ends with it.
    """
    need_root("a PID namespace")
    enter = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if not shutil.which("unshare") or subprocess.run([*enter, "true"], capture_output=True).returncode:
        pytest.skip("this system gives no PID namespace (unshare --pid --fork --mount-proc)")

    def run(code: str, *arguments: object, limit: float = PROGRAM_LIMIT) -> str:
        return python(enter, code, arguments, limit)

    return run


@pytest.fixture
def traced() -> Callable[..., list[str]]:
    """``traced(code, *arguments, calls=…)``: the system calls of those names that Python made, children included.

    Each is one line of strace. Without ``calls``: whatever sends a signal.
    """
    strace = shutil.which("strace")
    if not strace or subprocess.run([strace, "-o", os.devnull, "true"], capture_output=True).returncode:
        pytest.skip("watching system calls needs strace, and leave to trace")

    def run(code: str, *arguments: object, calls: str = SIGNALS, limit: float = PROGRAM_LIMIT) -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder, "trace")
            command = [strace, "-f", "-qq", "-e", f"trace={calls}", "-e", "signal=none", "-o", str(trace)]
            python(command, code, arguments, limit)
            return [line for line in trace.read_text().splitlines() if re.match(r"\d+ +\w+\(", line)]

    return run


def python(before: list[str], code: str, arguments: tuple[object, ...], limit: float) -> str:
    """Run Python behind another program; what it printed."""
    command = [*before, sys.executable, "-c", PREAMBLE + code, *map(str, arguments)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


# ----------------------------------------------------------------------- clock

HOLDER_WITH_CLOCK = """
import runpy, time
real = time.time
def shifted():
    with open({offset!r}) as file:
        return real() + float(file.read())
time.time = shifted
runpy.run_path({holder!r}, run_name="__main__")
"""


class Clock:
    """The wall clock as this process and its holders see it; durations are not touched, as with a real step."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "offset"
        self.offset = 0.0
        self.step(0.0)

    def step(self, seconds: float) -> None:
        """Move the clock by so much, for all at once."""
        self.offset += seconds
        new = self._file.with_suffix(".new")
        new.write_text(str(self.offset))
        new.replace(self._file)


@pytest.fixture
def clock(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A wall clock that a test can step. Holders started from now on have it too; times of files stay real.

    No namespace has a wall clock of its own, and stepping the machine's would hit everybody on it.
    """
    clock = Clock(tmp_path)
    real_time, real_nanoseconds = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: real_time() + clock.offset)
    monkeypatch.setattr(time, "time_ns", lambda: real_nanoseconds() + int(clock.offset * 1e9))
    holder = tmp_path / "holder.py"
    holder.write_text(HOLDER_WITH_CLOCK.format(offset=str(tmp_path / "offset"), holder=str(native.HOLDER)))
    monkeypatch.setattr(native, "HOLDER", holder)
    return clock
