"""What the tests of ``attach`` are attached to, and whether a terminal is left as it was."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rounds import DEADLINE, sessions, until
from session_magics import Command, Registry, Session
from terminals import KEYS, Terminal

PROMPT = "ready> "


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    with sessions(root) as registry:
        yield registry


def shell(registry: Registry, name: str = "s") -> Session:
    env = {"PS1": PROMPT, "PROMPT_COMMAND": None, "HISTFILE": None}
    session = registry.start(name, Command(("bash", "--norc", "--noprofile"), env=env))
    session.wait_for(PROMPT, DEADLINE)
    return session


def keys(registry: Registry, begin: str = "", name: str = "k") -> Session:
    session = registry.start(name, Command((sys.executable, "-c", KEYS, begin)))
    return printed(session, b"ready")


def printed(session: Session, data: bytes) -> Session:
    """The session, once it has printed that, on whichever screen."""
    until(lambda: data in session.output(), what=session.output)
    return session


def settled(terminal: Terminal) -> None:
    """The terminal is as it was: its modes, and what the program had switched on."""
    until(lambda: terminal.restored, what="termios")
    until(lambda: terminal.switched() == {}, what=terminal.switched)
