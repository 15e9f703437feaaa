"""Every rule of an approval: what is answered, what is left to the person, and what switches it off."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from approvals import CHOICES, GRANT, IDLE, SIGHT, SIGHTS, TABLE, WORKING, asking, choices, course, prompt
from rounds import rounds
from session_magics.agents.approval import (
    COOL_DOWN,
    IDENTICAL,
    MINUTE,
    PER_MINUTE,
    STILL,
    VERIFY,
    Answer,
    Memory,
    Off,
    Refuse,
    Sight,
    Wait,
    decide,
)
from session_magics.agents.prompts import Choice


@pytest.mark.parametrize("case", TABLE)
def test_rules(case: str) -> None:
    sight, memory, kind, words = TABLE[case]
    decision, _ = decide(GRANT, memory, sight)
    assert isinstance(decision, kind), decision
    said = decision.rule if isinstance(decision, Answer) else decision.reason
    assert words in said


def test_the_key_is_the_one_that_the_menu_shows() -> None:
    shuffled = (CHOICES[2], replace(CHOICES[1], selected=True), Choice("7", "Yes", "once", False))
    decision, _ = decide(GRANT, Memory(), replace(SIGHT, doing=choices(*shuffled)))
    assert isinstance(decision, Answer) and decision.keys == "7"


@pytest.mark.parametrize(("key", "canonical", "typed"), [("y", False, "y"), ("y\r", False, "y\r"), ("y", True, "y\r")])
def test_keys_of_lines(key: str, canonical: bool, typed: str) -> None:
    sight = replace(SIGHT, doing=choices(Choice(key, "Yes", "once", False)), canonical=canonical, echo=True)
    decision, _ = decide(GRANT, Memory(), sight)
    assert isinstance(decision, Answer) and decision.keys == typed


def test_what_is_left_to_the_person_is_said_once_and_stays_left() -> None:
    first, memory = decide(GRANT, Memory(), replace(SIGHT, touched=True))
    again, memory = decide(GRANT, memory, replace(SIGHT, time=101.0))
    assert isinstance(first, Refuse) and isinstance(again, Wait)
    # Gone for good, and not only while it is drawn anew.
    _, memory = decide(GRANT, memory, replace(SIGHT, time=102.0, doing=IDLE, unchanged=0.0))
    assert isinstance(decide(GRANT, memory, replace(SIGHT, time=102.1))[0], Wait)
    _, memory = decide(GRANT, memory, replace(SIGHT, time=103.0, doing=IDLE, waiting="no"))
    assert isinstance(decide(GRANT, memory, replace(SIGHT, time=104.0))[0], Answer)


def test_a_wait_says_when_to_look_again() -> None:
    early, _ = decide(GRANT, Memory(), replace(SIGHT, unchanged=0.1))
    assert isinstance(early, Wait) and early.due == pytest.approx(100.0 + STILL - 0.1)
    cooling, _ = decide(GRANT, Memory(answered=1, times=(99.0,), digest="other"), SIGHT)
    assert isinstance(cooling, Wait) and cooling.due == 99.0 + COOL_DOWN
    nothing, _ = decide(GRANT, Memory(), replace(SIGHT, doing=IDLE))
    assert isinstance(nothing, Wait) and nothing.due is None


@settings(max_examples=rounds(150, 400), deadline=None)
@given(st.lists(SIGHTS, max_size=80))
def test_no_course_of_things_breaks_a_rule(steps: list[Sight]) -> None:
    done = course(steps)
    answers = [(sight, decision) for sight, decision, _ in done if isinstance(decision, Answer)]
    times = [sight.time for sight, _ in answers]
    assert len(answers) <= 25
    assert all(later - earlier >= COOL_DOWN for earlier, later in pairwise(times))
    assert all(sum(time <= one < time + MINUTE for one in times) <= PER_MINUTE for time in times)
    for sight, decision in answers:
        asked = sight.doing.prompt
        assert asked is not None and asked.once is not None and not asked.masked and asked.kind != "other"
        assert asked.subject in ("git status", "git diff", "ls") or asked.kind != "command"
        assert sight.foreground == ("claude",) and sight.waiting != "no" and sight.unchanged >= STILL
        assert not sight.masked and not sight.touched and decision.keys.removesuffix("\r") in ("1", "")
    for count in range(IDENTICAL, len(answers)):
        assert len({one.digest for _, one in answers[count - IDENTICAL : count + 1]}) > 1


@settings(max_examples=rounds(100, 200), deadline=None)
@given(st.lists(SIGHTS, max_size=60))
def test_no_answer_is_given_on_top_of_one_that_is_not_verified(steps: list[Sight]) -> None:
    done = course(steps)
    for number, (sight, decision, _) in enumerate(done):
        if not isinstance(decision, Answer):
            continue
        following = [after for after in done[number + 1 :] if after[0].time < sight.time + VERIFY]
        assert all(isinstance(after[1], Wait | Off) for after in following)


def test_a_run_of_answers_ends_at_the_count() -> None:
    steps = []
    for number in range(60):
        steps += [
            replace(SIGHT, time=3.0, doing=asking(prompt(f"git show {number}"))),
            replace(SIGHT, time=1.5, doing=WORKING),
        ]
    done = course(steps)
    assert sum(isinstance(decision, Answer) for _, decision, _ in done) == 25
    assert done[-1][1] == Off("all answers that were allowed are given")
