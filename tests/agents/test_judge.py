"""What the judge says of shell texts, paths and addresses; commands.toml is the table."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from session_magics.agents.judge import Rules, Verdict, judge_command

TABLE = tomllib.loads(Path(__file__).with_name("commands.toml").read_text("utf-8"))
RULES = Rules(allow=tuple(TABLE["rules"]["allow"]), deny=tuple(TABLE["rules"]["deny"]))
EVERYTHING = Rules(allow=("*", "Edit(**)", "Edit(/**)", "Edit(~/**)", "Read(**)", "Read(/**)", "WebFetch(*)"))
HOME, CWD = "/home/user", "/home/user/project"


def judged(text: str, rules: Rules = RULES) -> Verdict:
    return judge_command(text, rules, cwd=CWD, home=HOME)


@pytest.mark.parametrize("text", TABLE["floor"])
def test_the_floor_holds_under_a_rule_that_allows_everything(text: str) -> None:
    verdict = judged(text, EVERYTHING)
    assert verdict.decision == "deny"
    assert verdict.rule.startswith("floor:")


@pytest.mark.parametrize("text", TABLE["deny"])
def test_a_deny_rule_wins_at_any_depth(text: str) -> None:
    verdict = judged(text)
    assert verdict.decision == "deny"
    assert verdict.rule.startswith("deny: ")


@pytest.mark.parametrize("text", TABLE["allow"])
def test_harmless_commands_under_rules_are_allowed(text: str) -> None:
    assert judged(text).decision == "allow", judged(text).rule


@pytest.mark.parametrize("text", TABLE["ask"])
def test_what_is_hidden_cut_off_or_unnamed_is_asked(text: str) -> None:
    assert judged(text).decision == "ask", judged(text).rule


def test_nothing_is_allowed_without_a_rule() -> None:
    for text in TABLE["allow"] + TABLE["ask"]:
        assert judged(text, Rules()).decision != "allow", text


def test_the_table_is_as_large_as_it_should_be() -> None:
    counts = {name: len(set(TABLE[name])) for name in ("floor", "deny", "allow", "ask")}
    print(counts)
    assert counts["floor"] + counts["deny"] >= 400
    assert counts["allow"] >= 120
    assert counts["ask"] >= 180
