"""Waiting for a session to be ready: a port that it listens on, or silence."""

from __future__ import annotations

import contextlib
import time

from session_magics.errors import SessionError, SessionNotRunning, UsageMistake, WaitTimeout
from session_magics.holder import trees
from session_magics.log import log_end
from session_magics.model import describe
from session_magics.session import Session
from session_magics.store.records import read_run
from session_magics.usage import listeners

PORT_STEP = 0.05
"""Seconds between two looks at the ports: the system tells nobody when one is opened. A look takes some 0.03 s."""


def wait_port(session: Session, port: int | None = None, timeout: float | None = None) -> int:
    """Wait until a process of the session listens on a TCP port (None: on any); the port.

    Args:
        timeout: seconds; None: as long as the program runs.

    Raises:
        WaitTimeout: it did not in time; the session goes on.
        SessionNotRunning: the program ended without it.
        UsageMistake: it runs elsewhere.
    """
    if place := session.info().on:
        raise UsageMistake(f"{session.name!r} is on {place}, and ports are seen on this machine: wait for its output")
    deadline = None if timeout is None else time.monotonic() + timeout
    what = f"port {port}" if port else "a port"
    with session.news() as news:
        while True:
            running = news.running()
            for found in sorted(_ports(session)):
                if port in (None, found):
                    return found
            if not running:
                raise SessionNotRunning(session.name, f"{describe(session.state())} before it listened on {what}")
            if deadline is not None and time.monotonic() >= deadline:
                raise WaitTimeout(session.name, what, timeout or 0.0)
            time.sleep(PORT_STEP)


def _ports(session: Session) -> set[int]:
    with contextlib.suppress(SessionError, OSError, ValueError):
        run = read_run(str(session.directory))
        if run is not None:
            return set().union(*listeners(trees.descendants(run.holder)).values())
    return set()


def wait_silence(session: Session, seconds: float, timeout: float | None = None) -> None:
    """Wait until the program has printed nothing for so many seconds; its end is silence too.

    Args:
        timeout: seconds; None: as long as it takes.

    Raises:
        WaitTimeout: it went on printing; the session goes on.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    with session.news() as news:
        while news.running():
            end, quiet_at = log_end(str(session.directory)), time.monotonic() + seconds
            while log_end(str(session.directory)) == end and news.running():
                if deadline is not None and time.monotonic() >= deadline:
                    raise WaitTimeout(session.name, f"{seconds:g} s of silence", timeout or 0.0)
                limits = [quiet_at, *([deadline] if deadline is not None else [])]
                if not news.wait(end, min(limits)) and time.monotonic() >= quiet_at:
                    return
