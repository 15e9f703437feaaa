"""What recorded screens ask: a corpus of them, of two families, and thousands that only look like one of them."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rounds import rounds
from session_magics.agents.prompts import Doing, read_screen

SCREENS = Path(__file__).parent / "screens"
TOOLS = ("claude", "codex", "gemini", "grok", "aider", "opencode", "shell")
CORPUS: dict[str, dict[str, Any]] = tomllib.loads((SCREENS / "screens.toml").read_text("utf-8"))


@cache
def text_of(name: str) -> str:
    return (SCREENS / name).read_text("utf-8").removesuffix("\n")


def screen(name: str) -> list[str]:
    return text_of(name).split("\n")


def seen(name: str) -> Doing:
    expected, lines = CORPUS[name], screen(name)
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
        sys.stdout.write(
            f"{'ok   ' if got == expected else 'WRONG'} {entry['family']:10} {name:48} {expected} · {got}\n"
        )
        wrong += [name] if got != expected else []
    assert not wrong


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("codex-0.171.0-sign-in.txt", "Choose how you want to use Codex."),
        ("gemini-0.61.0-trust.txt", "Do you trust the files in this folder?"),
    ],
)
def test_what_is_asked_is_told_and_not_what_explains_it(name: str, question: str) -> None:
    assert seen(name).question == question


def test_the_corpus_has_both_families_and_every_screen_is_in_it() -> None:
    families = [entry["family"] for entry in CORPUS.values()]
    assert families.count("prompt") >= 45 and families.count("look-alike") >= 45
    assert {path.name for path in SCREENS.glob("*.txt")} == set(CORPUS)
    assert {entry["tool"] for entry in CORPUS.values()} >= {"claude", "codex", "gemini", "grok", "aider", "opencode"}


def test_each_prompt_of_the_catalogue_is_on_some_screen() -> None:
    catalogue = json.loads(files("session_magics.agents").joinpath("prompts.json").read_text("utf-8"))
    shown = {(CORPUS[name]["tool"], doing.prompt.name) for name in CORPUS if (doing := seen(name)).prompt}
    assert {(tool, entry["name"]) for tool in TOOLS for entry in catalogue[tool].get("prompts", ())} <= shown


@pytest.mark.parametrize(
    ("version", "once"),
    [(None, True), ("codex-cli 0.98.0", True), ("0.36", True), ("0.35.9", False), ("1", True), ("unknown", True)],
)
def test_a_prompt_is_known_from_a_version_on(version: str | None, once: bool) -> None:
    lines = screen("codex-0.98.0-exec.txt")
    prompt = read_screen(lines, len(lines), "codex", version).prompt
    assert (prompt is not None and prompt.once is not None) == once


def test_programs_of_which_nothing_is_known_have_no_prompts() -> None:
    lines = screen("claude-2.0.14-bash.txt")
    assert read_screen(lines, len(lines), "someone's own") == Doing("waiting", None, "Do you want to proceed?")
    assert read_screen([], 0, "claude") == Doing("idle")


def test_the_digest_is_of_the_prompt_and_not_of_what_is_selected() -> None:
    first, second = (seen(f"claude-2.0.14-bash{rest}.txt").prompt for rest in ("", "-second-selected"))
    other = seen("claude-2.1.40-bash-footer-explain.txt").prompt
    assert first and second and other
    assert first.digest == second.digest != other.digest


# ------------------------------------------------------------ screens that are no prompt, made from those that are

TRUE = sorted(name for name, entry in CORPUS.items() if "once" in entry and entry["family"] == "prompt")
ELSE = sorted(name for name in CORPUS if re.search("-(idle|working)", name))
BATCH = 20
"""Screens for each of hypothesis' seeds: drawing every choice by itself takes it longer than reading the screens."""

SCRIPTS = (
    *((0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x4FF), (0x590, 0x6FF)),
    *((0x2000, 0x206F), (0x2500, 0x27BF), (0x1F300, 0x1F6FF)),
)

FIRST_LABEL = re.compile(r"Yes(, proceed|, allow once)?|Allow once|Approve|\(Y\)es")
Mutation = Callable[[list[str], Random], list[str] | None]


def words(random: Random) -> str:
    """Characters of a few scripts, borders, pointers and such that do not show among them."""
    ranges = [random.choice(SCRIPTS) for _ in range(random.randint(1, 30))]
    return "".join(chr(random.randint(*found)) for found in ranges)


def option_row(lines: Sequence[str]) -> int:
    """Of the option that would be taken: the first one."""
    return max(at for at, line in enumerate(lines) if re.search(r"1\. \w|[❯●] (Yes|Allow)|\(Y\)es", line))


def top_row(lines: Sequence[str]) -> int | None:
    edges = [at for at, line in enumerate(lines[: option_row(lines)]) if re.match("╭─{37}|─{40}", line)]
    return edges[0] if edges else None


def changed_row(lines: list[str], at: int, line: str) -> list[str]:
    return [*lines[:at], line, *lines[at + 1 :]]


def text_below(lines: list[str], random: Random) -> list[str]:
    return [*lines, *[""] * random.randint(0, 3), "said: " + words(random)]


def moved_up(lines: list[str], random: Random) -> list[str]:
    return [*lines, *(f"line {number}" for number in range(random.randint(1, 30)))]


def input_below(lines: list[str], random: Random) -> list[str]:
    return [*lines, "", "─" * 80, random.choice(["> ", "❯ ", "› Ask"]), "─" * 80, "  ? for shortcuts"]


def option_dropped(lines: list[str], random: Random) -> list[str]:
    at = option_row(lines)
    return lines[:at] + lines[at + 1 :]


def question_dropped(lines: list[str], random: Random) -> list[str]:
    asked = "Would you|Do you|Allow (exec|command|edits)|Apply|Run shell|Add file|Create new|required"
    at = max(at for at, line in enumerate(lines[: option_row(lines) + 1]) if re.search(asked, line))
    return lines[:at] + lines[at + 1 :]


def cut_by_top(lines: list[str], random: Random) -> list[str] | None:
    top = top_row(lines)
    return None if top is None else lines[random.randint(top + 1, option_row(lines)) :]


def number_changed(lines: list[str], random: Random) -> list[str] | None:
    at = option_row(lines)
    others = ["2.", "0.", "9.", "11.", "01.", "21.", "1", "1:", "l.", "I.", "１.", "①", "x1.", "-1.", "1.1."]
    return changed_row(lines, at, lines[at].replace("1.", random.choice(others), 1)) if "1. " in lines[at] else None


def other_number_changed(lines: list[str], random: Random) -> list[str] | None:
    at = option_row(lines) + 1
    others = ["1.", "3.", "4.", "12.", "2", "2:", "z.", "２."]
    if at == len(lines) or "2. " not in lines[at]:
        return None
    return changed_row(lines, at, lines[at].replace("2.", random.choice(others), 1))


def label_changed(lines: list[str], random: Random) -> list[str] | None:
    at = option_row(lines)
    more = [" always", ", and don't ask again", " to all", "!", " (for this session)", "\u200b", " / No", "s"]
    found = FIRST_LABEL.search(lines[at])
    assert found
    return changed_row(lines, at, lines[at][: found.end()] + random.choice(more) + lines[at][found.end() :])


def letter_changed(lines: list[str], random: Random) -> list[str] | None:
    at = option_row(lines)
    twin = random.choice([("e", "е"), ("o", "о"), ("s", "ѕ"), ("Y", "Υ"), ("A", "А"), ("p", "р")])
    found = FIRST_LABEL.search(lines[at])
    if not found or twin[0] not in found[0]:
        return None
    line = lines[at][: found.start()] + found[0].replace(*twin) + lines[at][found.end() :]
    return changed_row(lines, at, line)


def border_broken(lines: list[str], random: Random) -> list[str] | None:
    top = top_row(lines)
    if top is None or not lines[top].startswith("╭"):
        return None
    at = random.choice([at for at in range(top, len(lines)) if lines[at][:1] in tuple("╭│╰")])
    char, line = random.choice([" ", "x", "|", "─", ""]), lines[at].rstrip()
    return changed_row(lines, at, char + line[1:] if random.random() < 0.5 else line[:-1] + char)


def quoted(lines: list[str], random: Random) -> list[str]:
    prefix = random.choice(["> ", "+ ", "- ", "     ", "12 | ", "# ", "* ", "\t", "  12 +  ", "//  ", "│ │ "])
    return [f"{prefix}{line}" for line in lines]


def unseen_character(lines: list[str], random: Random) -> list[str]:
    at = option_row(lines)
    char = random.choice(["\u200b", "\u202e", "\u2066", "\u200d", "\ufeff", "\x07", "\x1b"])
    column = random.randint(0, len(lines[at].rstrip()))
    return changed_row(lines, at, lines[at][:column] + char + lines[at][column:])


MUTATIONS: tuple[Mutation, ...] = (
    *(text_below, moved_up, input_below, option_dropped, question_dropped, cut_by_top, number_changed),
    *(other_number_changed, label_changed, letter_changed, border_broken, quoted, unseen_character),
)


def no_prompt(random: Random) -> tuple[list[str], int, str, str | None]:
    """A screen, its cursor's row, and whose it is, none of which is a prompt by how it was made."""
    name = random.choice(TRUE)
    entry, lines = CORPUS[name], screen(name)
    tool, row, version = entry["tool"], entry.get("row"), entry.get("version")
    how = random.choice([*["mutation"] * 10, "tool", "cursor", "random", "two"])
    if how == "mutation":
        changed = None
        while changed is None:
            changed = random.choice(MUTATIONS)(lines, random)
        row = row if row is None else row - len(lines) + len(changed)
        lines = changed
    elif how == "tool":
        tool = random.choice([other for other in TOOLS if other != tool])
    elif how == "cursor":
        row = len(lines) + random.randint(4, 60) if row is None else random.randint(0, row - 1)
    elif how == "random":
        lines = [words(random) for _ in range(random.randint(0, 12))]
        row = random.randint(0, len(lines))
    else:
        lines = lines + screen(random.choice(ELSE))
        row = row if row is None else len(lines) - 1
    return lines, len(lines) if row is None else row, tool, version


@settings(max_examples=rounds(3_000, 10_000) // BATCH, deadline=None, database=None, phases=[Phase.generate])
@given(st.integers(0, 2**64 - 1))
def test_thousands_of_screens_are_not_answered(seed: int) -> None:
    random = Random(seed)
    for _ in range(BATCH):
        lines, row, tool, version = no_prompt(random)
        doing = read_screen(lines, row, tool, version)
        assert doing.prompt is None or doing.prompt.once is None, "\n".join([f"{tool} {version} {row}", *lines])
