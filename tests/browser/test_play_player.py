"""A recording in a page without a kernel: the keyboard's way through it, and terminals of any width."""

from __future__ import annotations

import pytest
from play import AXE, Play
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

VIEW = "document.querySelector('.sm-outer').__session_magics"
EVENTS = [
    [0, "m", "first"],
    [0, "o", "one\r\n\x1b[c\x1b[6n"],
    [30, "m", "second"],
    [30, "o", "two\r\n"],
    [60, "o", "three"],
]
CONTROLS = ["Play (Space)", "Previous marker ([)", "Next marker (])", "Position", "Speed (< and >)", "Longest pause"]


def time(page: Page) -> float:
    return float(page.evaluate(f"() => {VIEW}.playback.time"))


def text(page: Page) -> str:
    return str(page.evaluate(f"() => {VIEW}.text()"))


def test_the_keyboard_does_it_all(page: Page) -> None:
    play = Play(page)
    play.player(EVENTS)
    page.wait_for_function(f"() => {VIEW}.text() === 'one'")
    page.locator("#before").focus()
    assert play.walk("Tab", 8)[-7:] == [*CONTROLS, "after"]
    page.get_by_label("Recording demo").focus()
    for key, expected in [("]", 30), ("ArrowRight", 35), ("ArrowLeft", 30), ("End", 60), ("[", 30), ("Home", 0)]:
        page.keyboard.press(key)
        assert time(page) == expected, key
    page.keyboard.press(">")
    expect(page.get_by_label("Speed")).to_have_value("2")
    page.keyboard.press(" ")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.wait_for_function(f"() => {VIEW}.playback.time > 0.2")
    page.get_by_role("button", name="Pause").press(" ")  # once, and not once more by the key's own way
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    page.get_by_label("Longest pause").select_option("1")
    page.get_by_label("Position").press("End")
    page.wait_for_function(f"() => {VIEW}.text() === 'one\\ntwo\\nthree'")
    assert time(page) == 2
    # Nothing leaves a player but what asks for the recording: again where a piece was lost.
    assert [message["at"] for message in play.sent("cast")][:2] == [0, 0]
    assert len(play.sent("cast")) == page.evaluate("() => shown.model.sent.length")
    assert not play.errors


def test_a_wide_terminal_is_in_sight_as_a_whole(page: Page) -> None:
    play = Play(page)
    play.player([[0, "o", "x" * 200], [1, "r", "40x5"], [2, "o", "y"]], {"columns": 200, "rows": 30})
    page.wait_for_function(f"() => {VIEW}.text().length === 200")
    inside = f"() => {VIEW}.place.querySelector('.xterm-screen').offsetWidth <= {VIEW}.place.clientWidth"
    page.wait_for_function(inside)
    before = page.evaluate(f"() => {VIEW}.term.options.fontSize")
    page.get_by_label("Position").press("End")
    page.wait_for_function(f"(before) => {VIEW}.term.cols === 40 && {VIEW}.term.options.fontSize > before", arg=before)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_wrong_for_those_who_do_not_see_it(page: Page, theme: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: npm ci in session_magics/frontend")
    play = Play(page, theme)
    page.evaluate(AXE.read_text())
    play.player(EVENTS)
    check = "async () => (await axe.run()).violations.map((one) => [one.id, one.nodes.map((node) => node.html)])"
    assert page.evaluate(check) == []
