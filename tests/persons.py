"""A person who answers the questions of commands, and cells that are run for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from session_magics import CellResult, Registry, Session, run_cell
from session_magics.run import Silent
from session_magics.shell import Cell


@pytest.fixture
def session(root: Path) -> Iterator[Session]:
    registry = Registry(root)
    yield registry.shell("main", rc=False)
    registry.stop_all(now=True)


class Person:
    """An Asker that answers at once, in order; an answer may be a function that is called when it is looked for."""

    def __init__(self, *answers: str | Callable[[], str | None]) -> None:
        self.asked: list[tuple[str, bool]] = []
        self._answers = list(answers)
        self._open = False

    def ask(self, prompt: str, *, masked: bool) -> None:
        assert not self._open, "a second question while the first one is open"
        self.asked.append((prompt, masked))
        self._open = True

    def answer(self) -> str | None:
        if not self._open or not self._answers:
            return None
        first = self._answers[0]
        value = first() if callable(first) else first
        if value is not None:
            self._answers.pop(0)
            self._open = False
        return value


class Notices(Silent):
    """A sink that keeps our own lines, and what has come so far."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.output = b""

    def advance(self, cell: Cell, upto: int) -> None:
        self.output = cell.output()

    def notice(self, line: str) -> None:
        self.lines.append(line)


def play(session: Session, body: str, person: Person | None, sink: Notices | None = None) -> tuple[str, CellResult]:
    """Run a cell; its output and result."""
    result = run_cell(session, body, asker=person, sink=sink, timeout=30, check=False)
    return session.output(result.begin, result.end).decode(), result
