"""What screens ask: a corpus of them, of two families, and thousands that only look like one of them."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from session_magics.agents.prompts import Doing, read_screen

SCREENS = Path(__file__).parent / "screens"
CORPUS: dict[str, dict[str, Any]] = tomllib.loads((SCREENS / "screens.toml").read_text("utf-8"))


def seen(name: str) -> Doing:
    expected = CORPUS[name]
    lines = (SCREENS / name).read_text("utf-8").removesuffix("\n").split("\n")
    return read_screen(lines, expected.get("row", len(lines)), expected["tool"], expected.get("version"))


def told(doing: Doing) -> dict[str, Any]:
    """What was read, in the words of the corpus."""
    prompt = doing.prompt
    if prompt is None:
        return {"state": doing.state}
    once = prompt.once.key if prompt.once else None
    choices = [choice.kind for choice in prompt.choices]
    found = {"kind": prompt.kind, "subject": prompt.subject, "choices": choices, "once": once, "masked": prompt.masked}
    return {"state": doing.state, **{key: value for key, value in found.items() if value not in (None, [], False)}}


def test_c9_corpus() -> None:
    """Every true prompt is read as it is, and nothing that looks like one is to be answered."""
    wrong = []
    for name, entry in CORPUS.items():
        expected = {key: value for key, value in entry.items() if key not in ("family", "tool", "version", "row")}
        got = told(seen(name))
        sys.stdout.write(f"{'ok   ' if got == expected else 'WRONG'} {entry['family']:10} {name:48} {expected} · {got}\n")
        wrong += [name] if got != expected else []
    assert not wrong
