"""Sessions whose terminal tmux has: what their tests need and start, and what is seen of them from outside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import leaks
from rounds import DEADLINE
from session_magics import Registry, Session

# Of each module of these tests.
NEEDED = [
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc"),
]
PYTHON = (sys.executable, "-I", "-S", "-u", "-c")
STUBBORN = "import signal, time\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\nprint('ready')\ntime.sleep(1000)"


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    opened = Registry(root, backend="tmux")
    yield opened
    opened.stop_all(now=True)


def run(session: Session) -> tuple[int, int]:
    """Holder and program."""
    record = session._store.run(session.id)
    assert record
    return record.holder, record.pid


def server_of(session: Session) -> psutil.Process:
    """The tmux server, which is the parent of the pane's process, and that of the program."""
    server = psutil.Process(run(session)[1]).parents()[1]
    assert server.name().startswith("tmux"), server
    return server


def ask(session: Session, *words: str) -> str:
    """What tmux answers, asked as a person in another terminal would."""
    argv = ["tmux", "-S", str(session.directory / "tmux"), *words]
    return subprocess.run(argv, check=True, capture_output=True, text=True, env=plain()).stdout.strip()


def plain() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in ("TMUX", "TMUX_PANE")}


def gone(*processes_: psutil.Process) -> None:
    left = leaks.outlived(processes_, DEADLINE)
    assert not left
