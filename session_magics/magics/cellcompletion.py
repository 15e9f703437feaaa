"""What could stand at the cursor of a notebook's cell, if it is one of ours or a line of ours."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from session_magics.completion import Completion, Completions
from session_magics.completion.answering import Completer
from session_magics.errors import SessionError
from session_magics.magics.shellcell import ShellCell, VerbLine
from session_magics.model import SessionInfo
from session_magics.verbs.candidates import COMMANDS, DIRECTORIES, FILES, Candidate, candidates, cell_candidates

if TYPE_CHECKING:
    from session_magics.magics.magics import SessionMagics

ASK_AS: dict[str, str] = {FILES: "<", DIRECTORIES: "cd ", COMMANDS: ""}
"""What stands before a word, so that a shell would complete such things."""


class CellCompleter:
    """Says what could stand at the cursor of a cell; made at first use, as it needs the registry."""

    def __init__(self, magics: SessionMagics) -> None:
        self._magics = magics
        self._shells = Completer()

    def complete(self, cell: str, cursor: int, *, aside: bool) -> Completions | None:
        """See ``SessionMagics.complete``."""
        if (shell_cell := ShellCell.of(cell)) is not None and cursor >= shell_cell.line_at:
            if shell_cell.in_body(cursor):
                return self._of_body(shell_cell, cursor, aside=aside)
            return self._of_words(cell, shell_cell.line_at, cursor, cell_candidates)
        line = VerbLine.of(cell, cursor)
        return self._of_words(cell, line.at, cursor, candidates) if line and cursor > line.at else None

    def _of_body(self, cell: ShellCell, cursor: int, *, aside: bool) -> Completions:
        begin, session, program = cell.body_at, cell.session(self._magics), cell.program(self._magics)
        try:
            if cell.elsewhere(self._magics):
                return Completions(cursor, cursor)
            found = self._shells.complete(cell.body, cursor - begin, session, program, cell.cwd, aside=aside)
        except SessionError:
            return Completions(cursor, cursor)
        return Completions(found.start + begin, found.end + begin, found.items)

    def _of_words(
        self, cell: str, begin: int, cursor: int, ask: Callable[[Sequence[str], Callable[[], Any]], list[Candidate]]
    ) -> Completions:
        text = cell[begin:cursor]
        word = re.search(r"(?:\\.|\S)*$", text)
        assert word is not None
        if not text[:1].isspace():
            return Completions(cursor, cursor)
        found = ask([*_words(text[: word.start()]), word[0]], self._infos)
        if len(found) == 1 and found[0].word in ASK_AS:
            return self._asked(found[0].word, word[0], cursor)
        items = tuple(Completion(_written(one.word), one.kind, one.help) for one in found)
        return Completions(cursor - len(word[0]), cursor, items)

    def _asked(self, what: str, word: str, cursor: int) -> Completions:
        """Files or programs, for a line in which there is no other shell syntax."""
        before = ASK_AS[what]
        with contextlib.suppress(SessionError):
            found = self._shells.complete(before + word, len(before + word), None, "sh")
            shift = cursor - len(before + word)
            items = tuple(one for one in found.items if one.kind in ("command", "file", "directory"))
            return Completions(found.start + shift, cursor, items)
        return Completions(cursor, cursor)

    def _infos(self) -> list[SessionInfo]:
        with contextlib.suppress(SessionError):
            return self._magics.registry.infos()
        return []


def _written(word: str) -> str:
    return shlex.quote(word) if " " in word else word


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # inside a quote
        return text.split()
