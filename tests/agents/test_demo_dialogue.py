"""What is said to the demo agent: answers, messages, interrupts, and conversations that go on in another process."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import demo_agents
from demo_agents import AT_REST, CREATE, EDIT, FAST, ID, PLOTTED, RUN, Start, kept, leave
from rounds import until

start = demo_agents.start


# ------------------------------------------------------------ answers


@pytest.mark.parametrize("keys", ["\r", "\x1b[B\x1b[A\r", "\x1bOB\x1bOA\r", "\x1b[A\x1b[A\x1b[A\r"])
def test_enter_takes_the_option_that_the_arrows_chose(start: Start, keys: str) -> None:
    terminal = start("plot", *FAST)
    terminal.until(f"{CREATE} data.csv?")
    terminal.type(keys)
    terminal.until(f"{CREATE} analysis.py?")


def test_the_pointer_moves_with_the_arrows(start: Start) -> None:
    terminal = start("plot", *FAST)
    terminal.until("❯ 1. Yes", "  2. Yes, allow all edits")
    terminal.type("\x1b[B")
    terminal.until("  1. Yes", "❯ 2. Yes, allow all edits")


@pytest.mark.parametrize("key", ["2", "\x1b[Z", "\x1b[B\r"])
def test_all_edits_are_allowed_at_once(start: Start, key: str) -> None:
    terminal = start("plot", *FAST)
    terminal.until(f"{CREATE} data.csv?")
    terminal.type(key)
    terminal.until(RUN)
    assert Path("analysis.py").exists()


@pytest.mark.parametrize("key", ["3", "\x1b", "\x03", "\x1b[A\r"])
def test_no_stops_it_and_a_message_lets_it_go_on(start: Start, key: str) -> None:
    terminal = start("plot", *FAST)
    terminal.until(f"{CREATE} data.csv?")
    terminal.type(key)
    terminal.until("● Write(data.csv)", "└  Interrupted · What should Demo do instead?")
    assert not Path("data.csv").exists()
    terminal.type("I have written one\r")
    terminal.until("> I have written one", "I leave that out", f"{CREATE} analysis.py?")


@pytest.mark.parametrize("key", ["\x1b", "\x03"])
def test_its_work_can_be_interrupted(start: Start, key: str) -> None:
    terminal = start("--script", "chatty")
    terminal.until("I compare the rows")
    terminal.type(key)
    terminal.until("What should Demo do instead?", gone="esc to interrupt")


def test_an_interrupted_command_is_ended(start: Start) -> None:
    Path("stats.py").write_text("import time\nprint(len(values) - 1) if 0 else time.sleep(1000)  # (len(values) - 1)\n")
    terminal = start("fix", *FAST)
    for question in (EDIT, RUN):
        terminal.until(question)
        terminal.type("1")
    terminal.until("Running…", "esc to interrupt")
    begin = Path(f"/proc/{terminal.process.pid}/task/{terminal.process.pid}/children")
    until(lambda: begin.read_text())
    [child] = map(int, begin.read_text().split())
    terminal.type("\x1b")
    terminal.until("└  Interrupted")
    assert not Path(f"/proc/{child}").exists()


def test_a_message_that_names_a_task_begins_it(start: Start) -> None:
    terminal = start(*FAST)
    terminal.until(AT_REST)
    terminal.type("hello\r")
    terminal.until("> hello", "I am a demo and only know these tasks", AT_REST)
    terminal.type("please fix the mean\r")
    terminal.until(f"{EDIT} stats.py?")


def test_what_is_typed_while_it_works_waits_for_its_turn(start: Start) -> None:
    terminal = start("--script", "chatty", "--seconds", "0.5", *FAST)
    terminal.until("I compare the rows")
    terminal.type("then fix it\r")
    terminal.until("> then fix it", EDIT)


def test_typed_text_can_be_corrected(start: Start) -> None:
    terminal = start(*FAST)
    terminal.until(AT_REST)
    terminal.type("wörx\x7fld")
    terminal.until("> wörld")
    row = next(at for at, line in enumerate(terminal.lines) if "wörld" in line)
    until(lambda: terminal.cursor == (row, 9), what=lambda: terminal.cursor)


# ------------------------------------------------------------ conversations


def test_a_killed_agent_resumes_with_its_next_step(start: Start) -> None:
    first = start("plot the data", "--session-id", ID, *FAST)
    first.until(f"{CREATE} data.csv?")
    first.type("1")
    first.until(f"{CREATE} analysis.py?")
    first.process.kill()
    first.wait()
    second = start("--resume", ID, *FAST, size=(60, 90))
    second.until("> plot the data", "● Write(data.csv)", "Wrote 8 lines", f"{CREATE} analysis.py?")
    assert second.text.count("> plot the data") == 1
    second.type("2")
    second.until(RUN)
    second.type("1")
    second.until(PLOTTED)
    leave(second)
    third = start("--continue", *FAST)
    third.until(PLOTTED, AT_REST)


def test_a_conversation_without_a_word_can_be_resumed(start: Start) -> None:
    leave(start("--session-id", ID, *FAST))
    leave(start("--resume", ID, *FAST))


def test_what_was_allowed_holds_in_a_resumed_conversation(start: Start) -> None:
    first = start("plot", "--session-id", ID, *FAST)
    first.until(f"{CREATE} data.csv?")
    first.type("2")
    first.until(RUN)
    first.process.kill()
    first.wait()
    assert kept(ID)["allowed"] == ["edit"]
    start("--resume", ID, "fix the mean", *FAST).until(RUN, "python3 stats.py")


def test_an_id_is_used_once_and_resumed_only_if_known(start: Start) -> None:
    leave(start("--session-id", ID, *FAST))
    again = plain_on_terminal(start, "--session-id", ID)
    assert f"Session ID {ID} is already in use." in again
    assert "No conversation found with session ID: nonsense" in plain_on_terminal(start, "--resume", "nonsense")


def plain_on_terminal(start: Start, *arguments: str) -> str:
    terminal = start(*arguments)
    assert terminal.wait() == 1
    terminal.until("ession ID")
    assert terminal.restored
    return terminal.text


def test_permissions_can_be_skipped(start: Start) -> None:
    terminal = start("plot", "--dangerously-skip-permissions", *FAST)
    terminal.until(PLOTTED)
    assert b"Do you want" not in terminal.raw
    assert os.path.exists("plot.png")
