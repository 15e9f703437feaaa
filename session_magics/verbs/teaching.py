"""The verbs for lessons."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from session_magics.errors import CheckFailed, UsageMistake
from session_magics.model import CellResult
from session_magics.registry import Registry
from session_magics.teaching.checks import Assessment, Expectation, assess, nothing
from session_magics.teaching.evidence import NothingYet, collect

DEFAULT_NAME = "main"
"""The session that cells run in when none is named."""


class TeachingVerbs:
    """One method a verb; ``Verbs`` has the others."""

    _registry: Registry
    _results: Mapping[str, CellResult]

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
            return nothing(name, "no command has been run in it yet", hint)
        if session.info().shell is None:
            raise UsageMistake(
                f"session {name!r} runs a program and no shell of ours: only commands of cells are checked"
            )
        try:
            names = [variable for variable, _ in wanted.variable]
            return assess(name, wanted, collect(session, wanted.paths, names, self._results.get(name)), hint)
        except NothingYet as reason:
            return nothing(name, str(reason), hint)
