"""The README tells what the parser knows."""

from __future__ import annotations

import re
from pathlib import Path

from session_magics.verbs.parser import verbs

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def table() -> str:
    """The table of verbs as the README has to show it."""
    rows = [(usage.replace("|", "\\|"), help_text) for _, usage, help_text in verbs()]
    return "\n".join(["| verb | what it does |", "|---|---|", *(f"| `{usage}` | {text} |" for usage, text in rows)])


def test_the_table_of_verbs_is_the_parsers() -> None:
    written = re.search(r"<!-- verbs -->\n(.*?)\n<!-- /verbs -->", README, re.S)
    assert written and written[1] == table(), "paste this between the markers:\n" + table()


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", README):
        assert (Path(__file__).parent.parent / target).exists(), target


def test_python_blocks_that_are_plain_python_compile() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.S)
    plain = [block for block in blocks if not re.search(r"^%", block, re.M)]
    assert plain
    for block in plain:
        compile(block, "README.md", "exec")
