"""What a test does to a session from outside: to its holder, to its records, and by the command line."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil

from rounds import DEADLINE, alive, until
from session_magics import Session
from session_magics.cli.main import main
from session_magics.holder import launch, processes
from session_magics.store.states import RunRecord, read_run
from terminals import CLI


def command_line(*words: str, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Status, standard output and standard error of one command line."""
    done = subprocess.run(
        (*CLI, *words),
        capture_output=True,
        text=True,
        timeout=2 * DEADLINE,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **(env or {})},
    )
    return done.returncode, done.stdout, done.stderr


def carried_out(*words: str) -> tuple[int, str, str]:
    """The same of one that is carried out in this process, which takes the tenth of the time."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
    return status, out.getvalue(), err.getvalue()


def record(session: Session) -> RunRecord:
    """What the holder wrote about the newest generation."""
    found = read_run(str(session.directory))
    assert found is not None
    return found


def kill(pid: int) -> None:
    """SIGKILL, and wait until nothing of the process is left but its name."""
    tick = processes.start_tick(pid)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not alive(pid, tick))


def kill_holder(session: Session, *, program: bool = True) -> None:
    """End the holder as the system does that is out of memory; its program goes with it unless it is spared."""
    run = record(session)
    kill(run.holder)
    if program:
        until(lambda: not alive(run.pid, run.tick))


def rewrite(session: Session, **fields: object) -> None:
    """Change the run record, as if it had been written in another life."""
    path = session.directory / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


@contextlib.contextmanager
def stopped(pid: int) -> Iterator[None]:
    """A process that does not run meanwhile."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def cap_logs(monkeypatch: object, cap: int) -> None:
    """Have sessions that are started from now on keep so many bytes of their output."""
    plain = launch.encode
    monkeypatch.setattr(launch, "encode", lambda **fields: plain(**fields, cap=b"%d" % cap))  # type: ignore[attr-defined]


def kept_bytes(directory: Path) -> int:
    """Bytes of output on disk."""
    total = 0
    for path in directory.glob("log.0*"):
        with contextlib.suppress(FileNotFoundError):  # dropped meanwhile
            total += path.stat().st_size
    return total


def memory(pid: int) -> int:
    """Bytes of memory that a process has for itself."""
    return int(psutil.Process(pid).memory_info().rss)
