"""Help on the word at the cursor, and whether a cell is complete, for cells of ours in any notebook.

IPython's own hooks for inspection get a name and not the cell, so the kernel's ``do_inspect`` is wrapped, on the one
kernel object.
"""

from __future__ import annotations

import contextlib
import glob
import inspect as python_inspect
import os
import re
from typing import TYPE_CHECKING, Any

from session_magics.errors import SessionError
from session_magics.listing import directory
from session_magics.magics.replies import inspected
from session_magics.magics.shellcell import ShellCell, VerbLine

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from session_magics.magics.magics import SessionMagics

ASKS_HELP = re.compile(r"\s*(?:\?{1,2}\s*([\w.+@:-]+)|([\w.+@:-]+)\s*\?{1,2})\s*")


def inspect(
    magics: SessionMagics, cell: str, cursor: int, detail: int, *, aside: bool = False
) -> dict[str, str] | None:
    """What stands at the cursor of a cell, as a mime bundle; None: the cell is not ours, or nothing is known."""
    from session_magics.verbs import inspecting  # most cells are never asked about

    text: str | None = None
    shell_cell = ShellCell.of(cell)
    with contextlib.suppress(SessionError, OSError):
        if shell_cell is None:
            line = VerbLine.of(cell, cursor)
            if line is not None and cursor <= line.at:
                text = _documentation(magics, "session")
            elif line is not None:
                text = inspecting.of_verb_line(line.words, cursor - line.at, lambda: magics.registry)
        elif cursor <= shell_cell.line_at:
            text = _documentation(magics, "sh_session")
        elif shell_cell.in_body(cursor):
            text = _word(magics, shell_cell, cursor - shell_cell.body_at, detail, aside=aside)
        else:
            text = inspecting.of_cell_line(shell_cell.line, cursor - shell_cell.line_at, lambda: magics.registry)
            text = text or _documentation(magics, "sh_session")
    return {"text/plain": text} if text else None


def _word(magics: SessionMagics, cell: ShellCell, cursor: int, detail: int, *, aside: bool) -> str | None:
    from session_magics import inspection

    session, program = cell.session(magics), cell.program(magics)
    if cell.elsewhere(magics):
        return None
    return inspection.inspect(cell.body, cursor, session, program, cwd=cell.cwd, detail=detail, aside=aside)


def _documentation(magics: SessionMagics, name: str) -> str:
    return python_inspect.getdoc(getattr(magics, name)) or ""


def is_complete(magics: SessionMagics, cell: str) -> tuple[str, str]:
    """Whether a cell can be run as it is, in Jupyter's words, and how its next line is indented."""
    shell_cell = ShellCell.of(cell)
    if shell_cell is None:
        return ("complete" if VerbLine.of(cell, 0) else "unknown"), ""
    from session_magics import syntax
    from session_magics.programs import find_shell

    with contextlib.suppress(SessionError, OSError):
        session = shell_cell.session(magics)
        info = session.info() if session is not None else None
        known = info is not None and info.shell is not None and info.running and info.on is None
        program, dialect = find_shell(info.argv[0] if info and known else shell_cell.program(magics))
        reading = syntax.read(shell_cell.body, program, dialect)
        return reading.status, reading.indent
    return "unknown", ""


def asks_help(magics: SessionMagics, cell: str) -> str | None:
    """The word of a shell cell that is ``NAME?`` or ``?NAME`` and nothing else; None for any other.

    None too if files in the session's directory match: then it is a pattern.
    """
    shell_cell = ShellCell.of(cell)
    if shell_cell is None or (match := ASKS_HELP.fullmatch(shell_cell.body)) is None:
        return None
    with contextlib.suppress(SessionError, OSError):
        session = shell_cell.session(magics)
        here = os.getcwd() if session is None else directory(session.info())
        if glob.glob(shell_cell.body.strip(), root_dir=here):
            return None
    return match[1] or match[2]


def install(ip: InteractiveShell, magics: SessionMagics) -> None:
    """Have the kernel ask us first, and answer by itself for what is not ours."""
    kernel: Any = getattr(ip, "kernel", None)
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
        answer = inspected(found)
        return _later(answer) if python_inspect.iscoroutinefunction(usual) else answer

    kernel.__dict__["do_inspect"] = do_inspect


def remove(ip: InteractiveShell) -> None:
    """Give the kernel back its own; what others have wrapped around ours since stays as it is."""
    kept: Any = getattr(getattr(ip, "kernel", None), "__dict__", {})
    if getattr(kept.get("do_inspect"), "__module__", "") == __name__:
        del kept["do_inspect"]


async def _later(answer: dict[str, Any]) -> dict[str, Any]:
    return answer
