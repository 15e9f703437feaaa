"""A cell of a shell kernel, written as a Python notebook would have it.

Line magics at the head of a cell, with blank lines and comments between, are IPython's; what follows is one cell magic,
or else shell text for ``%%sh_session``. A line that begins with ``%`` further down is shell text, and so is a job such
as ``%1``: a magic's name begins with a letter.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass

from IPython.core.inputtransformer2 import cell_magic

LINE = "%%sh_session\n"
"""What a plain cell lacks."""
_MAGIC = re.compile(r"(%%?)[A-Za-z_]")


@dataclass(frozen=True)
class Parts:
    """The two parts of a cell, which together are all of it."""

    head: str
    """Line magics, and blank lines and comments above the last of them."""
    rest: str
    """One cell magic or shell text."""

    @property
    def plain(self) -> bool:
        """Whether the rest is shell text."""
        magic = _MAGIC.match(self.rest)
        return not (magic and magic[1] == "%%") and bool(self.rest.strip())


def parts(code: str) -> Parts:
    """Take a cell apart."""
    at = end = 0
    continued = False
    for line in _lines(code):
        magic = _MAGIC.match(line)
        if magic and magic[1] == "%%" and not continued:
            end = at  # blank lines and comments above it are no part of a cell magic
            break
        at += len(line)
        if magic or continued:
            end = at
            continued = line.rstrip("\r\n").endswith("\\")
        elif line.strip(" \t\r\n") and not line.startswith("#"):
            break
    return Parts(code[:end], code[end:])


def _lines(text: str) -> list[str]:
    """Lines as Python and shells have them; ``splitlines`` knows other line ends, such as form feeds."""
    return list(io.StringIO(text))


def whole(code: str) -> str:
    """The cell with the line that makes it a shell cell."""
    cell = parts(code)
    return cell.head + LINE + cell.rest if cell.plain else code


def asked(code: str, cursor: int) -> tuple[str, int, int]:
    """The part of a cell where the cursor is, the cursor in it, and what to add to an offset in it for the cell."""
    cell = parts(code)
    border = len(cell.head)
    if cursor < border or not cell.rest:
        return cell.head, cursor, 0
    added = LINE if cell.plain else ""
    return added + cell.rest, cursor - border + len(added), border - len(added)


class Transform:
    """IPython's first step with a cell: lines in, lines out.

    ``asks_help`` gives the word that a shell cell asks help for, instead of running; None: it does not.
    """

    has_side_effects = True
    """IPython has no use for it where it only asks whether a cell is complete: that is asked of us."""

    def __init__(self, asks_help: Callable[[str], str | None]) -> None:
        self._asks_help = asks_help

    def __call__(self, lines: list[str]) -> list[str]:
        """Have the shell text of a cell run by ``%%sh_session``; nothing after this touches it."""
        cell = parts("".join(lines))
        if not cell.head and not cell.plain:
            return lines
        if cell.plain and (word := self._asks_help(LINE + cell.rest)):
            detail = int("??" in cell.rest)
            return [*_lines(cell.head), f"get_ipython().kernel.show_help({word!r}, {detail})\n"]
        rest = f"{LINE}{cell.rest}" if cell.plain else cell.rest
        magic: list[str] = cell_magic(_lines(rest)) if rest.strip() else []
        return [*_lines(cell.head), *magic]
