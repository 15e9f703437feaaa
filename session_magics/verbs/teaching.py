"""The verbs for lessons."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol

from session_magics.errors import CheckFailed, SessionBusy, SessionError, UsageMistake
from session_magics.model import DEFAULT_NAME, CellResult
from session_magics.registry import Registry
from session_magics.run import run_hidden
from session_magics.session import Session
from session_magics.teaching.checks import Assessment, Expectation, assess, nothing
from session_magics.teaching.evidence import NothingYet, collect
from session_magics.teaching.scratch import default_directory, prepare
from session_magics.variables import quoted

_CD: Mapping[str, str] = {
    "bash": r"\builtin cd -- ",
    "zsh": r"\builtin \cd -- ",
    "sh": r"\command cd -- ",
    "fish": "builtin cd -- ",
}


class Cells(Protocol):
    """What runs the cells of this process."""

    @property
    def results(self) -> Mapping[str, CellResult]:
        """How the last cell of each session ended."""

    def shell(self, name: str) -> Session:
        """The session that a cell of that name would run in, started if need be."""


class TeachingVerbs:
    """One method a verb; ``Verbs`` has the others."""

    _registry: Registry
    _cells: Cells | None

    def _expect(self, words: Namespace) -> Assessment:
        given: dict[str, Any] = {one.name: getattr(words, one.name) for one in fields(Expectation)}
        given = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
        wanted = Expectation(**given)
        assessment = self._assessed(words.name or DEFAULT_NAME, wanted, words.hint or "")
        if words.strict and not assessment.ok:
            raise CheckFailed(assessment.failed)
        return assessment

    def _assessed(self, name: str, wanted: Expectation, hint: str) -> Assessment:
        session = self._registry.find(name)
        if session is None:
            return nothing(name, "no command has been run yet", hint)
        if session.info().shell is None:
            raise UsageMistake(
                f"session {name!r} runs a program and no shell of ours: only commands of cells are checked"
            )
        try:
            last = self._cells.results.get(name) if self._cells is not None else None
            names = [variable for variable, _ in wanted.variable]
            return assess(name, wanted, collect(session, wanted.paths, names, last), hint)
        except NothingYet as reason:
            return nothing(name, str(reason), hint)

    def _scratch(self, words: Namespace) -> str:
        name = words.name or DEFAULT_NAME
        session = self._registry.get(name) if self._cells is None else self._cells.shell(name)
        info = session.info()
        if info.shell is None or info.on is not None:
            raise UsageMistake(
                f"session {name!r} has no shell on this machine: a scratch directory is for one that has"
            )
        if (running := session.command()) is not None:
            raise SessionBusy(name, running)
        given = [Path(one).expanduser().absolute() if one else None for one in (words.dir, words.source)]
        path = prepare(given[0] or default_directory(name), given[1], reset=words.reset)
        done = run_hidden(session, _CD[info.shell] + quoted(str(path), info.shell)).result
        if done is None or done.returncode:
            raise SessionError(f"session {name!r} could not go to {path}")
        return str(path)
