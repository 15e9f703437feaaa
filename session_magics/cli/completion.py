"""Completion of the command line in shells: the scripts by which they ask, and the answer.

A shell hands over the words before the cursor, the one that is typed last; the answer is lines of ``word TAB help``.
The line ``:files``, ``:directories`` or ``:commands`` leaves it to the shell to complete those.
"""

from __future__ import annotations

import contextlib
import importlib.resources
from collections.abc import Sequence

from session_magics.cli.words import VERBS
from session_magics.errors import SessionError
from session_magics.model import SessionInfo
from session_magics.registry import Registry
from session_magics.verbs.candidates import candidates
from session_magics.verbs.words import VERBS as COMMON


def script(shell: str) -> str:
    """What makes a shell complete; for its start-up file, or to be evaluated."""
    return importlib.resources.files("session_magics.cli").joinpath(f"completion.{shell}").read_text("utf-8").rstrip()


def answer(words: Sequence[str]) -> str:
    """The lines for a shell; ``words`` are those behind the program's name, the last one unfinished, or empty."""
    found = candidates(words or [""], _sessions, {**COMMON, **VERBS})
    return "".join(f"{one.word}\t{one.help}\n" if one.help else f"{one.word}\n" for one in found)


def _sessions() -> list[SessionInfo]:
    with contextlib.suppress(SessionError):
        return Registry().infos()
    return []
