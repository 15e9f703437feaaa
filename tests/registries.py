"""Fixtures: a registry over functions instead of programs, and one over real programs."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from session_magics import Registry
from session_magics.testing import FakeBackend, FakeTerminal, Signalled, script


def forever(terminal: FakeTerminal) -> None:
    terminal.write("ready\n")
    terminal.pause()


def stubborn(terminal: FakeTerminal) -> None:
    while True:
        try:
            terminal.pause()
        except Signalled as signalled:
            if signalled.number == signal.SIGKILL:
                raise


@pytest.fixture
def fake(root: Path) -> Iterator[Registry]:
    """A registry over functions instead of programs."""
    programs = {"forever": forever, "stubborn": stubborn, "true": script(), "false": script(code=1)}
    with FakeBackend(programs, cells=lambda terminal, text: 0) as backend:
        yield Registry(root, backend=backend)


@pytest.fixture
def real(root: Path) -> Iterator[Registry]:
    registry = Registry(root)
    yield registry
    registry.stop_all(now=True)
