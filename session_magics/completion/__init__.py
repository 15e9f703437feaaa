"""What could stand at the cursor of shell text, from the live state of the shell that would run it."""

from __future__ import annotations

from dataclasses import dataclass

MOST_ITEMS = 1000
"""Items of one answer: a menu of more helps nobody, and a page takes long to build it."""


@dataclass(frozen=True)
class Completion:
    """A text that could stand there, ready to be inserted: quoted as its place needs it.

    ``kind``: command, builtin, function, alias, keyword, variable, file, directory, user, job, option, verb, session,
    or empty for a word that the command's own completion gave.
    """

    text: str
    kind: str = ""
    help: str = ""


@dataclass(frozen=True)
class Completions:
    """``items`` could stand in place of ``[start:end)`` of the text, counted in code points."""

    start: int
    end: int
    items: tuple[Completion, ...] = ()
