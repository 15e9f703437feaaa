"""What the tests of the comparison with an older registry start with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from session_magics import Command, Registry, Session

SLEEP = Command(("sleep", "1000"))


@pytest.fixture(params=["native", "tmux"])
def registry(root: Path, request: pytest.FixtureRequest) -> Iterator[Registry]:
    """One registry over each of the two that hold sessions."""
    opened = Registry(root, backend=request.param)
    yield opened
    opened.stop_all(now=True)


def sh(script: str, **env: str) -> Command:
    return Command(("sh", "-c", script), env=env)


def program_of(session: Session) -> tuple[int, int]:
    """Pid and start tick."""
    record = session._store.run(session.id)
    assert record is not None
    return record.pid, record.tick
