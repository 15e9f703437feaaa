"""What help shows can be typed."""

from __future__ import annotations

import re

import pytest

from session_magics.cli.words import VERBS as MORE_VERBS
from session_magics.magics.magics import SessionMagics
from session_magics.verbs.examples import CELL_EXAMPLES, EXAMPLES, GROUPS, OTHERS, grouped
from session_magics.verbs.parser import VERBS, HelpRequest, parse_cell, parse_verb, parse_words, split_words

ALL_VERBS = {**VERBS, **MORE_VERBS}


@pytest.mark.parametrize(("verb", "line"), [(verb, line) for verb, lines in EXAMPLES.items() for line in lines])
def test_an_example_is_a_call_of_its_verb(verb: str, line: str) -> None:
    assert parse_words([verb, *split_words(line)], more=MORE_VERBS).verb == verb


@pytest.mark.parametrize("line", CELL_EXAMPLES)
def test_an_example_of_a_cell_is_one(line: str) -> None:
    parse_cell(line)


def test_every_verb_has_its_place_in_the_overview() -> None:
    placed = [name for names in GROUPS.values() for name in names]
    assert len(set(placed)) == len(placed)
    assert grouped(ALL_VERBS).get(OTHERS, []) == [], "put it into a group of verbs/examples.py"
    assert sorted(name for names in grouped(ALL_VERBS).values() for name in names) == sorted(ALL_VERBS)


def test_a_verb_of_no_group_is_listed_all_the_same() -> None:
    assert grouped(["start", "juggle"]) == {"start and end": ["start"], OTHERS: ["juggle"]}


def test_the_help_of_a_verb_ends_with_its_examples() -> None:
    with pytest.raises(HelpRequest) as help_text:
        parse_verb("tail --help")
    lines = help_text.value.text.partition("\nexamples:\n")[2].splitlines()
    assert lines == [f"  %session tail {line}" for line in EXAMPLES["tail"]]


def test_the_examples_of_the_magics_can_be_typed() -> None:
    cells = re.findall(r"^ *%%sh_session\b(.*)$", SessionMagics.sh_session.__doc__, re.M)
    lines = re.findall(r"^ *(?:\w+ = )?%session\b(.*)$", SessionMagics.session.__doc__, re.M)
    assert len(cells) > 5 and len(lines) > 7
    for line in cells:
        if not re.match(r" \[|.*--help", line):
            parse_cell(line)
    for line in lines:
        if not re.match(r" (VERB|help)", line):
            parse_verb(line)
