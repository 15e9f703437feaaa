"""The tables of commands.json, and the two questions that every reader of them asks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

from session_magics.agents.verdicts.shellvalues import UNKNOWN, Word

DATA: Mapping[str, Any] = json.loads(
    resources.files("session_magics.agents.verdicts").joinpath("commands.json").read_text("utf-8")
)
# A long option may be cut short; "--e" is the shortest that is taken for one.
_SHORTEST = 3


def program(word: Word) -> str:
    """The name of the program that a first word runs, without its directory."""
    name = word.text.replace(UNKNOWN, "").rpartition("/")[2]
    return str(DATA["same_as"].get(name, name))


def is_long(option: str, known: Iterable[str]) -> bool:
    """Whether a word is one of the long options, with or without a value, whole or cut short."""
    name = option.partition("=")[0]
    return name.startswith("--") and len(name) >= _SHORTEST and any(long.startswith(name) for long in known)
