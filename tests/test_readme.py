"""The README and the pages in docs/ tell what the parser knows."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from session_magics.cli.words import VERBS as MORE_VERBS
from session_magics.errors import UsageMistake
from session_magics.verbs.parser import VERBS, HelpRequest, Verb, parse_cell, parse_words, split_words, verbs

PROJECT = Path(__file__).parent.parent
README = (PROJECT / "README.md").read_text(encoding="utf-8")

each_page = pytest.mark.parametrize(
    "page", [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))], ids=lambda page: page.stem
)


def table(of: Mapping[str, Verb]) -> str:
    """The table of verbs as the README has to show it."""
    rows = [(usage.replace("|", "\\|"), help_text) for _, usage, help_text in verbs(of)]
    return "\n".join(["| verb | what it does |", "|---|---|", *(f"| `{usage}` | {text} |" for usage, text in rows)])


@pytest.mark.parametrize(("mark", "of"), [("verbs", VERBS), ("cli verbs", MORE_VERBS)])
def test_the_tables_of_verbs_are_the_parsers(mark: str, of: Mapping[str, Verb]) -> None:
    written = re.search(rf"<!-- {mark} -->\n(.*?)\n<!-- /{mark} -->", README, re.S)
    assert written and written[1] == table(of), "paste this between the markers:\n" + table(of)


def test_every_option_of_a_cell_has_a_row() -> None:
    with pytest.raises(HelpRequest) as help_text:
        parse_cell("--help")
    options = set(re.findall(r"^ +(--[a-z-]+)", help_text.value.text, re.M))
    rows = set(re.findall(r"`(--[a-z-]+)", "".join(re.findall(r"^\| `--.*?(?<!\\)\|", README, re.M))))
    assert options and options <= rows


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, place in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", text):
        file = page.parent / target if target else page
        assert file.exists(), target
        assert not place or place in places(file.read_text(encoding="utf-8")), f"{target}#{place}"


def places(text: str) -> set[str]:
    """The headings of a page as links name them."""
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_python_blocks_that_are_plain_python_compile() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.S)
    plain = [block for block in blocks if not re.search(r"^%", block, re.M)]
    assert plain
    for block in plain:
        compile(block, "README.md", "exec")


@each_page
def test_lines_of_ours_can_be_typed_as_they_stand(page: Path) -> None:
    blocks = "".join(re.findall(r"^```\w*\n(.*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M))
    for line in re.findall(r"^%%sh_session(.*)", blocks, re.M):
        parse_cell(line.strip())
    for words, more in lines_of_ours(blocks):
        parse_words(words, more=more)


@each_page
def test_what_prose_names_is_there(page: Path) -> None:
    """It may leave out the words that a verb needs."""
    prose = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    code = "\n".join(one for one in re.findall(r"`([^`\n]+)`", prose) if not re.search("…|VERB", one))
    for words, more in lines_of_ours(code):
        try:
            parse_words(words, more=more)
        except HelpRequest:
            pass
        except UsageMistake as mistake:
            assert "is missing" in str(mistake), mistake


def lines_of_ours(text: str) -> Iterator[tuple[list[str], Mapping[str, Verb]]]:
    """The words of each line that is ours, and the verbs that it may have beside the common ones."""
    for line in re.findall(r"^%session\b *(.*)", text, re.M):
        yield split_words(line), {}
    for line in re.findall(r"^session-magics +(?!--version)([^|&\n]+)", text, re.M):
        yield shlex.split(line, comments=True), MORE_VERBS
