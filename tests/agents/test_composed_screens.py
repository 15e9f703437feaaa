"""What composed screens ask: as the emulator renders them, in any width and in pieces, and of rows that are long."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

import pytest

from session_magics.agents.prompts import Doing, read_screen
from session_magics.text.escapes import strip_styles
from session_magics.text.screen import picture

TOOLS = ("claude", "codex", "gemini", "grok", "aider", "opencode", "shell")

QUESTION = "Do you want to proceed?"
OPTIONS = ["❯ 1. Yes", "  2. Yes, and don't ask again for make commands in /home/me/project", "  3. No"]


@pytest.mark.parametrize("text", ["a", "a ", "Aa ", "(Y)es/", "1. ", "? ", "│", "─", "> ", "a.", "(a) ", "● ", "1s "])
def test_no_row_takes_long_to_read(text: str) -> None:
    """A pattern that tries all ways to divide a row would not end for a row as long as these."""
    long = text * (400 // len(text))
    rows = [long, f"{long}#", f"❯ 1. {long}#", f"Run {long}(Y)es/(N)o{long}#", f"   {long}#"]
    for tool in TOOLS:
        for at, row in enumerate(rows):
            read_screen(["", *rows[at:], *rows[:at]], len(rows), tool)
            question = ["", f" {QUESTION}", *OPTIONS]
            read_screen(["─" * 80, " Bash command", "", "   make", f"   {row.strip()}", *question], 9, tool)


def rendered(data: str, rows: int = 24, columns: int = 80, tool: str = "claude") -> Doing:
    shown = picture(data.encode(), (rows, columns))
    return read_screen([strip_styles(line) for line in shown.lines], shown.row, tool)


def drawn(rows: Sequence[str], columns: int) -> str:
    """Rows as a tool draws them: wrapped into a box as wide as the screen, in colours, with the cursor hidden."""
    text = []
    for row in rows:
        indent = row[: len(row) - len(row.lstrip())] + ("   " if re.match(r"\W*\d\.", row) else "")
        text += textwrap.wrap(row, columns - 4, subsequent_indent=indent, drop_whitespace=True) or [""]
    styled = [f"\x1b[38;5;174m│\x1b[39m \x1b[1m{row:{columns - 4}}\x1b[22m \x1b[38;5;174m│\x1b[39m" for row in text]
    edges = [f"\x1b[38;5;174m{left}{'─' * (columns - 2)}{right}\x1b[39m" for left, right in ("╭╮", "╰╯")]
    return "\x1b[?25l\x1b[2K" + "\r\n".join([edges[0], *styled, edges[1], ""])


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_prompt_that_the_emulator_renders(columns: int) -> None:
    before = "".join(f"\x1b[32mline {number}\x1b[0m of what it did before\r\n" for number in range(60))
    rows = ["Bash command", "", "  make -j2", "  Build it", "", QUESTION, *OPTIONS]
    doing = rendered(before + drawn(rows, columns), columns=columns)
    assert doing.prompt and doing.prompt.once
    assert (doing.prompt.subject, doing.prompt.once.key, doing.question) == ("make -j2", "1", QUESTION)
    redrawn = f"\x1b[{len(rows) + 3}A\x1b[J● Done.\r\n" + drawn(["> "], columns)
    assert rendered(before + drawn(rows, columns) + redrawn, columns=columns) == Doing("idle")


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_command_that_is_wrapped_is_not_read(columns: int) -> None:
    command = "git push origin " + " ".join(f"topic-{number}" for number in range(columns // 8)) + " --force"
    doing = rendered(
        drawn(["Bash command", "", f"  {command}", "  Push it", "", QUESTION, *OPTIONS], columns), 40, columns
    )
    assert doing.prompt and doing.prompt.kind == "command"
    assert doing.prompt.subject is None and doing.prompt.once is None


def test_c9_what_a_screen_must_show_to_be_taken_for_a_question() -> None:
    """The cases of a detector that reads raw output, as screens."""
    noise = "".join(f"\x1b[{number % 8 + 30}m\x1b[1;{number}H\x1b[?25l·\x1b[0m" for number in range(1, 80))
    plain = f"{QUESTION}\r\n❯ 1. Yes\r\n  2. No\r\n"
    questions = {
        "question and options": plain,
        "full of sequences": noise + "\x1b[2J\x1b[H" + "".join(f"\x1b[3{n % 7}m{char}" for n, char in enumerate(plain)),
        "question over two lines": "Do you want to go on with all of\r\nwhat is said above?\r\n❯ 1. Yes\r\n  2. No\r\n",
        "text between": f"{QUESTION}\r\n\r\n❯ 1. Yes, {'and so on, ' * 5}\r\n  2. No\r\n",
        "without numbers": f"{QUESTION}\r\n❯ Yes\r\n  No\r\n",
        "without a pointer": f"{QUESTION}\r\n1. Yes\r\n2. No\r\n",
    }
    texts = {
        "no question": "1. Yes\r\n",
        "a sentence": 'The manual: "Do you want to proceed? 1. Yes" is what it asks.\r\n',
        "eleven": f"{QUESTION}\r\n11. Yes\r\n",
        "passed": plain + "● Going on.\r\n",
        "a plain line": "all tests pass\r\n",
    }
    for name, data in questions.items():
        doing = rendered(data)
        assert doing.state == "waiting" and doing.question.startswith("Do you"), name
        assert doing.prompt is None, name  # no box of a known tool: nothing to be answered
    for name, data in texts.items():
        assert rendered(data) == Doing("idle"), name


def test_a_prompt_in_chunks_is_the_same_as_in_one() -> None:
    data = drawn(["Bash command", "", "  make", "  Build it", "", QUESTION, *OPTIONS], 80).encode()
    whole = picture(data, (24, 80))
    parts = picture(b"".join(data[at : at + 7] for at in range(0, len(data), 7)), (24, 80))
    assert whole == parts
    half = data[: data.index("❯".encode())].decode()
    assert rendered(half).prompt is None
