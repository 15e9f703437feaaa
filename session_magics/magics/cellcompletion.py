"""What could stand at the cursor of a notebook's cell, if it is one of ours or a line of ours."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from session_magics.completion import Completion, Completions
from session_magics.completion.answering import Completer
from session_magics.errors import SessionError
from session_magics.magics.inspecting import elsewhere
from session_magics.model import SessionInfo
from session_magics.verbs.candidates import COMMANDS, DIRECTORIES, FILES, Candidate, candidates, cell_candidates
from session_magics.verbs.parser import CellOptions, HelpRequest, parse_cell

if TYPE_CHECKING:
    from session_magics.magics.magics import SessionMagics

CELL = re.compile(r"\s*%%sh_session(?=\s|$)")
LINE = re.compile(r"(?:[\w., \t\[\]]*=)?[ \t]*%session(?=[ \t])")
ASK_AS: dict[str, str] = {FILES: "<", DIRECTORIES: "cd ", COMMANDS: ""}
"""What stands before a word, so that a shell would complete such things."""


class CellCompleter:
    """Says what could stand at the cursor of a cell; made at first use, as it needs the registry."""

    def __init__(self, magics: SessionMagics) -> None:
        self._magics = magics
        self._shells = Completer()

    def complete(self, cell: str, cursor: int, *, aside: bool) -> Completions | None:
        """See ``SessionMagics.complete``."""
        if (head := CELL.match(cell)) is not None and cursor >= head.end():
            first = cell.find("\n", head.end())
            if 0 <= first < cursor:
                return self._of_body(cell[head.end() : first], cell, first + 1, cursor, aside=aside)
            return self._of_words(cell, head.end(), cursor, cell_candidates)
        line = LINE.match(cell, cell.rfind("\n", 0, cursor) + 1)
        return self._of_words(cell, line.end(), cursor, candidates) if line and cursor > line.end() else None

    def _of_body(self, line: str, cell: str, begin: int, cursor: int, *, aside: bool) -> Completions:
        try:
            options = parse_cell(line)
        except (SessionError, HelpRequest):
            options = CellOptions()
        session, cwd = None, options.cwd
        with contextlib.suppress(SessionError):
            session = None if options.exec else self._magics.registry.find(options.name)
        program = options.shell or self._magics.shell_program
        try:
            if elsewhere(self._magics, options, session):
                return Completions(cursor, cursor)
            cwd = cwd and os.path.expanduser(cwd)
            found = self._shells.complete(cell[begin:], cursor - begin, session, program, cwd, aside=aside)
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
