"""From a cell and a cursor to completions: whom to ask, and how long to wait."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

from session_magics.completion import Completions
from session_magics.completion.asking import KNOWN, Answer, answers, question
from session_magics.completion.lexing import Place, place
from session_magics.completion.sideshell import asked_aside
from session_magics.completion.words import Word
from session_magics.completion.writing import written
from session_magics.errors import SessionBusy, SessionError, UsageMistake
from session_magics.listing import directory
from session_magics.model import SessionInfo
from session_magics.programs import find_shell
from session_magics.run import run_hidden
from session_magics.session import Session

ANSWER_LIMIT = 0.15
"""Seconds that a page is kept waiting at most."""
COMMAND_KINDS = frozenset(("alias", "builtin", "command", "function", "keyword"))


class Completer:
    """Completes shell text, in any thread. Remembers of each session what it needs while that is busy.

    ``limit``: seconds for an answer; what is not known by then is left out.
    """

    def __init__(self, limit: float = ANSWER_LIMIT) -> None:
        self._limit = limit
        self._known: dict[str, Known] = {}

    def complete(
        self,
        body: str,
        cursor: int,
        session: Session | None,
        program: str,
        cwd: str | None = None,
        *,
        aside: bool = False,
    ) -> Completions:
        """What could stand at the cursor of a cell's text.

        Args:
            body: the text of the cell.
            cursor: code points of it before the cursor.
            session: the shell session that would run it. None, busy or not answering: what is known without it.
            program: the shell, by name or path, if there is no session.
            cwd: the directory in which it would begin, if there is no session; None: the present one.
            aside: have no session asked, as if all were busy.
        """
        found = place(body, cursor)
        if found.kind == "nothing":
            return Completions(cursor, cursor)
        asked = _Asked(found, body, time.monotonic() + self._limit)
        if session is not None and (info := session.info()).shell is not None and info.running:
            return written(found, cursor, self._of_session(asked, session, info, info.shell, aside=aside))
        path, dialect = find_shell(program)
        return written(found, cursor, asked.aside(path, dialect, cwd))

    def _of_session(
        self, asked: _Asked, session: Session, info: SessionInfo, dialect: str, *, aside: bool
    ) -> list[Answer]:
        known = self._known.get(info.id, Known())
        if aside:
            return known.added(asked, info, dialect)
        here = None if info.on else directory(info)
        try:
            given = answers(run_hidden(session, asked.text(dialect), limit=asked.left).records)
        except SessionBusy:
            return known.added(asked, info, dialect)
        except SessionError:  # it does not answer in time
            return known.fitting(asked.found)
        self._known[info.id] = Known.of(given)
        return given if info.on else asked.with_programmable(given, dialect, here)


@dataclass(frozen=True)
class Known:
    """What a shell had when it was last asked."""

    path: str | None = None
    names: tuple[Answer, ...] = ()

    @classmethod
    def of(cls, given: Iterable[Answer]) -> Known:
        """Out of what it answered."""
        path = next((one.text for one in given if one.kind == "path"), None)
        return cls(path, tuple(one for one in given if one.kind.startswith(KNOWN)))

    def fitting(self, found: Place) -> list[Answer]:
        """The names that could stand at the place."""
        kinds = {"variable": ("variable",), "command": ("alias", "function")}.get(found.kind, ())
        names = [Answer(one.kind.removeprefix(KNOWN), one.text) for one in self.names]
        return [one for one in names if one.kind in kinds and one.text.startswith(found.word.literal or "")]

    def added(self, asked: _Asked, info: SessionInfo, dialect: str) -> list[Answer]:
        """Those, and what a fresh shell says in the directory where the busy one is."""
        names, cwd = self.fitting(asked.found), None if info.on else directory(info)
        return names if cwd is None else names + asked.aside(info.argv[0], dialect, cwd, self.path)


@dataclass(frozen=True)
class _Asked:
    """One question, and until when it is to be answered."""

    found: Place
    body: str
    deadline: float

    @property
    def left(self) -> float:
        """Seconds."""
        return max(0.0, self.deadline - time.monotonic())

    def text(self, dialect: str) -> str:
        """What a shell is given to run."""
        return question(self.found, self.body, dialect, self.left)

    def aside(self, program: str, dialect: str, cwd: str | None, path: str | None = None) -> list[Answer]:
        """What a fresh shell says."""
        given = self._fresh(program, self.text(dialect), cwd, path)
        return self.with_programmable(given, dialect, cwd)

    def with_programmable(self, given: list[Answer], dialect: str, cwd: str | None) -> list[Answer]:
        """For shells that know nothing of a command's own words: those that bash knows come in place of files."""
        if dialect in ("zsh", "sh") and self.found.kind == "argument" and self.left:
            with contextlib.suppress(UsageMistake):
                text = question(self.found, self.body, "bash", self.left, files=False)
                replies = self._fresh(find_shell("bash")[0], text, cwd, None)
                return [one for one in replies if one.kind in ("reply", "word")] or given
        return given

    def _fresh(self, program: str, text: str, cwd: str | None, path: str | None) -> list[Answer]:
        return answers(asked_aside(program, text, cwd or os.getcwd(), self.deadline, path))


def command_names(session: Session, limit: float) -> frozenset[str]:
    """All commands that the shell of a session knows; none where it does not say so within ``limit`` seconds."""
    text = question(Place("command", Word(0)), "", session.info().shell or "sh", limit)
    with contextlib.suppress(SessionError):
        given = answers(run_hidden(session, text, limit=limit).records)
        return frozenset(one.text for one in given if one.kind in COMMAND_KINDS)
    return frozenset()
