"""The cutter gives back every byte but the marks, however the bytes come."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from session_magics.holder.dialects import mark
from session_magics.holder.marks import BEGIN, END, NONE, Cutter

FIRST, LAST, OTHER = (mark(nonce) for nonce in (b"a1b2c3", b"d4e5f6", b"a1b2c4"))
# Text of a kind that meets the marks half-way: their beginnings, their parts, marks of others.
TEXT = st.lists(
    st.one_of(
        st.sampled_from([b"\033", b"\033]7788;", FIRST[:-1], LAST[:-1], FIRST[1:], OTHER, b"\033[31m", b"\n", b"x"]),
        st.binary(max_size=8),
    ),
    max_size=8,
).map(b"".join)


def cut(pieces: list[bytes]) -> tuple[bytes, list[tuple[int, int]]]:
    """All text, and each mark with the place where it stood."""
    cutter, text, places = Cutter(), b"", []
    cutter.expect(FIRST, LAST)
    for piece in pieces:
        for part, behind in cutter.feed(piece):
            text += part
            if behind != NONE:
                places.append((behind, len(text)))
    return text + cutter.release(), places


@given(before=TEXT, inside=TEXT, after=TEXT, cuts=st.lists(st.integers(0, 300), max_size=12))
def test_any_chunking_gives_the_same_text_and_offsets(
    before: bytes, inside: bytes, after: bytes, cuts: list[int]
) -> None:
    stream = before + FIRST + inside + LAST + after
    places = [0, *sorted(min(one, len(stream)) for one in cuts), len(stream)]
    chunks = [stream[begin:end] for begin, end in pairwise(places)]
    text, marks = cut(chunks)
    assert (text, marks) == cut([stream])
    first = len(stream[: stream.find(FIRST)])
    last = stream.find(LAST, first + len(FIRST)) - len(FIRST)
    assert marks == [(BEGIN, first), (END, last)]
    assert text == (stream[:first] + stream[first + len(FIRST) :][: last - first]) + stream[last + len(FIRST + LAST) :]


@given(text=TEXT)
def test_nothing_is_held_back_but_a_possible_mark(text: bytes) -> None:
    cutter = Cutter()
    cutter.expect(FIRST, LAST)
    given_back = b"".join(part for part, _ in cutter.feed(text))
    held = cutter.release()
    if FIRST not in text:
        assert given_back + held == text
        assert FIRST.startswith(held)


def test_without_a_command_everything_is_text_at_once() -> None:
    assert Cutter().feed(FIRST + b"\033]77") == [(FIRST + b"\033]77", NONE)]


def test_a_forged_mark_is_text_and_the_true_one_is_found_behind_it() -> None:
    assert cut([OTHER + FIRST + OTHER + FIRST + LAST]) == (
        OTHER + OTHER + FIRST,
        [(BEGIN, len(OTHER)), (END, len(OTHER + OTHER + FIRST))],
    )


def test_an_unterminated_escape_sequence_does_not_swallow_a_mark() -> None:
    before, inside = b"\033]0;title\033[3", b"\033P"
    whole = before + inside
    assert cut([before + FIRST + inside + LAST]) == (whole, [(BEGIN, len(before)), (END, len(whole))])
