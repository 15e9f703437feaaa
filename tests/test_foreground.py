"""Questions of a command: when they are asked, what becomes of the answer, and what happens where nobody can answer."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
from pathlib import Path

import pytest

import persons
from held import record
from persons import Notices, Person, play
from session_magics import CellCommandError, Session, foreground, run_cell
from session_magics.foreground import EOF
from session_magics.shell import Cell

# Seconds in which a command that nobody can answer has ended, whatever it is.
HEADLESS_LIMIT = 30.0

session = persons.session


# ------------------------------------------------------------------ the question

GETPASS = """python3 -c 'import getpass; print(len(getpass.getpass("PW: ")))'"""


@pytest.mark.parametrize(
    ("body", "asked", "output"),
    [
        ("read -p 'Name? ' x; echo [$x]", ("Name? ", False), "Name? ans\n[ans]\n"),
        ("echo one; echo two; read -p 'Name? ' x; echo [$x]", ("Name? ", False), "one\ntwo\nName? ans\n[ans]\n"),
        ("echo 'Go on?'; read x; echo [$x]", ("Go on?", False), "Go on?\nans\n[ans]\n"),
        (r"printf '\r50%%\r100%%\n\e[1mSure?\e[m '; read x", ("Sure? ", False), None),
        ("read -s -p 'Secret: ' x; echo [$x]", ("Secret: ", True), "Secret: [ans]\n"),
        (GETPASS, ("PW: ", True), "PW: \n3\n"),
        ("printf 'yes/no? ' >/dev/tty; read x </dev/tty; echo [$x]", ("yes/no? ", False), "yes/no? ans\n[ans]\n"),
        ("python3 -c 'print(input())'", ("", False), "ans\nans\n"),
        ("read x; echo [$x]", ("", False), "ans\n[ans]\n"),
    ],
    ids=["prompt", "last line", "line above", "resolved", "masked", "getpass", "tty", "python", "none"],
)
def test_a_question_has_its_text_and_is_masked_where_the_echo_is_off(
    session: Session, body: str, asked: tuple[str, bool], output: str | None
) -> None:
    person = Person("ans")
    shown, result = play(session, body, person)
    assert person.asked == [asked]
    assert result.returncode == 0
    assert output is None or shown == output


def test_questions_in_a_row_are_asked_one_by_one(session: Session) -> None:
    person = Person("1", "2", "3")
    shown, _ = play(session, "for i in a b; do read -p $i: $i; done; read -s -p c: c; echo; echo $a$b$c", person)
    assert person.asked == [("a:", False), ("b:", False), ("c:", True)]
    assert shown.endswith("\n123\n")


@pytest.mark.parametrize(
    "body",
    [
        "for i in 1 2 3 4 5 6 7; do echo $i; sleep 0.1; done; sleep 0.5",
        "sleep 0.7 | cat",
        "read x < <(sleep 0.7)",
        "cat </dev/null; sleep 0.6",
        "read -t 0.7 x",  # polls: it could take input, but does not have to
        "python3 -c 'import select, sys; select.select([sys.stdin], [], [], 0.7)'",
    ],
)
def test_nothing_is_asked_on_a_guess(session: Session, body: str) -> None:
    person = Person()
    play(session, body, person)
    assert person.asked == []


def test_nothing_is_asked_for_a_read_that_is_too_short_to_be_certain(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreground, "CERTAIN", 5.0)  # a machine with other work may make the read longer
    person = Person()
    play(session, "timeout --foreground 0.5 cat; sleep 0.2", person)
    assert person.asked == []


def test_a_question_behind_much_output_is_asked_though_the_sink_is_slow(session: Session) -> None:
    class Slow(Notices):
        def due(self, now: float) -> float:
            return now if not self.output else now + 3600

    sink, person = Slow(), Person("ans")
    shown, result = play(session, "seq 1000; sleep 0.2; seq 1000; read -p 'Name? ' x; echo [$x]", person, sink)
    assert person.asked == [("Name? ", False)]
    assert shown.endswith("Name? ans\n[ans]\n")
    assert b"Name? " in sink.output
    assert result.returncode == 0


# ------------------------------------------------------------------ the answer


@pytest.mark.parametrize(
    "answer",
    ["", " two  spaces ", "$(x) `y` 'q\" \\ * ? ! # & ; | ~", "é日本🦊", "-n", "a\tb", "x" * 4095, "é" * 10_000],
    ids=lambda answer: repr(answer)[:12],
)
def test_an_answer_arrives_as_it_was_given(session: Session, tmp_path: Path, answer: str) -> None:
    # Into a file: on the terminal the last of a long line's echo may come within what the program prints.
    code = "import sys; print(ascii(sys.stdin.buffer.readline()))"
    play(session, f"python3 -c '{code}' >{tmp_path}/given", Person(answer))
    assert (tmp_path / "given").read_text() == ascii((answer + "\n").encode()) + "\n"


def test_end_of_file_is_an_answer(session: Session) -> None:
    shown, _ = play(session, "read -p 'Name? ' x; echo $?; cat; echo end", Person(EOF, "line", EOF))
    assert shown == "Name? 1\nline\nline\nend\n"


def test_a_program_that_takes_single_keys_gets_no_enter(session: Session) -> None:
    shown, _ = play(session, "read -n1 -p 'y/n ' x; read -p ' why ' w; echo [$x$w]", Person("y", "so"))
    assert shown == "y/n y why so\n[yso]\n"


UNTIL = "until sleep 0.02; [ -e"


def note_stale_questions(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Make a file once it was seen that the command does something else than it asked."""
    seen = foreground._Question.seen

    def noting(question: foreground._Question, *, waiting: bool) -> None:
        seen(question, waiting=waiting)
        if question.stale:
            path.touch()

    monkeypatch.setattr(foreground._Question, "seen", noting)


# Which of the two it is depends on whether the next read has begun.
GONE_ON = "the command (went on and asks something else|no longer waits for input): the answer was dropped"


@pytest.mark.parametrize(
    ("rest", "output", "notice"),
    [
        (f"touch on; {UNTIL} told ]; do :; done", "", "the command no longer waits for input: the answer was dropped"),
        ("touch on; read -p 'next? ' x; echo [$x]", "next? real\n[real]\n", GONE_ON),
        ("touch on; read -s -p 'next? ' x; echo [$x]", "next? [real]\n", GONE_ON),
        (f"echo; {UNTIL} seen ]; do :; done; touch on; read x; echo [$x]", "\nreal\n[real]\n", GONE_ON),
        (":", "", "the question was not answered in time: an answer that comes now is dropped"),
    ],
    ids=["goes on", "next", "masked", "same place", "ends"],
)
def test_an_answer_that_comes_too_late_is_dropped(
    session: Session, tmp_path: Path, rest: str, output: str, notice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    note_stale_questions(monkeypatch, tmp_path / "seen")

    def late() -> str | None:
        if (tmp_path / "reader").exists():  # the question is open: what asked gives up
            pid = int((tmp_path / "reader").read_text())
            (tmp_path / "reader").unlink()
            os.kill(pid, signal.SIGALRM)
        return "late" if (tmp_path / "on").exists() else None

    class Told(Notices):
        def notice(self, line: str) -> None:
            super().notice(line)
            (tmp_path / "told").touch()

    sink, person = Told(), Person(late, "real")
    asks = "sh -c 'echo $$ >reader; exec timeout --foreground 60 cat'"
    body = f"cd {tmp_path}; printf 'first? '; {asks}; {rest}"
    assert play(session, body, person, sink)[0] == "first? " + output
    assert len(sink.lines) == 1
    assert re.fullmatch(notice, sink.lines[0])
    assert play(session, "read -t 0.1 y; echo [$y]", None)[0] == "[]\n"


def test_lines_of_a_background_job_do_not_spoil_a_question(session: Session, tmp_path: Path) -> None:
    go = tmp_path / "go"

    def answer() -> str | None:
        go.touch()
        return "ans" if b"job\n" in sink.output else None

    sink, person = Notices(), Person(answer)
    body = f"(until [ -e {go} ]; do sleep 0.01; done; echo job) & read -p 'Name? ' x; echo [$x]"
    shown, _ = play(session, body, person, sink)
    assert shown.startswith("Name? job\nans\n[ans]\n")
    assert not sink.lines


# ------------------------------------------------------------------ nobody there


@pytest.mark.parametrize(
    "body",
    [
        "read -p 'Name? ' x",
        "read -s x",
        "python3 -c 'input()'",
        "python3 -c 'import getpass; getpass.getpass()'",
        "read x </dev/tty",
        "read -e -p 'Name? ' x",
        "less /etc/passwd",
        "vi x",
        "trap '' INT; while :; do read x; done",
        "while :; do cat; done",
    ],
)
def test_where_nobody_can_answer_a_command_ends_and_the_error_says_why(session: Session, body: str) -> None:
    if body.startswith("vi"):
        shutil.which("vi") or pytest.skip("vi is not installed")
    with pytest.raises(CellCommandError, match="session 'main': it asked for input, which nobody can give here"):
        run_cell(session, body, timeout=HEADLESS_LIMIT)
    assert play(session, "trap - INT; stty sane -onlcr; echo next", None)[0] == "next\n"


def test_what_reads_to_the_end_of_its_input_is_content_with_none(session: Session) -> None:
    body = "cat; wc -c; python3 -c 'import sys; print(sys.stdin.read())'; echo end"
    shown, result = play(session, body, None)
    assert (shown, result.returncode) == ("0\n\nend\n", 0)


# ------------------------------------------------------------------ the end of it all


def test_a_holder_that_is_killed_leaves_an_unknown_outcome_and_no_second_run(session: Session, tmp_path: Path) -> None:
    ran, holder = tmp_path / "ran", record(session).holder

    class Killer(Notices):
        def advance(self, cell: Cell, upto: int) -> None:
            super().advance(cell, upto)
            if b"go" in self.output:
                with contextlib.suppress(ProcessLookupError):  # the output came in two pieces
                    os.kill(holder, signal.SIGKILL)

    with pytest.raises(CellCommandError, match="outcome is unknown"):
        run_cell(session, f"echo x >>{ran}; echo go; sleep 600", sink=Killer())
    assert ran.read_text() == "x\n"
    session.stop(now=True)
