"""Menus of options at the bottom of a screen, whatever they are about."""

from __future__ import annotations

import pytest

from session_magics.agents.menus import Menu, find_menu, sentence_at


def menu(text: str, row: int | None = None, footers: tuple[str, ...] = ()) -> Menu | None:
    lines = text.split("\n")
    return find_menu(lines, len(lines) if row is None else row, footers.__contains__)


def options(text: str, row: int | None = None, footers: tuple[str, ...] = ()) -> list[tuple[str, str, bool]] | None:
    found = menu(text, row, footers)
    return [(option.key, option.label, option.selected) for option in found.options] if found else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Go on?\n❯ 1. Yes\n  2. No", [("1", "Yes", True), ("2", "No", False)]),
        ("Go on?\n  1) Yes\n› 2) No", [("1", "Yes", False), ("2", "No", True)]),
        ("Go on?\n\n● 1. Yes\n○ 2. No", [("1", "Yes", True), ("2", "No", False)]),
        ("Go on?\n> (y) Yes\n  (n) No", [("y", "Yes", True), ("n", "No", False)]),
        ("Go on?\n❯ Yes\n  No", [("\r", "Yes", True), ("", "No", False)]),
        ("Go on?\n  No   ❯ Always   Yes   enter ok", [("", "No", False), ("\r", "Always", True), ("", "Yes", False)]),
        ("Go on?\n❯ 1. Yes\n  2. No, and\n     stop", [("1", "Yes", True), ("2", "No, and stop", False)]),
        ("Go on?\n1. Yes\n2. No", [("", "Yes", False), ("", "No", False)]),
    ],
)  # fmt: skip
def test_options(text: str, expected: list[tuple[str, str, bool]]) -> None:
    assert options(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Go on?\n❯ 11. Yes\n  2. No",
        "Go on?\n❯ 1. Yes\n  3. No",
        "Go on?\n❯ 2. Yes\n  3. No",
        "Go on?\n❯ 1. Yes\n  1. No",
        "Go on?\n❯ 1. Yes",
        "Go on?\n❯ 1. Yes\n❯ 2. No",
        "Go on?\n❯ 1. Yes\n\n  2. No",
        "Go on?\n❯ 1. Yes\n     2. No",
        "Go on?\n❯ 1. Yes\n  2. No\nNo more.",
        "Go on?\n❯ 1. Yes\nand so on\n  2. No",
        "Go on?\n❯ 1. Y\u200bes\n  2. No",
        "Go on?\n❯ 1. Yes\U000e0fff\n  2. No",
        "Go on?\n❯ １. Yes\n  2. No",
        "Go on?\n❯ 1. Yes\n  2. No\n" + "esc to cancel\n" * 9,
        "10. Ten\n❯ 1. Yes\n  2. No",
        "Steps:\n1. Build\n2. Test",
        "",
    ],
)
def test_no_menu(text: str) -> None:
    assert options(text, footers=("esc to cancel",)) is None


def test_keys_in_the_row_of_the_question_count_where_the_cursor_is() -> None:
    text = "touch a\nRun? (Y)es/(N)o/(D)on't ask again [Yes]: "
    assert options(text, row=1) == [("y\r", "Yes", False), ("n\r", "No", False), ("d\r", "Don't ask again", False)]
    assert options("Continue? [Y/n]", row=0) == [("y\r", "Yes", False), ("n\r", "No", False)]
    assert options(text, row=0) is None
    assert options(text + "y", row=1) is None
    assert options("Run? (Y)es/(N)o [Maybe]: ", row=0) is None


def test_a_cursor_far_below_is_not_at_the_menu() -> None:
    text = "Go on?\n❯ 1. Yes\n  2. No"
    assert options(text, row=3) and options(text, row=1)
    assert options(text + "\n" * 5, row=6) is None


def test_unmarked_options_have_keys_where_the_cursor_is_among_them() -> None:
    assert options("Go on?\n1. Yes\n2. No", row=2) == [("1", "Yes", False), ("2", "No", False)]


BOX = "╭────────╮\n│ Go on? │\n│ ❯ 1. Yes │\n│   2. No  │\n╰────────╯".replace("────────", "──────────").replace(
    "Go on? ", "Go on?   "
)


def test_a_box_is_whole_or_none() -> None:
    found = menu(BOX)
    assert found and found.box and found.box.kind == "box" and found.above == (" Go on?",)
    rows = BOX.split("\n")
    for at in range(len(rows)):
        rest = menu("\n".join(rows[:at] + rows[at + 1 :]))
        assert at == 1 or not rest or not rest.box or rest.box.kind != "box", at
    assert (broken := menu(BOX.replace("│ Go", "  Go"))) and broken.box is None


def test_a_box_of_ascii_characters() -> None:
    found = menu(BOX.translate(str.maketrans("╭╮╰╯─│", "++++-|")))
    assert found and found.box and found.box.kind == "box" and found.above == (" Go on?",)


def test_a_line_across_the_screen_is_the_top_of_a_box_and_indented_text_is_not() -> None:
    line = "─" * 40
    found = menu(f"text\n{line}\n Title\n\n Go on?\n ❯ 1. Yes\n   2. No")
    assert found and found.box and (found.box.kind, found.box.top, found.box.width) == ("rule", 1, 40)
    assert found.above == (" Title", "", " Go on?")
    found = menu(f"text\n  {line}\n Title\n\n Go on?\n ❯ 1. Yes\n   2. No")
    assert found and found.box and (found.box.kind, found.box.top) == ("open", 0)
    found = menu(" Title\n\n Go on?\n ❯ 1. Yes\n   2. No")
    assert found and found.box is None


def test_a_bar_at_the_top_of_the_screen_may_go_on_above_it() -> None:
    bar = "▌ Go on?\n▌ > 1. Yes\n▌   2. No"
    found = menu("text\n" + bar)
    assert found and found.box and found.box.kind == "bar"
    assert (cut := menu(bar)) and cut.box is None


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("npm test\nRun the tests (unit only)", 1),
        ("npm test\nRun the tests", 1),
        ("npm test\n(run the tests)", None),
        ('npm test\nShow "$(rm x)"', None),
        ("Run the tests", None),
    ],
)
def test_a_description_is_a_sentence(text: str, at: int | None) -> None:
    assert sentence_at(text.split("\n"), 80) == at
