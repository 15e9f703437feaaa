"""Fixtures: a registry root of its own for each test, real kernels, and the check that nothing is left behind."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import HealthCheck, settings
from jupyter_core.utils import ensure_event_loop

import disks
import leaks
import registries
from cell_kernel import Kernel
from score_cells import Record

fake, real, disk, mount_disk = registries.fake, registries.real, disks.disk, disks.mount_disk

# Seconds for a cell of a test; far more than any needs.
CELL_LIMIT = 30.0

# How long an example takes says more of what else the machine does than of the example.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    # Here and not where it matters most, as only the conftest files of the folders that pytest is given are asked.
    parser.addoption("--full", action="store_true", help="as many rounds as a release needs (SESSION_MAGICS_FULL=1)")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--full"):
        os.environ["SESSION_MAGICS_FULL"] = "1"  # before the modules of tests, which ask for it, are imported
    # A run in the background ignores some signals, and what tests start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture(scope="session")
def client_loop() -> Iterator[None]:
    """The event loop that jupyter_client opens at its first use and keeps for the thread: no test's leak."""
    loop = ensure_event_loop()
    yield
    loop.close()


@pytest.fixture
def root(client_loop: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A fresh root of the registry, named by SESSION_MAGICS_HOME; a leak of any kind fails the test at its end.

    It lies directly in the temporary directory, as a socket's path may have 107 bytes at most.
    """
    place = Path(tempfile.mkdtemp(prefix="sm"))
    monkeypatch.setenv("SESSION_MAGICS_HOME", str(place))
    before = leaks.baseline()
    yield place
    found = leaks.leaked(place, before)
    shutil.rmtree(place, ignore_errors=True)
    if found:
        pytest.fail("left behind:\n  " + "\n  ".join(found), pytrace=False)


@dataclass(frozen=True)
class Outcome:
    """What came back for one cell: reply status, visible text, ``ename: evalue`` of its error, all of the record."""

    status: str
    text: str
    error: str
    record: Record


class LiveKernel:
    """A real kernel in scratch directories of its own, with the extension loaded: ipykernel, or a shell kernel."""

    def __init__(self, root: Path, env: Mapping[str, str] = MappingProxyType({}), target: str = "session") -> None:
        self.cells = Kernel(target, sys.executable, {"env": {"SESSION_MAGICS_HOME": str(root), **env}})

    def start(self) -> None:
        wrong = self.cells.start()
        if wrong:
            raise RuntimeError(f"{wrong}: {self.cells.last_words()}")

    @property
    def pid(self) -> int:
        return int(self.cells.pid)

    def run(self, code: str, *, limit: float = CELL_LIMIT, **step: object) -> Outcome:
        """Run one cell to its end; ``step`` takes the keys of a case's step, such as stdin or interrupt_after."""
        record = self.cells.execute(code, limit, step)
        if record.trouble:
            raise TimeoutError(f"{record.trouble}; so far {record.text()[-200:]!r}")
        return Outcome(record.reply["status"], record.text(), record.failure() if record.error else "", record)

    def stop(self, how: str = "now") -> list[str]:
        """End the kernel: "now", "shutdown" or "kill"; return the command lines that outlive the last two."""
        return self.cells.stop(how)


@pytest.fixture
def kernel(root: Path) -> Iterator[LiveKernel]:
    """A kernel for one test. All that it started is killed at the end, detached sessions included."""
    live = LiveKernel(root)
    try:
        live.start()
        yield live
    finally:
        live.stop()
