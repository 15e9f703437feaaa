"""text.py (with page.py and escapes.py under it): bytes become text, in changes that a display can follow."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_magics.text import Append, Change, LineModel, Rewrite, plain, strip_styles
from session_magics.text.escapes import STRING_LIMIT, restyle, split

CLEAR = "\x1b[H\x1b[2J\x1b[3J"
TOKENS = [
    *(
        "a",
        "bc",
        "\n",
        "\n",
        "\r",
        "\r\n",
        "\b",
        "\t",
        "\0",
        "\a",
        "é",
        "日",
        "🎉",
        "\x9b",
        "\x7f",
        "x" * 30,
        "1\n2\n3\n4\n",
    ),
    *("\x1b[31m", "\x1b[1;4m", "\x1b[0m", "\x1b[m", "\x1b[38;5;9m", "\x1b[39m", "\x1b[>4;2m", "\x1b[48:2::1:2:3m"),
    *("\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[J", "\x1b[1J", "\x1b[2J", "\x1b[3J", "\x1b[H", "\x1b[2;3H", "\x1bc"),
    *("\x1b[A", "\x1b[2A", "\x1b[B", "\x1b[3C", "\x1b[2D", "\x1b[E", "\x1b[F", "\x1b[4G", "\x1b[2d"),
    *("\x1b[P", "\x1b[2@", "\x1b[2X", "\x1b[L", "\x1b[M", "\x1b7", "\x1b8", "\x1b[s", "\x1b[u", "\x1b(B", "\x1b"),
    *(
        "\x1b]0;title\a",
        "\x1b]8;;u\x1b\\",
        "\x1bPq#\x1b\\",
        "\x1b_x",
        "\x1b[?1049h",
        "\x1b[?1049l",
        "\x1b[?25l",
        "\x1b[",
    ),
    *(b"\xff", b"\xe2\x82", b"\xc2", "\x1b]" + "y" * (STRING_LIMIT - 3)),
]
streams = st.lists(st.sampled_from(TOKENS), max_size=40).map(
    lambda tokens: b"".join(token if isinstance(token, bytes) else token.encode() for token in tokens)
)
any_bytes = st.one_of(streams, st.binary(max_size=200))


def resolved(*feeds: str | bytes, rows: int = 24, finish: bool = True) -> str:
    model = LineModel(rows)
    for data in feeds:
        model.feed(data.encode() if isinstance(data, str) else data)
    if finish:
        model.finish()
    return model.text()


def followed(shown: str, change: Change | None) -> str:
    match change:
        case Append(text=text):
            assert text
            return shown + text
        case Rewrite(text=text):
            assert text != shown
            return text
    return shown


def cut(data: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in pairwise(bounds)]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("l1\nl2\n\x1b[1A\x1b[2KX\n", "l1\nX\n"),
        ("12345\b\b\bX\n", "12X45\n"),
        ("a\r\r\nb\r\n", "a\nb\n"),
        ("abcdef\rXY\n", "XYcdef\n"),
        ("working...\r\x1b[Kdone\n", "done\n"),
        ("n\0a\n", "na\n"),
        ("b\a\n", "b\n"),
        ("a\x0e\x0f\x0b\x0c\x7f\u0085b", "ab"),
        ("a\tb\rX", "X\tb"),
        ("abc\r\tX", "\tXc"),
        ("\x1b]0;my title\ac", "c"),
        ("\x1b]133;D;0\a\x1b]697;x\atail", "tail"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;lost\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"),
        ("\x1bPq#0;2;0\x1b\\a\x1b_G\a\x1b\\b\x1b^p\x1b\\c\x1bXs\x1b\\d", "abcd"),
        ("\x1b(B\x1b)0\x1b=\x1b>\x1b#8\x1b%Ga", "a"),
        ("\x1b[?25l\x1b[?2004h\x1b[6n\x1b[>4;2m\x1b[>c\x1b[0 q\x1b[!pa", "a"),
        ("\x1b[3\na\x1b\x1b[1\x1b[0mb", "\nab"),
        ("日本\rx", "x本"),
        ("cut\x1b[3", "cut"),
        ("cut\x1b", "cut"),
        (b"cut\xe2\x82", "cut\ufffd"),
        (b"\xff\xfe\n", "\ufffd\ufffd\n"),
        ("x" * 300 + "\n", "x" * 300 + "\n"),
        ("bar0\n\rbar1\x1b[A\rbar0'\n\rbar1'", "bar0'\nbar1'"),
        ("a\nb\nc\x1b[2A\x1b[GX\n\nZ", "X\nb\nZ"),
        ("a\nb\nc\x1b[99AX\n", "aX\nb\nc"),
        ("ab\x1b[3Cc\x1b[6D!", "!b   c"),
        ("a\x1b[Bb", "a\n b"),
        ("a\nb\x1b[Fx\x1b[Ey", "x\ny"),
        ("a\nb\x1b[1;3Hx\x1b[3;2fy", "a x\nb\n y"),
        ("ab\x1b[3dc\x1b[1dd", "ab d\n\n  c"),
        ("abcdef\x1b[3G\x1b[K", "ab"),
        ("abcdef\x1b[3G\x1b[1K", "   def"),
        ("abcdef\x1b[3G\x1b[2KX", "  X"),
        ("abcdef\x1b[2G\x1b[2P", "adef"),
        ("abcdef\x1b[2G\x1b[2@", "a  bcdef"),
        ("abcdef\x1b[2G\x1b[2X", "a  def"),
        ("abcdef\x1b[2G\x1b[99X", "a"),
        ("a\nb\nc\x1b[2A\x1b[M", "b\nc"),
        ("a\nb\nc\x1b[A\x1b[LX", "a\nX\nb\nc"),
        ("a\nbb\nc\x1b[A\x1b[2G\x1b[J", "a\nb"),
        ("a\nbb\nc\x1b[A\x1b[1G\x1b[1J", "\n b\nc"),
        ("a\x1b7\nb\x1b8X\x1b[sYY\x1b[uZ", "aXZY\nb"),
        ("echo old\n" + CLEAR + "after", "after"),
        ("old\n\x1b[3J\x1b[H\x1b[2Jafter", "after"),
        ("old\n\x1bcafter", "after"),
        ("a\x1b[?1049h\x1b[H\x1b[2Jvim\x1b[31m\x1b]0;t\a\x1b[?1049lb", "ab"),
        ("a\x1b[?47hx\x1b[?47lb\x1b[?1047;25hx\x1b[?1047lc", "abc"),
        ("a\x1b[?1049hx\x1bcb", "b"),
        ("\x1b[31mred\x1b[0m\n", "\x1b[31mred\x1b[0m\n"),
        ("\x1b[31m<b>x</b>\x1b[0m", "\x1b[31m<b>x</b>\x1b[0m"),
        ("\x1b[1m\x1b[31ma\x1b[31mb\x1b[mc", "\x1b[1;31mab\x1b[0mc"),
        ("\x1b[31ma\n\nb", "\x1b[31ma\x1b[0m\n\n\x1b[31mb\x1b[0m"),
        ("\x1b[31ma\x1b[32mb\x1b[39m\n", "\x1b[31ma\x1b[0;32mb\x1b[0m\n"),
        ("\x1b[31mabc\x1b[0m\rX", "X\x1b[31mbc\x1b[0m"),
        ("abc\r\x1b[1m\x1b[CX", "a\x1b[1mX\x1b[0mc"),
        ("a\x1b[31m\x1b[3Cb\x1b[0m", "a   \x1b[31mb\x1b[0m"),
        ("\x1b[01;31m\x1b[Kmatch\x1b[m\x1b[K rest", "\x1b[1;31mmatch\x1b[0m rest"),
    ],
)
def test_bytes_resolve_to(data: str | bytes, text: str) -> None:
    assert resolved(data) == text
    raw = data.encode() if isinstance(data, str) else data
    assert resolved(*(bytes([byte]) for byte in raw)) == text


@pytest.mark.parametrize(
    ("sequences", "style"),
    [
        (["\x1b[1;2;3;4;5;7;8;9m"], "1;2;3;4;5;7;8;9"),
        (["\x1b[1;2m", "\x1b[22m"], ""),
        (["\x1b[91;102m"], "91;102"),
        (["\x1b[38;5;208;1m"], "1;38;5;208"),
        (["\x1b[38;2;1;2;3;48;5;4m"], "38;2;1;2;3;48;5;4"),
        (["\x1b[38:2::1:2:3m"], "38;2;1;2;3"),
        (["\x1b[38:2:1:2:3m"], "38;2;1;2;3"),
        (["\x1b[38:5:7m"], "38;5;7"),
        (["\x1b[58;5;3;1m"], "1"),
        (["\x1b[4:3m"], "4"),
        (["\x1b[4:3m", "\x1b[4:0m"], ""),
        (["\x1b[1m", "\x1b[38;5;999m", "\x1b[38m", "\x1b[38;2;1m", "\x1b[38;9;m", "\x1b[77m"], ""),
        (["\x1b[1m", "\x1b[38;5;999m", "\x1b[38m", "\x1b[38;2;1m", "\x1b[38:9m", "\x1b[77m"], "1"),
        (["\x1b[31m", "\x1b[?4m", "\x1b[>4;2m"], "31"),
        (["\x1b[31m", "\x1b[;4m"], "4"),
    ],
)
def test_styles_add_up_to(sequences: list[str], style: str) -> None:
    got = ""
    for sequence in sequences:
        got = restyle(got, sequence)
    assert got == style


@given(streams, st.lists(st.integers(0, 10_000), max_size=8), st.integers(1, 5))
def test_any_cut_of_the_bytes_gives_the_same_text(data: bytes, places: list[int], rows: int) -> None:
    assert resolved(*cut(data, places), rows=rows) == resolved(data, rows=rows)
    assert resolved(*cut(data, places), rows=rows, finish=False) == resolved(data, rows=rows, finish=False)


@given(any_bytes, st.lists(st.integers(0, 10_000), max_size=8), st.integers(1, 5))
def test_changes_applied_in_order_give_the_text(data: bytes, places: list[int], rows: int) -> None:
    model, shown = LineModel(rows), ""
    for part in cut(data, places):
        model.feed(part)
        shown = followed(shown, model.take())
        assert shown == model.text()
        assert model.size == len(shown)
        assert model.take() is None
    model.finish()
    assert followed(shown, model.take()) == model.text() == resolved(data, rows=rows)


@given(st.binary(max_size=400))
def test_any_bytes_become_printable_text(data: bytes) -> None:
    text = plain(data)
    assert not [char for char in text if (char < " " and char not in "\n\t") or "\x7f" <= char <= "\x9f"]


@given(streams)
def test_styles_do_not_change_the_characters(data: bytes) -> None:
    unstyled = re.sub(rb"\x1b\[[0-9;:]*m", b"\x1b[?25l", data)
    assert plain(data) == strip_styles(resolved(data)) == resolved(unstyled)


@given(streams)
def test_every_line_ends_in_the_default_style(data: bytes) -> None:
    for line in resolved(data).split("\n"):
        last = ([""] + [piece for piece in split(line)[0] if piece.startswith("\x1b")])[-1]
        assert last in ("", "\x1b[0m")


def test_partial_lines_are_shown_and_grow_by_appending() -> None:
    model = LineModel()
    model.feed(b"Password")
    assert model.take() == Append("Password")
    assert model.take() is None
    model.feed(b": ")
    assert model.take() == Append(": ")
    model.feed(b"\r\nok\n")
    assert model.take() == Append("\nok\n")


def test_coloured_dots_grow_by_appending() -> None:
    model = LineModel()
    model.feed(b"\x1b[32m.\x1b[0m")
    assert model.take() == Append("\x1b[32m.")
    model.feed(b"\x1b[32m.\x1b[0m")
    assert model.take() == Append(".")
    model.feed(b" ok\n")
    assert model.take() == Append("\x1b[0m ok\n")


def test_a_line_drawn_again_is_a_rewrite_and_drawn_the_same_is_nothing() -> None:
    model = LineModel()
    model.feed(b"log\n 10%")
    assert model.take() == Append("log\n 10%")
    model.feed(b"\r 10%\r")
    assert model.take() is None
    model.feed(b" 20%")
    assert model.take() == Rewrite("log\n 20%")
    model.feed(b"\r 20% done\n")
    assert model.take() == Append(" done\n")


def test_a_clear_is_a_rewrite_of_what_was_taken_only() -> None:
    model = LineModel()
    model.feed(b"old\n" * 100)
    model.take()
    model.feed(CLEAR.encode())
    assert model.take() == Rewrite("")
    model.feed(b"never seen" + CLEAR.encode() + b"new")
    assert model.take() == Append("new")
    model.feed(CLEAR.encode() + b"new")
    assert model.take() is None


def test_what_was_taken_and_then_dropped_is_not_mistaken_for_what_follows() -> None:
    model = LineModel(rows=1)
    model.feed(b"a\nb\n")
    assert model.take() == Append("a\nb\n")
    model.feed(b"\x1bcc")
    assert model.take() == Rewrite("c")
    model.feed(b"\nd")
    assert model.take() == Append("\nd")
    model.feed(b"\x1b[3J")
    assert model.take() == Rewrite("d")


def test_finish_closes_the_style_and_the_character_and_feeding_may_go_on() -> None:
    model = LineModel()
    model.feed(b"\x1b[31mred\xe2\x82")
    assert model.take() == Append("\x1b[31mred")
    model.finish()
    assert model.take() == Append("\ufffd\x1b[0m")
    model.feed(b"!")
    assert model.text() == "\x1b[31mred\ufffd!"


def test_lines_above_the_window_stay_as_they_are() -> None:
    text = "".join(f"{n}\n" for n in range(10))
    assert resolved(text + "\x1b[99AX", rows=4) == text.replace("7\n", "X\n")
    assert resolved(text + "\x1b[HX\x1b[J", rows=4) == text[:14] + "X"
    assert resolved(text + "\x1b[3Jend", rows=4) == "7\n8\n9\nend"
    assert resolved(text + "\x1b[A\x1b[5LX", rows=4) == text[:14] + "7\n8\nX\n"
