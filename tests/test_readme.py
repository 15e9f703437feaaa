"""The README tells what the parser knows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from session_magics.cli.words import VERBS as MORE_VERBS
from session_magics.verbs.parser import VERBS, Verb, parse_cell, parse_words, split_words, verbs

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def table(of: Mapping[str, Verb]) -> str:
    """The table of verbs as the README has to show it."""
    rows = [(usage.replace("|", "\\|"), help_text) for _, usage, help_text in verbs(of)]
    return "\n".join(["| verb | what it does |", "|---|---|", *(f"| `{usage}` | {text} |" for usage, text in rows)])


@pytest.mark.parametrize(("mark", "of"), [("verbs", VERBS), ("cli verbs", MORE_VERBS)])
def test_the_tables_of_verbs_are_the_parsers(mark: str, of: Mapping[str, Verb]) -> None:
    written = re.search(rf"<!-- {mark} -->\n(.*?)\n<!-- /{mark} -->", README, re.S)
    assert written and written[1] == table(of), "paste this between the markers:\n" + table(of)


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (Path(__file__).parent.parent / target).exists(), target


def test_python_blocks_that_are_plain_python_compile() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.S)
    plain = [block for block in blocks if not re.search(r"^%", block, re.M)]
    assert plain
    for block in plain:
        compile(block, "README.md", "exec")


def test_lines_of_ours_can_be_typed_as_they_stand() -> None:
    blocks = "".join(re.findall(r"^```\w*\n(.*?)^```$", README, re.S | re.M))
    for line in re.findall(r"^%session (.+)", blocks, re.M):
        parse_words(split_words(line))
    for line in re.findall(r"^%%sh_session(.*)", blocks, re.M):
        parse_cell(line.strip())
