"""Programs that ask the terminal get an answer, once, and only while they do not echo it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_magics.holder.queries import CURSOR, Answerer, _printed


class Typed:
    """A terminal that notes what is typed into it."""

    tty_fd = 3

    def __init__(self, *, echo: bool = False) -> None:
        self.echo, self.got = echo, b""

    def echoes(self) -> bool:
        return self.echo

    def write(self, data: bytes) -> int:
        self.got += data
        return len(data)


class Clock:
    """A loop whose timers are called by hand."""

    def __init__(self) -> None:
        self.calls: list[tuple[float, object]] = []

    def later(self, seconds: float, call: object) -> None:
        self.calls.append((seconds, call))


@pytest.fixture
def clock() -> Iterator[Clock]:
    return Clock()


def answers(clock: Clock, *pieces: bytes, echo: bool = False) -> bytes:
    answerer, terminal = Answerer(clock), Typed(echo=echo)
    for piece in pieces:
        answerer.look(terminal, piece, 24)
    return terminal.got


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (b"\033[c", b"\033[?62;22c"),
        (b"\033[0c", b"\033[?62;22c"),
        (b"\033[>c", b"\033[>0;276;0c"),
        (b"\033[5n", b"\033[0n"),
        (b"\033[6n", b"\033[24;1R"),
        (b"ab\033[31mc\xc3\xa9\033[6n", b"\033[24;5R"),
        (b"ab\ncd\rx\033[6n", b"\033[24;2R"),
    ],
)
def test_a_question_is_answered_once_however_it_is_cut(clock: Clock, question: bytes, answer: bytes) -> None:
    assert answers(clock, question) == answer
    escape = question.rfind(b"\033")
    for at in range(escape + 1, len(question)):
        got = answers(clock, question[:at], question[at:])
        assert got.startswith(answer.partition(b";")[0]) and got.count(b"\033") == 1


@pytest.mark.parametrize("harmless", [b"\033[31mred\033[m", b"\033[", b"6n", b"\033[66n", b"[6n", b"\033]0;t\007"])
def test_other_output_is_not_answered(clock: Clock, harmless: bytes) -> None:
    assert answers(clock, harmless, b"more\n") == b""


def test_while_the_echo_is_on_the_answer_waits_and_then_is_given_up(clock: Clock) -> None:
    answerer, terminal = Answerer(clock), Typed(echo=True)
    answerer.look(terminal, CURSOR, 24)
    assert terminal.got == b"" and len(clock.calls) == 1
    clock.calls[0][1]()
    terminal.echo = False
    clock.calls[1][1]()
    assert terminal.got == b"\033[24;1R"
    waits = answers(clock, CURSOR, echo=True)
    for _, call in clock.calls:  # grows while it is walked: each try plans the next
        call()
    assert waits == b"" and len(clock.calls) < 12


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=0x2FFF, exclude_characters="\x7f"), max_size=40))
def test_the_column_counts_characters(text: str) -> None:
    plain = "".join(one for one in text if ord(one) < 0x80 or ord(one) >= 0xA0)
    assert len(_printed(plain.encode())) == len(plain)
