"""cli/scene.py: a terminal that is drawn a picture shows what a terminal shows that saw it all."""

from __future__ import annotations

from pathlib import Path

import pyte
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from wcwidth import wcwidth

from session_magics.cli import scene
from session_magics.log import LogReader, segment_name
from session_magics.text.modes import Modes
from session_magics.text.screen import picture

Size = tuple[int, int]

SIZE = (6, 20)


class Emulator(pyte.Screen):
    """One that also moves up rows that nothing was ever written in."""

    def delete_lines(self, count: int | None = None) -> None:
        for row in range(self.lines):
            self.buffer[row]
        super().delete_lines(count)


class Shown:
    """A terminal, and what it shows."""

    def __init__(self, size: tuple[int, int], text: str = "") -> None:
        self.screen = Emulator(size[1], size[0])
        self.stream = pyte.ByteStream(self.screen)
        self.see(text.encode())

    def see(self, data: bytes) -> Shown:
        self.stream.feed(data)
        return self

    @property
    def cells(self) -> list[list[tuple[str, str, str, bool, bool]]]:
        rows = [[self.screen.buffer[row][column] for column in range(self.screen.columns)] for row in range(
            self.screen.lines)]  # fmt: skip
        return [[(cell.data, cell.fg, cell.bg, cell.bold, cell.reverse) for cell in row] for row in rows]

    @property
    def lines(self) -> list[str]:
        """As the emulator's own `display`, which fails on half a wide character: here that is a blank."""
        rows = [[cell[0] for cell in row] for row in self.cells]
        return ["".join(map(_half, ["", *row], row, [*row[1:], ""])).rstrip() for row in rows]

    @property
    def cursor(self) -> tuple[int, int]:
        return self.screen.cursor.y, min(self.screen.cursor.x, self.screen.columns - 1)


def _half(before: str, cell: str, after: str) -> str:
    if not cell:
        return "" if before and wcwidth(before[0]) == 2 else " "
    return " " if wcwidth(cell[0]) == 2 and after else cell


def drawn(
    data: bytes, size: tuple[int, int] = SIZE, on: Shown | None = None, of: tuple[int, int] | None = None
) -> Shown:
    modes = Modes()
    modes.see(data)
    shown = picture(data, of or size, returns=False)
    return (on or Shown(size)).see(scene.draw(shown, size, modes, None, scroll=True))


PIECES = [
    *(b"a", b"word ", b"\r\n", b"\r", b"\b", b"\x1b[31m", b"\x1b[1;7m", b"\x1b[44m", b"\x1b[m", b"\x1b[K", b"\x1b[2J"),
    *(b"\x1b[H", b"\x1b[3;4H", b"\x1b[2;4r", b"\x1b[A", b"\x1b[B", b"\x1b[3C", b"\x1b[L", b"\x1b[M", b"\x1b[2P"),
    *(b"x" * 20, b"x" * 25, "日本".encode(), b"\x1b[?25l", b"\x1b[?25h"),
]


@given(st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join))
def test_a_drawing_is_what_one_would_have_seen(data: bytes) -> None:
    seen = Shown(SIZE).see(data)
    assume(all(wcwidth(row[-1][0] or " ") == 1 for row in seen.cells))  # the emulator lets half of one stick out
    redrawn = drawn(data, on=Shown(SIZE, "what was there before\r\n" * 9))
    assert redrawn.lines == seen.lines
    assert redrawn.cursor == seen.cursor and redrawn.screen.cursor.hidden == seen.screen.cursor.hidden
    # and what comes next goes where it should, in the same style
    assert redrawn.see(b"next").lines == seen.see(b"next").lines


def test_colours_are_drawn() -> None:
    data = b"\x1b[1;31mred\x1b[m plain \x1b[44mblue  \x1b[m"
    assert drawn(data).cells == Shown(SIZE).see(data).cells


def test_a_smaller_terminal_shows_the_rows_around_the_cursor_cut_to_its_width() -> None:
    data = b"\r\n".join(b"%d " % row + b"x" * 30 for row in range(10))
    shown = drawn(data, (4, 8), of=(10, 40))
    assert shown.lines == ["6 xxxxxx", "7 xxxxxx", "8 xxxxxx", "9 xxxxxx"] and shown.cursor == (3, 7)
    assert drawn(data + b"\x1b[H", (4, 8), of=(10, 40)).lines[0] == "0 xxxxxx"
    assert drawn("日本日本日".encode() + b"\x1b[31mred", (2, 7), of=(4, 40)).lines[0] == "日本日"


def test_a_larger_terminal_shows_all_and_blanks() -> None:
    shown = drawn(b"one\r\ntwo", (6, 30), of=(3, 10), on=Shown((6, 30), "old\r\n" * 12))
    assert shown.lines == ["one", "two", "", "", "", ""] and shown.cursor == (1, 3)


def test_drawing_again_in_the_same_modes_sets_none_anew() -> None:
    modes = Modes()
    modes.see(b"\x1b[?1049h\x1b[?1000h")
    shown = picture(b"x", SIZE)
    first = scene.draw(shown, SIZE, modes, None, scroll=True)
    again = scene.draw(shown, SIZE, modes, modes, scroll=False)
    assert b"1049h" in first and b"1000h" in first and b"1049" not in again and b"1000" not in again


def test_other_modes_are_left_before_the_new_ones_are_entered() -> None:
    before, after = Modes(), Modes()
    before.see(b"\x1b[?1049h\x1b[?1000h")
    after.see(b"\x1b[?2004h")
    data = scene.draw(picture(b"x", SIZE), SIZE, after, before, scroll=True)
    assert data.index(b"\x1b[?1000l") < data.index(b"\x1b[?1049l") < data.index(b"x") < data.index(b"\x1b[?2004h")


def test_the_main_screen_is_drawn_behind_the_alternate_one() -> None:
    data = b"main\r\n\x1b[?1049h\x1b[Hfull"
    modes = Modes()
    modes.see(data)
    out = scene.draw(picture(data, SIZE), SIZE, modes, None, scroll=True)
    assert out.index(b"main") < out.index(b"\x1b[?1049h") < out.index(b"full")


def test_an_empty_main_screen_leaves_the_persons_own_there() -> None:
    data = b"\x1b[?1049h\x1b[Hfull"
    modes = Modes()
    modes.see(data)
    out = scene.draw(picture(data, SIZE), SIZE, modes, None, scroll=True)
    assert b"\n" not in out and out.index(b"\x1b[?1049h") < out.index(b"\x1b[1;1H")


def test_origin_mode_counts_rows_from_the_margin() -> None:
    data = b"\x1b[2;5r\x1b[?6h\x1b[2;3Hx"
    assert drawn(data).cursor == Shown(SIZE).see(data).cursor


def log(root: Path, *pieces: bytes) -> LogReader:
    at = 0
    for piece in pieces:
        (root / segment_name(at)).write_bytes(piece)
        at += len(piece)
    return LogReader(root)


@pytest.mark.parametrize("far", [0, 1, 3, 12])
def test_modes_set_when_a_program_began_are_found_by_where_it_took_the_screen(tmp_path: Path, far: int) -> None:
    begin = b"\x1b[?1h\x1b=" + b"x" * 1000 + b"\x1b[?1049h\x1b[?1000h"
    with log(tmp_path, begin + b"\x1b[Hxxxxxxx\r\n" * (far << 16), b"\x1b[?25l") as reader:
        modes = scene.modes_at(reader, 0, reader.end())
    assert modes.alternate and not modes.cursor_shown
    assert b"\x1b[?1000h" in modes.enter() and b"\x1b[?1h" in modes.enter() and b"\x1b=" in modes.enter()


def test_modes_of_an_earlier_generation_do_not_count(tmp_path: Path) -> None:
    old, new = b"\x1b[?1049h\x1b[?1000h", b"text"
    with log(tmp_path, old, new) as reader:
        assert scene.modes_at(reader, len(old), reader.end()) == Modes()


def test_a_notice_fits() -> None:
    shown = Shown((3, 20)).see(b"one\r\ntwo").see(scene.notice("a notice that is too long for it", (3, 20)))
    assert shown.lines[:2] == ["one", "two"] and shown.lines[2].startswith(" a notice that")
