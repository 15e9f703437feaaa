"""Records out of the FIFO: whole ones only, of the command that runs, however they come."""

from __future__ import annotations

import shutil
import subprocess
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_magics.holder.records import Records, listed_trap

BODY = st.binary(max_size=20).map(lambda one: one.replace(b"\0", b"").replace(b"\001", b""))
RECORDS = st.lists(st.tuples(st.sampled_from([b"B", b"T", b"V", b"E", b"X", b"G"]), BODY), max_size=6)


def written(kind: bytes, number: int, body: bytes) -> bytes:
    return b"\001%s\t%d\t%s\0" % (kind, number, body)


@given(records=RECORDS, cuts=st.lists(st.integers(0, 200), max_size=8))
def test_any_chunking_gives_the_same_records(records: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    stream = b"".join(written(kind, 7, body) for kind, body in records)
    places = [0, *sorted(min(one, len(stream)) for one in cuts), len(stream)]
    reader, found = Records(), []
    for begin, end in pairwise(places):
        found += reader.feed(stream[begin:end], 7)
    assert found == records


def test_those_of_earlier_commands_are_dropped_and_those_without_a_number_kept() -> None:
    stream = written(b"E", 6, b"0") + written(b"V", 0, b"x") + written(b"E", 7, b"1") + written(b"E", 77, b"2")
    assert Records().feed(stream, 7) == [(b"V", b"x"), (b"E", b"1")]


def test_the_torn_piece_of_an_interrupted_shell_does_not_hide_the_next_record() -> None:
    assert Records().feed(b"\001V\t7\tdecl" + written(b"E", 7, b"A130\thB\t/tmp"), 7) == [(b"E", b"A130\thB\t/tmp")]


def test_bytes_that_are_no_record_are_passed_over() -> None:
    assert Records().feed(b"noise\0\0\001\0" + written(b"B", 7, b""), 7) == [(b"B", b"")]


@pytest.mark.parametrize("shell", ["bash", "zsh", "dash"])
@pytest.mark.parametrize("action", ["echo a", "echo 'it''s'", "echo one\necho INT\necho two INT", "", ":"])
def test_a_trap_that_a_shell_lists_can_be_set_again(shell: str, action: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")

    def listing(commands: bytes) -> bytes:
        return subprocess.run([shell], input=commands + b"\ntrap\n", capture_output=True, check=True).stdout

    quoted = action.replace("'", "'\\''")
    first = listing(f"trap 'echo other' TERM; trap '{quoted}' INT; trap 'echo usr' USR1".encode())
    again = listing(listed_trap(first, b"INT"))
    assert listed_trap(again, b"INT") == listed_trap(first, b"INT") != b""
    assert listed_trap(again, b"TERM") == b""


def test_what_a_debug_trap_prints_between_the_entries_is_no_part_of_them() -> None:
    listing = b"dbg\ntrap -- 'echo dbg' DEBUG\ndbg\ntrap -- 'echo i' SIGINT\ndbg\n"
    assert listed_trap(listing, b"INT") == b"trap -- 'echo i' SIGINT"
    assert listed_trap(listing, b"DEBUG") == b"trap -- 'echo dbg' DEBUG"
    assert listed_trap(listing, b"ERR") == b""
