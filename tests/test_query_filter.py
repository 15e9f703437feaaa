"""text/queries.py: no question reaches the terminal, and all else does, however the output is cut."""

from __future__ import annotations

import re
from itertools import pairwise

import pyte
import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_magics.text.queries import HEAD_LIMIT, STRING_LIMIT, QueryFilter

QUERIES = [
    *("\x1b[c", "\x1b[0c", "\x1b[>c", "\x1b[>0c", "\x1b[=c", "\x1bZ", "\x05", "\x9a"),
    *("\x1b[5n", "\x1b[6n", "\x1b[?6n", "\x1b[?15n", "\x1b[?996n", "\x1b[x", "\x1b[1x", "\x9b6n", "\x1b[0006n"),
    *("\x1b[?2026$p", "\x1b[4$p", "\x1b[>q", "\x1b[>0q", "\x1b[?u", "\x1b[14t", "\x1b[18t", "\x1b[21t", "\x1b[014t"),
    *("\x1b]10;?\x07", "\x1b]11;?\x1b\\", "\x1b]4;1;?\x07", "\x1b]4;1;red;2;?\x07", "\x1b]52;c;?\x07", "\x9d11;?\x9c"),
    *("\x1b]1337;ReportCellSize\x07", "\x1b]21;foreground=?\x1b\\", "\x1b]60\x07", "\x1b]99;i=1:p=?;\x1b\\"),
    *("\x1bP$qm\x1b\\", "\x1bP+q544e\x1b\\", "\x1bPtmux;\x1b\\", "\x1b_Gi=1,a=q;AAAA\x1b\\", "\x1b[?1;1;0S"),
    *("\x1b[1$w", "\x1b[1;1;1;1;1;1*y", "\x1b['|", "\x1b[#R", "\x1b[\n6n", "\x1b\r[6\x08n", "\x1b[?2048h", "\x1b%@"),
    *("\x1b[6\x7fn", "\x1b]\n11;?\x07", "\x1b[?4m"),
]
HARMLESS = [
    *("a", "two words", "\r\n", "\t", "\b", "\x07", "日本", "e\u0301", "🙂", "曛ě\u00a0", "\x0e", "\x0f"),
    *("\x1b[31m", "\x1b[38;2;1;2;3m", "\x1b[4:3m", "\x1b[H", "\x1b[2J", "\x1b[3;4r", "\x1b[?25l", "\x1b[?1049h"),
    *("\x1b[?1;2c", "\x1b[8;24;80t", "\x1b[22;2t", "\x1b[1 q", "\x1b[!p", "\x1b[>4;2m", "\x1b[>1u", "\x1b[<u"),
    *("\x1b]0;what?\x07", "\x1b]2;?\x1b\\", "\x1b]8;;http://a/?b\x1b\\", "\x1b]52;c;aGk=\x07", "\x1b]4;1;red\x07"),
    *("\x1bPq#0;1;1\x1b\\", "\x1b7", "\x1b8", "\x1b(0", "\x1b=", "\x1b>", "\x1bM", "\x1bc", "\x1b_other\x1b\\"),
    *("\x1b]" + "1337;File=:" + "A" * STRING_LIMIT + "\x07", "\x1bPq" + "~" * 3 * HEAD_LIMIT + "\x1b\\"),
]


def passed(data: bytes, cuts: tuple[int, ...] = ()) -> bytes:
    """What the filter makes of data that comes in pieces."""
    one = QueryFilter()
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return b"".join(one.feed(data[begin:end]) for begin, end in pairwise(edges))


class Answering(pyte.Screen):
    """Counts what it answers."""

    answers = 0

    def write_process_input(self, data: str) -> None:
        self.answers += 1


def answered(data: bytes) -> int:
    screen = Answering(80, 24)
    stream = pyte.Stream(screen)
    try:
        stream.feed(data.decode("utf-8", "replace"))
    except Exception:
        return 0  # the emulator fails on odd input; the other check looks at that
    return screen.answers


SOME_QUERIES = re.compile(
    rb"\x1b[\x00-\x17\x19\x1c-\x1f\x7f]*(?:Z|\[[\x00-\x17\x19\x1c-\x1f\x7f0-9;]*[cn]|\[>[0-9;]*[cq])|\x05"
)

cuts = st.lists(st.integers(0, 1 << 20), max_size=8).map(tuple)


@pytest.mark.parametrize("query", QUERIES)
def test_a_question_does_not_pass_wherever_it_is_cut(query: str) -> None:
    data = f"before{query}after".encode()
    whole = passed(data)
    assert re.sub(rb"[\x00-\x1f]", b"", whole) == b"beforeafter"
    for cut in range(len(data)):
        assert passed(data, (cut,)) == whole


@pytest.mark.parametrize("harmless", HARMLESS)
def test_all_else_passes_unchanged(harmless: str) -> None:
    data = f"before{harmless}after".encode()
    for cut in (0, 6, 7, 8, 9, 10, len(data) - 6, len(data)):
        assert passed(data, (cut,)) == data


@given(st.lists(st.sampled_from([*QUERIES, *HARMLESS]), max_size=12), cuts)
def test_a_stream_keeps_all_but_its_questions(pieces: list[str], cuts: tuple[int, ...]) -> None:
    controls = {query: re.sub(r"[^\n\r\x08]", "", query) for query in QUERIES}  # those within are carried out
    expected = "".join(controls.get(piece, piece) for piece in pieces)
    strings = [piece for piece in pieces if piece.startswith("\x1b]\n")]
    if not strings:
        assert passed("".join(pieces).encode(), cuts) == expected.encode()


@given(st.lists(st.one_of(st.binary(max_size=12), st.sampled_from(QUERIES).map(str.encode)), max_size=30), cuts)
def test_random_bytes_never_hold_a_question(pieces: list[bytes], cuts: tuple[int, ...]) -> None:
    out = passed(b"".join(pieces), cuts)
    assert not SOME_QUERIES.search(out)
    assert answered(out) == 0
    assert out == passed(b"".join(pieces))


@given(st.text(st.characters(exclude_categories=["Cc", "Cs"])), cuts)
def test_text_passes_unchanged(text: str, cuts: tuple[int, ...]) -> None:
    # what is cut off at the end waits for the rest; a text has no such end
    assert passed(text.encode(), cuts) == text.encode()


@given(st.binary(max_size=200), cuts)
def test_it_is_the_same_however_it_is_cut(data: bytes, cuts: tuple[int, ...]) -> None:
    assert passed(data, cuts) == passed(data)


def test_modes_that_answer_are_taken_out_of_a_list_of_modes() -> None:
    assert passed(b"\x1b[?1049;2048;25h") == b"\x1b[?1049;25h"
    assert passed(b"\x1b[?2l") == b""


def test_a_string_without_an_end_is_not_kept_for_ever() -> None:
    one = QueryFilter()
    for start in (b"\x1b]11;", b"\x1b]52;c;", b"\x1bPq", b"\x1b_"):
        one.feed(b"\x18" + start)
        for _ in range(100):
            one.feed(b"x" * 10_000)
        assert len(one._kept) < 2 * STRING_LIMIT
    assert one.inside
    assert one.feed(b"\x1b\\after").endswith(b"after") and not one.inside
