"""screen.py: the screen after a program's bytes, as plain text."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from wcwidth import wcwidth

from session_magics.errors import SessionError
from session_magics.text import screen
from session_magics.text.screen import SNAPSHOT_BYTES, picture, snapshot, styled

SIZE = (5, 20)
PIECES = [
    *(
        "a",
        "word ",
        "\n",
        "\r",
        "\b",
        "\t",
        "\0",
        "日本",
        "e\u0301",
        "⚠\ufe0f",
        "\u200d",
        "\x1b[31m",
        "\x1b[?4m",
        "\x1b[>4;2m",
    ),
    *("\x1b[1;2A", "\x1b[9999B", "\x1b[3;4H", "\x1b[2J", "\x1b[H", "\x1bc", "\x1b[?1049h", "\x1b[?1049l", "\x1b[?3h"),
    *("\x1b[2;3;4r", "\x1b[L", "\x1b[99M", "\x1b[4h", "\x1b[4@", "\x1b[9P", "\x1b[1K", "\x1b[1J", "\x1bM", "\x1bD"),
    *(
        "\x1b]0;t\a",
        "\x1bPx\x1b\\",
        "\x1b[?6h",
        "\x1b[?7l",
        "\x1b[0g",
        "\x1b7",
        "\x1b8",
        "\x1b[5n",
        "\x1b#8",
        "\x1b[7J",
    ),
]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("one\ntwo\r\n  three  \n\n", "one\ntwo\n  three"),
        ("1\n2\n3\n4\n5\n6\n7", "3\n4\n5\n6\n7"),
        ("x" * 25, "x" * 20 + "\n" + "x" * 5),
        ("\x1b[?7l" + "x" * 25 + "y", "x" * 19 + "y"),
        ("a\x1b[3;5Hb\x1b[2Hc", "a\nc\n    b"),
        ("a\nb\nc\x1b[2A\r\x1b[Kx", "x\nb\nc"),
        ("x" * 25 + "\x1b[1;2A!", "xxxxx!" + "x" * 14 + "\nxxxxx"),
        ("x" * 25 + "\x1b[7J\x1b[7K\x1b[?J", "x" * 20 + "\nxxxxx"),
        ("\x1b[2;3r1\n2\n3\n4", "1\n3\n4"),
        ("\x1b[31mred\x1b[0m \x1b[?4m\x1b[>4;2m\x1b[4:3mplain\x1b[m", "red plain"),
        ("\x1b]0;title\aa\x1bPq#0\x1b\\b\x1b_x\x1b\\c", "abc"),
        ("⚠\ufe0f warning \U0001f468\u200d\U0001f469\u00e9e\u0301", "⚠ warning \U0001f468\U0001f469\u00e9\u00e9"),
        ("日本\r\x1b[Cx", " x本"),
        ("日本\rx", "x 本"),
        ("\x1b[?3h" + "x" * 25, "x" * 20 + "\nxxxxx"),
        ("old\n\x1b[H\x1b[2J\x1b[3Jnew", "new"),
        ("old\n\x1b[2J\x1b[1;1Hnew", "new"),
        ("old\n\x1b[2Jnew", "\nnew"),
        ("old\n\x1bcnew\nline", "new\nline"),
        ("main\n\x1b[?1049h\x1b[Hvim", "vim"),
        ("main\n\x1b[?1049h\x1b[H\x1b[2Jvim\x1b[?1049l$ ", "main\n$"),
        ("vim was here\x1b[?1049l$ ls", "$ ls"),
    ],
)
def test_bytes_show_as(text: str, shown: str) -> None:
    assert snapshot(text.encode(), SIZE) == shown


@given(st.one_of(st.binary(max_size=300), st.lists(st.sampled_from(PIECES), max_size=60).map("".join).map(str.encode)))
def test_any_bytes_show_as_a_screen_of_that_size(data: bytes) -> None:
    lines = snapshot(data, SIZE).split("\n")
    assert len(lines) <= SIZE[0]
    for line in lines:
        assert line == line.rstrip()
        # The emulator lets a wide character hang over the last column.
        assert sum(max(wcwidth(char), 0) for char in line) <= SIZE[1] + 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[1;31mb\x1b[mc", "a\x1b[1;31mb\x1b[0mc"),
        ("\x1b[38;5;9;2;4:3mx", "\x1b[2;4;38;5;9mx\x1b[0m"),
        ("\x1b[44m  \x1b[m  ", "\x1b[44m  \x1b[0m"),
        ("\x1b[31ma\x1b7\x1b[32mb\x1b8c", "\x1b[31mac\x1b[0m"),
        ("\x1b[31ma\n\x1b[?1049h\x1b[32mb", "\x1b[32mb\x1b[0m"),
        ("\x1b[>4;2ma\x1b[?4mb", "ab"),
        ("\x1b[44m\x1b[K", "\x1b[44m" + " " * 20 + "\x1b[0m"),
    ],
)
def test_a_styled_screen_keeps_its_colours(text: str, shown: str) -> None:
    assert styled(text.encode(), SIZE) == shown


def test_what_the_emulator_fails_on_is_shown_as_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyte

    def fail(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(pyte.Screen, "draw", fail)
    assert snapshot(b"".join(b"%d\n" % n for n in range(9)) + b"\x1b[31mend", SIZE) == "5\n6\n7\n8\nend"


@pytest.mark.parametrize(
    ("head", "cut", "shown"),
    [
        (b"\x1b[3", b"8;5;1mred\nnext", "next"),
        (b"\xe6\x97", b"\xa5\x1b[Hx", "x"),
        (b"\x1b]0;ti", b"tle\a\x1b[Hx\n", "x"),
        (b"\xe6\x97", b"\xa5x", "x"),
    ],
)
def test_what_is_cut_at_the_start_of_the_tail_is_not_shown(head: bytes, cut: bytes, shown: str) -> None:
    fill = b"\0" * (SNAPSHOT_BYTES - len(cut))
    assert snapshot(head + cut + fill, SIZE) == shown


def test_only_the_tail_is_looked_at_and_its_lines_are_whole() -> None:
    data = b"".join(b"line %d\n" % n for n in range(100_000))
    assert snapshot(data, SIZE) == "line 99996\nline 99997\nline 99998\nline 99999"


def test_without_pyte_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyte", None)
    with pytest.raises(SessionError, match="pip install pyte"):
        snapshot(b"", SIZE)


def test_importing_the_module_does_not_import_pyte() -> None:
    code = "import sys, session_magics.text.screen; sys.exit('pyte' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_a_full_clear_keeps_style_region_and_modes() -> None:
    assert styled(b"\x1b[31m\x1b[2J\x1b[Hred", SIZE).startswith("\x1b[31mred")
    assert picture(b"old\x1b[2;4r\x1b[H\x1b[2J", SIZE).margins == (1, 3)
    assert snapshot(b"\x1b[4h\x1b[2J\x1b[Hbc\ra", SIZE) == "abc"


def test_a_deleted_line_takes_the_blank_one_below() -> None:
    assert snapshot(b"a\x1b[M", SIZE) == ""


def test_a_full_row_tells_what_filled_it() -> None:
    full = picture(b"x" * (SIZE[1] - 1) + b"\x1b[31my", SIZE)
    assert (full.row, full.column, full.last) == (0, SIZE[1] - 1, "\x1b[31my\x1b[0m")
    wide = picture("ab日".encode(), (2, 4))
    assert (wide.column, wide.last) == (2, "日")
    assert picture(b"x" * (SIZE[1] - 1), SIZE).last == ""


LINES = st.sampled_from(
    [
        *("a", "word", "x" * 25, "日本", "\r\n", "\r\n", "\n", "\r", "\b", "\t", "\x1b[31m", "\x1b[m"),
        *("\x1b[3;4H", "\x1b[2J", "\x1b[2;4r", "\x1b[4h", "\x1b[?7l", "\x1bH", "\x1b[?6h", "\x0e"),
    ]
)


@example(["word", "\x1b[2;4r", *["a"] * 20], True)
@example(["\x1b[4h", *["a"] * 20, "b\ra"], True)
@example(["\x0e", *["a"] * 20], True)
@given(st.lists(LINES, max_size=60), st.booleans())
def test_what_is_left_out_as_scrolled_away_is_not_seen(pieces: list[str], returns: bool) -> None:
    # a line before each piece, so that there is enough to leave out, and the whole of it without
    data = "".join(f"{piece}\r\n" for piece in pieces).encode()
    with pytest.MonkeyPatch.context() as patch:
        shown = picture(data, SIZE, returns=returns)
        patch.setattr(screen, "_still_there", lambda whole, *_: whole)
        assert shown == picture(data, SIZE, returns=returns)


def test_lines_that_scrolled_away_are_left_out() -> None:
    whole = ["\x1b[31m", "first\r\n" * 100 + "last", "\x1b[m", "end"]
    assert screen._still_there(whole, 5, "\n") == ["\x1b[31m", "first\r\n" * 10 + "last", "\x1b[m", "end"]
