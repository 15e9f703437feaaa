"""From a cell and a cursor to completions: whom to ask, and how what is answered is written at its place."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

import psutil

from session_magics.completion import MOST_ITEMS, Completion, Completions
from session_magics.completion.asking import Answer, answers, last_piece, question
from session_magics.completion.lexing import Place, place
from session_magics.completion.sideshell import asked_aside
from session_magics.completion.words import Word, escaped
from session_magics.errors import SessionError
from session_magics.model import SessionInfo
from session_magics.programs import find_shell
from session_magics.run import run_hidden
from session_magics.session import Session

ANSWER_LIMIT = 0.15
"""Seconds that a page is kept waiting at most."""
SHOWN_AS = {"reply": "", "word": "", "name": "file", "named-directory": "directory"}
KNOWN = "known-"
"""Kinds that begin so are for later, when the shell is busy."""
PATHS = frozenset(("file", "directory", "name", "named-directory"))


class Completer:
    """Completes shell text. Remembers of each session what it needs while that is busy; for one thread at a time."""

    def __init__(self) -> None:
        self._known: dict[str, Known] = {}

    def complete(
        self, body: str, cursor: int, session: Session | None, program: str, cwd: str | None = None
    ) -> Completions:
        """What could stand at the cursor of a cell's text; answers within a fraction of a second, whatever happens.

        Args:
            body: the text of the cell.
            cursor: code points of it before the cursor.
            session: the shell session that would run it. None, busy or not answering: what is known without it.
            program: the shell, by name or path, if there is no session.
            cwd: the directory in which it would begin, if there is no session; None: the present one.
        """
        if session is not None and (info := session.info()).shell is not None and info.running:
            found = _place(body, cursor, info.shell)
            if found.kind == "nothing":
                return Completions(cursor, cursor)
            try:
                records = run_hidden(session, question(found, body, info.shell), limit=ANSWER_LIMIT).records
            except SessionError:
                return written(found, cursor, self._while_busy(info, found, body))
            given = answers(records)
            self._known[info.id] = Known.of(given)
            return written(found, cursor, given)
        path, dialect = find_shell(program)
        found = _place(body, cursor, dialect)
        if found.kind == "nothing":
            return Completions(cursor, cursor)
        return written(found, cursor, _aside(path, question(found, body, dialect), cwd))

    def _while_busy(self, info: SessionInfo, found: Place, body: str) -> list[Answer]:
        """Of a busy session: what a fresh shell in its directory says, and what was known."""
        known = self._known.get(info.id, Known())
        given = known.fitting(found)
        if info.on is None and info.shell is not None and info.pid is not None:
            with contextlib.suppress(psutil.Error):
                cwd = psutil.Process(info.pid).cwd()
                given += _aside(info.argv[0], question(found, body, info.shell), cwd, known.path)
        return given


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


def _aside(program: str, text: str, cwd: str | None, path: str | None = None) -> list[Answer]:
    deadline = time.monotonic() + ANSWER_LIMIT
    return answers(asked_aside(program, text, cwd or os.getcwd(), deadline, path))


def _place(body: str, cursor: int, dialect: str) -> Place:
    return place(body, cursor)


# ------------------------------------------------------------------ written at their place


def written(found: Place, cursor: int, known: Iterable[Answer]) -> Completions:
    """The answers as texts that can be inserted, sorted, each once."""
    texts: dict[str, tuple[int, Completion]] = {}
    for answer in known:
        if answer.kind.startswith((KNOWN, "path")):
            continue
        start, text = _written(found.word, answer)
        kind = SHOWN_AS.get(answer.kind, answer.kind)
        texts.setdefault(f"{start} {text}", (start, Completion(text, kind, answer.help)))
    start = min((start for start, _ in texts.values()), default=cursor - found.word.start)
    items = [Completion(found.word.raw[start:at] + one.text, one.kind, one.help) for at, one in texts.values()]
    items.sort(key=lambda one: (one.text.casefold(), one.text))
    return Completions(found.word.start + start, cursor, tuple(items[:MOST_ITEMS]))


def _written(word: Word, answer: Answer) -> tuple[int, str]:
    """Where in the raw word the text begins, and the text."""
    if answer.kind == "user":
        return 0, f"~{answer.text}/"
    if answer.kind == "job":
        return 0, f"%{answer.text}"
    if answer.kind in PATHS:
        return _written_path(word, answer)
    if answer.kind in ("reply", "word"):
        return len(word.raw) - len(last_piece(word)), answer.text.removesuffix(" ")
    return 0, answer.text


def _written_path(word: Word, answer: Answer) -> tuple[int, str]:
    """The last component, in the quotes that are open."""
    name = answer.text.rstrip("/").rpartition("/")[2] if word.slash else answer.text.rstrip("/")
    start = word.slash
    if not word.slash and answer.kind.startswith("name"):
        start = len(word.raw) - len(last_piece(word))
    opening = word.quote if word.quote and word.quote_start >= start else ""
    ending = "/" if answer.kind.endswith("directory") else ""
    return start, opening + escaped(name, word.quote) + ending
