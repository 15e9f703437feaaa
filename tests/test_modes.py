"""text/modes.py: what a program has switched on, brought to another terminal and taken back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_magics.text.modes import STACK_LIMIT, Modes

FRESH = b"\x0f\x1b(B\x1b[0m\x1b7\x1b[r\x1b8"
FRESH_FROM_ALTERNATE = b"\x0f\x1b(B\x1b[0m\x1b[r"


def seen(*data: bytes) -> Modes:
    modes = Modes()
    for piece in data:
        modes.see(piece)
    return modes


@pytest.mark.parametrize(
    ("data", "enter", "leave"),
    [
        (b"", b"", b""),
        (b"\x1b[31mtext\r\n\x1b[2J", b"", b""),
        (b"\x1b[?1h", b"\x1b[?1h", b"\x1b[?1l"),
        (b"\x1b[?1h\x1b[?1l", b"", b""),
        (b"\x1b[?1000;1006h", b"\x1b[?1000h\x1b[?1006h", b"\x1b[?1000l\x1b[?1006l"),
        (b"\x1b[?25l", b"\x1b[?25l", b"\x1b[?25h"),
        (b"\x1b[?7l\x1b[4h", b"\x1b[?7l\x1b[4h", b"\x1b[?7h\x1b[4l"),
        (b"\x1b[?1049h", b"", b"\x1b[?1049l"),
        (b"\x1b[?1049h\x1b[?2026h\x1b[?3h\x1b[?1049l", b"", b""),
        (b"\x1b=", b"\x1b=", b"\x1b>"),
        (b"\x1b=\x1b>", b"", b""),
        (b"\x1b[>1u\x1b[>5u", b"\x1b[>1u\x1b[>5u", b"\x1b[<2u"),
        (b"\x1b[>1u\x1b[>5u\x1b[<u", b"\x1b[>1u", b"\x1b[<1u"),
        (b"\x1b[>1u\x1b[=3u", b"\x1b[>3u", b"\x1b[<1u"),
        (b"\x1b[>4;2m", b"\x1b[>4;2m", b"\x1b[>4m"),
        (b"\x1b[>4;2m\x1b[>4m", b"", b""),
        (b"\x1b[5 q", b"\x1b[5 q", b"\x1b[0 q"),
        (b"\x1b]0;a title\x07", b"\x1b]2;a title\x07", b""),
        (b"\x1b]2;one\x1b\\\x1b]2;two\x1b\\", b"\x1b]2;two\x07", b""),
        (b"\x1b[?1h\x1b=\x1b[?25l\x1b[4h\x1b[!p", b"", b""),
        (b"\x1b[?1000h\x1b[?1049h\x1b[>1u\x1bc", b"", b""),
    ],
)
def test_modes_are_entered_and_left(data: bytes, enter: bytes, leave: bytes) -> None:
    begin = FRESH_FROM_ALTERNATE if seen(data).alternate else FRESH
    assert seen(data).enter() == enter and seen(data).leave() == begin + leave


def test_what_is_drawn_with_is_known() -> None:
    modes = seen(b"\x1b[?1049h\x1b[?25l\x1b[?6h\x1b[4h")
    assert modes.alternate and not modes.cursor_shown and modes.origin and modes.inserts
    fresh = Modes()
    assert not fresh.alternate and fresh.cursor_shown and not fresh.origin and not fresh.inserts
    assert modes != fresh and fresh == seen(b"\x1b[31m")


SEQUENCES = st.sampled_from(
    [
        *(b"\x1b[?%d%b" % (mode, final) for mode in (1, 7, 25, 1000, 1006, 2004, 1049) for final in (b"h", b"l")),
        *(
            b"\x1b=",
            b"\x1b>",
            b"\x1b[>1u",
            b"\x1b[<u",
            b"\x1b[<3u",
            b"\x1b[=2u",
            b"\x1b[>4;1m",
            b"\x1b[3 q",
            b"\x1b[4h",
        ),
        *(b"\x1b[!p", b"\x1bc", b"text"),
    ]
)


@given(st.lists(SEQUENCES, max_size=30))
def test_leaving_gives_a_fresh_terminal_and_entering_the_same(sequences: list[bytes]) -> None:
    modes = seen(*sequences)
    again = seen(b"\x1b[?1049h" if modes.alternate else b"", modes.enter())
    assert again.leave() == modes.leave() and again.enter() == modes.enter()
    modes.see(modes.leave())
    assert modes.leave() == FRESH and modes.enter() == b""


@given(st.binary(max_size=300))
def test_any_bytes_are_taken(data: bytes) -> None:
    seen(data, b"\x1b[" + data, b"\x1b[>" + data + b"u").leave()


def test_a_stack_of_keyboards_does_not_grow_for_ever() -> None:
    modes = seen(b"\x1b[>1u" * 1000)
    assert modes.leave() == FRESH + b"\x1b[<%du" % STACK_LIMIT
