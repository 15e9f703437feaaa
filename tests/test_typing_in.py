"""Long lines come whole out of a terminal in canonical mode, whatever pieces they are typed in."""

from __future__ import annotations

import os
import pty
import termios
import threading

from hypothesis import given
from hypothesis import strategies as st

from session_magics.holder.typing_in import canonical_pieces

LINES = st.lists(st.binary(max_size=30).map(lambda one: one.replace(b"\x04", b"x")), max_size=6)


@given(data=LINES.map(b"\n".join), cuts=st.lists(st.integers(0, 200), max_size=4))
def test_without_the_inserted_characters_the_data_is_what_was_given(data: bytes, cuts: list[int]) -> None:
    typed, column, before = b"", 0, 0
    for cut in [*sorted(cuts), len(data)]:
        part, column = canonical_pieces(data[before:cut], column=column, piece=7)
        typed, before = typed + part, max(before, cut)
    assert typed.replace(b"\x04", b"") == data
    for line in typed.replace(b"\r", b"\n").split(b"\n"):
        pieces = line.split(b"\x04")
        assert all(len(one) <= 7 for one in pieces)
        assert all(pieces) or pieces == [b""], "an end-of-file character at the beginning of a line"


def test_a_line_of_many_times_the_limit_arrives_whole() -> None:
    ours, theirs = pty.openpty()
    modes = termios.tcgetattr(theirs)
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, modes)
    line = b"0123456789abcdef" * 2000 + b"\n"
    typed, column = canonical_pieces(line)
    assert column == 0

    def type_in() -> None:
        rest = typed
        while rest:
            rest = rest[os.write(ours, rest) :]

    writer = threading.Thread(target=type_in)
    writer.start()
    got = b""
    while not got.endswith(b"\n"):
        got += os.read(theirs, 65536)
    writer.join()
    os.close(ours)
    os.close(theirs)
    assert got == line
