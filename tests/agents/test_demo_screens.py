"""The screens of the demo agent: drawn anew in any size, and read as those of the agent that it is like."""

from __future__ import annotations

from collections.abc import Iterator

import pyte
import pytest

import demo_agents
from demo_agents import AT_REST, CREATE, FAST, PLOTTED, Start, answer_all
from rounds import until
from session_magics.agents.prompts import Doing, Prompt, read_screen
from terminals import Terminal

start = demo_agents.start


# ------------------------------------------------------------ sizes


@pytest.mark.parametrize("size", [(80, 60), (80, 132), (12, 40)])
def test_a_new_size_draws_everything_anew(start: Start, size: tuple[int, int]) -> None:
    terminal = start("plot", *FAST)
    answer_all(terminal)
    terminal.until(PLOTTED, AT_REST, gone="esc to interrupt")
    terminal.resize(size)
    top, bottom = "╭" + "─" * (size[1] - 2) + "╮", "╰" + "─" * (size[1] - 2) + "╯"
    input_box = [top, "│ >" + " " * (size[1] - 4) + "│", bottom, f"  {AT_REST}"]

    def drawn() -> bool:  # at one look: the kernel tells it of the size too, so it draws twice
        lines = terminal.text.split("\n")
        # What has been said is there too, from its first line, where there is room for it.
        return lines[-4:] == input_box and (size[0] < 80 or lines[0] == top)

    until(drawn, what=lambda: terminal.text)


def test_a_question_follows_the_size(start: Start) -> None:
    terminal = start("plot", *FAST)
    terminal.until(CREATE)
    terminal.resize((60, 60))

    def drawn() -> bool:
        lines = terminal.text.split("\n")
        whole = lines[0] == "╭" + "─" * 58 + "╮" and lines[-1] == "╰" + "─" * 58 + "╯"
        options = ("❯ 1. Yes", "3. No, and tell Claude what to do differently (esc)")
        return whole and all(one in terminal.text for one in options) and max(map(len, lines)) == 60

    until(drawn, what=lambda: terminal.text)


# ------------------------------------------------------------ how they are read


def reads(terminal: Terminal, state: str, kind: str = "", subject: str | None = None) -> Prompt | None:
    """Wait until the screen, drawn whole, is read so; the prompt."""
    found: list[Doing] = []

    def fits() -> bool:
        found[:] = [read_screen(terminal.lines, terminal.cursor[0], "claude")]
        prompt = found[0].prompt
        read = (found[0].state, prompt.kind if prompt else "", prompt and prompt.subject)
        return read == (state, kind, subject) and (prompt is None or prompt.masked or len(prompt.choices) == 3)

    until(fits, what=lambda: f"{found}\n{terminal.text}")
    return found[0].prompt


def read_frames(terminal: Terminal, size: tuple[int, int] = (40, 90)) -> Iterator[Doing]:
    """How each frame that it has drawn is read, however short it was to be seen."""
    screen = pyte.Screen(size[1], size[0])
    stream = pyte.ByteStream(screen)
    begin = b"\x1b[?25l\r"
    for frame in terminal.raw.split(begin):
        stream.feed(begin + frame)
        yield read_screen([line.rstrip() for line in screen.display], screen.cursor.y, "claude")


def once(prompt: Prompt | None) -> str:
    assert prompt is not None and prompt.once is not None
    assert [choice.kind for choice in prompt.choices] == ["once", "always", "no"]
    return prompt.once.key


@pytest.mark.parametrize("size", [(24, 80), (36, 120), (50, 200)])
def test_its_questions_are_read_whole(start: Start, size: tuple[int, int]) -> None:
    terminal = start("plot the data", *FAST, size=size)
    for subject in ("data.csv", "analysis.py"):
        terminal.type(once(reads(terminal, "waiting", "edit", subject)))
    terminal.type(once(reads(terminal, "waiting", "command", "python3 analysis.py")))
    terminal.until(PLOTTED)
    reads(terminal, "idle")
    assert any(doing.state == "working" for doing in read_frames(terminal, size))


def test_its_edit_is_read(start: Start) -> None:
    terminal = start("fix", *FAST)
    assert once(reads(terminal, "waiting", "edit", "stats.py")) == "1"


def test_what_is_dangerous_is_read_whole(start: Start) -> None:
    reads(start("danger", *FAST), "waiting", "command", "rm -rf ~/*")


def test_its_password_is_read_as_masked(start: Start) -> None:
    terminal = start("password", *FAST)
    terminal.type(once(reads(terminal, "waiting", "command", "sudo apt-get install gnuplot")))
    prompt = reads(terminal, "waiting", "other")
    assert prompt is not None and prompt.masked and prompt.once is None


def test_the_quoted_box_is_read_as_no_question(start: Start) -> None:
    terminal = start("quote", *FAST)
    terminal.until("End of the README.", "❯ 1. Yes", "nobody asked anything", gone="esc to interrupt")
    reads(terminal, "idle")
    assert {doing.state for doing in read_frames(terminal)} == {"idle", "working"}
