"""What is ours in a notebook's cell: a ``%%sh_session`` cell taken apart, and ``%session`` lines."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from session_magics.errors import SessionError
from session_magics.verbs.options import HelpRequest
from session_magics.verbs.parser import CellOptions, parse_cell

if TYPE_CHECKING:
    from session_magics.magics.magics import SessionMagics
    from session_magics.session import Session

_CELL = re.compile(r"\s*%%sh_session(?!\S)([^\n]*)(?:\n|\Z)")
_LINE = re.compile(r"^[^\S\n]*(?:[\w., \t\[\]]*=[^\S\n]*)?%session(?!\S)(.*)$", re.M)


@dataclass(frozen=True)
class ShellCell:
    """A ``%%sh_session`` cell, taken apart; ``line_at`` and ``body_at`` are where its two parts begin."""

    line: str
    line_at: int
    body: str
    body_at: int

    @classmethod
    def of(cls, cell: str) -> ShellCell | None:
        """The parts; None for a cell that is no such one."""
        head = _CELL.match(cell)
        return None if head is None else cls(head[1], head.start(1), cell[head.end() :], head.end())

    def in_body(self, cursor: int) -> bool:
        """Whether the cursor is below the first line."""
        return cursor > self.line_at + len(self.line)

    @cached_property
    def options(self) -> CellOptions:
        """Its options; the usual ones where the line is not right yet."""
        try:
            return parse_cell(self.line)
        except (SessionError, HelpRequest):
            return CellOptions()

    @property
    def cwd(self) -> str | None:
        """The directory that its options name."""
        return self.options.cwd and os.path.expanduser(self.options.cwd)

    def session(self, magics: SessionMagics) -> Session | None:
        """The session that would run it, if there is one already."""
        with contextlib.suppress(SessionError):
            return None if self.options.exec else magics.registry.find(self.options.name)
        return None

    def elsewhere(self, magics: SessionMagics) -> bool:
        """Whether it is for another place where its shell is not there yet, of which nothing here can tell."""
        session, options = self.session(magics), self.options
        if session is not None and session.info().running:
            return False
        place = options.on or (None if options.exec else magics.registry.last_place(options.name))
        return place is not None and place.partition(",")[0] != "local"

    def program(self, magics: SessionMagics) -> str:
        """The shell that would be started for it."""
        return self.options.shell or magics.shell_program


@dataclass(frozen=True)
class VerbLine:
    """What follows ``%session`` on a line, and where it begins in the cell."""

    words: str
    at: int

    @classmethod
    def of(cls, cell: str, cursor: int) -> VerbLine | None:
        """The line that the cursor is on; None: it is no such one."""
        begin = cell.rfind("\n", 0, cursor) + 1
        match = _LINE.match(cell, begin)
        return None if match is None else cls(match[1], match.start(1))
