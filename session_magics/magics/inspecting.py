"""Help on the word at the cursor, and whether a cell is complete, for cells of ours in any notebook.

IPython's own hooks for inspection get a name and not the cell, so the kernel's ``do_inspect`` is wrapped, on the one
kernel object; ``unhook`` takes that back.
"""

from __future__ import annotations

import contextlib
import inspect as python_inspect
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from session_magics.errors import SessionError
from session_magics.verbs.options import HelpRequest
from session_magics.verbs.parser import CellOptions, parse_cell

if TYPE_CHECKING:
    from session_magics.magics.magics import SessionMagics
    from session_magics.session import Session

CELL = re.compile(r"\s*%%sh_session\b([^\n]*)(?:\n|\Z)")
LINE = re.compile(r"^\s*(?:[\w., ]+=\s*)?%session\b(.*)$", re.M)
ASKS_HELP = re.compile(r"\s*(?:\?{1,2}\s*([\w.+@:-]+)|([\w.+@:-]+)\s*\?{1,2})\s*")


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
        head = CELL.match(cell)
        return None if head is None else cls(head[1], head.start(1), cell[head.end() :], head.end())

    @property
    def options(self) -> CellOptions:
        """Its options; the usual ones where the line is not right yet."""
        try:
            return parse_cell(self.line)
        except (SessionError, HelpRequest):
            return CellOptions()


def inspect(
    magics: SessionMagics, cell: str, cursor: int, detail: int, *, aside: bool = False
) -> dict[str, str] | None:
    """What stands at the cursor of a cell, as a mime bundle; None: the cell is not ours, or nothing is known."""
    from session_magics.verbs import inspecting  # most cells are never asked about

    text: str | None = None
    shell_cell = ShellCell.of(cell)
    with contextlib.suppress(SessionError, OSError):
        if shell_cell is None:
            line = next((one for one in LINE.finditer(cell) if one.start() <= cursor <= one.end()), None)
            if line is not None and cursor < line.start(1):
                text = _documentation(magics, "session")
            elif line is not None:
                text = inspecting.of_verb_line(line[1], cursor - line.start(1), lambda: magics.registry)
        elif cursor < shell_cell.line_at:
            text = _documentation(magics, "sh_session")
        elif cursor < shell_cell.body_at:
            text = inspecting.of_cell_line(shell_cell.line, cursor - shell_cell.line_at, lambda: magics.registry)
            text = text or _documentation(magics, "sh_session")
        else:
            text = _word(magics, shell_cell, cursor - shell_cell.body_at, detail, aside=aside)
    return {"text/plain": text} if text else None


def _word(magics: SessionMagics, cell: ShellCell, cursor: int, detail: int, *, aside: bool) -> str | None:
    from session_magics import inspection

    options = cell.options
    program = options.shell or magics.shell_program
    session = _session(magics, options)
    if elsewhere(magics, options, session):
        return None
    return inspection.inspect(cell.body, cursor, session, program, cwd=options.cwd, detail=detail, aside=aside)


def elsewhere(magics: SessionMagics, options: CellOptions, session: Session | None) -> bool:
    """Whether a cell is for another place where its shell is not there yet, of which this machine can tell nothing."""
    if session is not None and session.info().running:
        return False
    place = options.on or (None if options.exec else magics.registry.last_place(options.name))
    return place is not None and place.partition(",")[0] != "local"


def _session(magics: SessionMagics, options: CellOptions) -> Session | None:
    return None if options.exec else magics.registry.find(options.name)


def _documentation(magics: SessionMagics, name: str) -> str:
    return python_inspect.getdoc(getattr(magics, name)) or ""


def is_complete(magics: SessionMagics, cell: str) -> tuple[str, str]:
    """Whether a cell can be run as it is, in Jupyter's words, and how its next line is indented."""
    shell_cell = ShellCell.of(cell)
    if shell_cell is None:
        return ("complete" if LINE.match(cell) else "unknown"), ""
    from session_magics import syntax
    from session_magics.programs import find_shell

    options = shell_cell.options
    with contextlib.suppress(SessionError, OSError):
        session = _session(magics, options)
        info = session.info() if session is not None else None
        known = info is not None and info.shell is not None and info.running and info.on is None
        program, dialect = find_shell(info.argv[0] if info and known else options.shell or magics.shell_program)
        reading = syntax.read(shell_cell.body, program, dialect)
        return reading.status, reading.indent
    return "unknown", ""


def asks_help(cell: str) -> str | None:
    """The word of a shell cell that is ``NAME?`` or ``?NAME`` and nothing else; None for any other."""
    shell_cell = ShellCell.of(cell)
    match = ASKS_HELP.fullmatch(cell if shell_cell is None else shell_cell.body)
    return (match[1] or match[2]) if match else None


class Hook:
    """The wrap of one kernel's ``do_inspect``, which answers for our cells and leaves the others to the kernel."""

    def __init__(self, magics: SessionMagics, kernel: Any) -> None:
        self._kernel = kernel
        usual = getattr(kernel, "do_inspect", None)
        if usual is None:
            return

        def do_inspect(code: str, cursor_pos: int, *more: Any, **named: Any) -> Any:
            detail = more[0] if more else named.get("detail_level", 0)
            found = None
            with contextlib.suppress(Exception):  # whatever fails here, the kernel answers
                found = inspect(magics, code, cursor_pos, detail)
            if found is None:
                return usual(code, cursor_pos, *more, **named)
            answer = {"status": "ok", "found": True, "data": found, "metadata": {}}
            return _later(answer) if python_inspect.iscoroutinefunction(usual) else answer

        self._ours = kernel.__dict__["do_inspect"] = do_inspect

    def unhook(self) -> None:
        """Give the kernel back its own; what others have wrapped around it since stays as it is."""
        if self._kernel is not None and self._kernel.__dict__.get("do_inspect") is getattr(self, "_ours", self):
            del self._kernel.__dict__["do_inspect"]


async def _later(answer: dict[str, Any]) -> dict[str, Any]:
    return answer
