"""How often a test repeats what may go wrong once in many, how it waits, and sessions that end with the test.

``SESSION_MAGICS_FULL=1`` asks for the full counts, which take minutes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from session_magics import Registry
from session_magics.holder import processes
from session_magics.model import State

Thing = TypeVar("Thing")
Count = TypeVar("Count", int, float)
DEADLINE = 20.0  # seconds until a test gives up waiting for a condition


def rounds(usual: Count, full: Count) -> Count:
    """The number of rounds of a test in this run; or whatever else depends on that."""
    return full if os.environ.get("SESSION_MAGICS_FULL") else usual


def some(things: Sequence[Thing], every: int) -> Sequence[Thing]:
    """Of many alike, those that are tried in this run: every so many, or all."""
    return things[:: rounds(every, 1)]


def until(condition: Callable[[], object], limit: float = DEADLINE, *, what: object = "") -> float:
    """Wait for a condition; the seconds that took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() < began + limit, f"waited {limit:g} s in vain: {what() if callable(what) else what}"
        time.sleep(0.002)
    return time.monotonic() - began


def alive(pid: int, tick: int) -> bool:
    """Whether the process that started at ``tick`` still runs."""
    one = processes.entry(pid)
    return one is not None and one.tick == tick and not one.gone


@contextmanager
def sessions(root: Path) -> Iterator[Registry]:
    """A registry whose sessions are all stopped at the end."""
    registry = Registry(root)
    try:
        yield registry
    finally:
        registry.stop_all(now=True)


def until_gone(session: object) -> State:
    """Wait until a session has ended and its holder has gone with it; its state, which no more changes."""
    until(lambda: not getattr(session.state(), "background", True), what=session.state)
    return session.state()


def until_state(session: object, kind: type[State], limit: float = DEADLINE) -> State:
    """Wait until the state of a session is of one kind; that state."""
    until(lambda: isinstance(session.state(), kind), limit, what=session.state)
    return session.state()
