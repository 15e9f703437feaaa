"""What comes over a program's connection is put together whatever the pieces are."""

from __future__ import annotations

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_magics.sandbox.dockerwire import STDERR, STDOUT, EngineFailure, Line, Marked, Streams, call, connect

MARK = "0123abcd" + "e" * 24
# Texts with beginnings of the mark in them, which must not be held back for good.
TEXTS = st.lists(st.sampled_from([b"0", b"0123", b"0123abcd", b"x", b"\n", b"\0\xff", b"0123abcdee"]), max_size=8).map(
    b"".join
)
SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=20)


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    """Pieces of these sizes, in turn."""
    pieces, at, turn = [], 0, 0
    while at < len(data):
        pieces.append(data[at : at + sizes[turn % len(sizes)]])
        at, turn = at + sizes[turn % len(sizes)], turn + 1
    return pieces


@given(TEXTS, TEXTS, SIZES)
def test_a_mark_is_found_in_any_pieces(before: bytes, after: bytes, sizes: list[int]) -> None:
    stream = Marked(MARK.encode())
    found = b"".join(stream.feed(piece) for piece in cut(before + MARK.encode() + after, sizes))
    assert (found, stream.word) == (before, after)


@given(TEXTS)
def test_only_what_may_be_a_mark_is_held_back(text: bytes) -> None:
    """So what a program asks is seen before it goes on."""
    stream = Marked(MARK.encode())
    found = stream.feed(text)
    assert MARK.encode().startswith(text[len(found) :])
    assert text.startswith(found)


@given(TEXTS, TEXTS, st.integers(-31, 255), SIZES, st.booleans())
def test_streams_are_the_programs_own(out: bytes, err: bytes, code: int, sizes: list[int], late: bool) -> None:
    """Whichever of the two comes first."""
    outs = [(STDOUT, piece) for piece in cut(out + MARK.encode(), sizes)]
    errs = [(STDERR, piece) for piece in cut(f"{MARK} 17\n".encode() + err + f"{MARK}{code}\n".encode(), sizes)]
    streams = Streams(MARK)
    found = {STDOUT: b"", STDERR: b""}
    for stream, data in outs + errs if late else errs + outs:
        assert not streams.over
        found[stream] += streams.feed(stream, data)
    assert streams.over
    assert (streams.pid, streams.refusal, streams.code) == ("17", "", code)
    assert found == {STDOUT: out, STDERR: err}


def test_a_refused_directory_is_told() -> None:
    streams = Streams(MARK)
    streams.feed(STDERR, f"{MARK} ! /x leads out of / here\n".encode())
    assert (streams.over, streams.refusal) == (True, "/x leads out of / here")


@given(st.lists(st.tuples(st.sampled_from([STDOUT, STDERR]), st.binary(max_size=50)), max_size=6), SIZES)
def test_frames_are_read_in_any_pieces(frames: list[tuple[int, bytes]], sizes: list[int]) -> None:
    data = b"".join(struct.pack(">BxxxL", stream, len(text)) + text for stream, text in frames)
    near, far = socket.socketpair()
    with far:
        line, found = Line(near, data[: sizes[0]], terminal=False), []
        for piece in cut(data[sizes[0] :], sizes):
            far.sendall(piece)
            found += line.step(0)[0] or []
        far.shutdown(socket.SHUT_WR)
        while (pieces := line.step(1)[0]) is not None:
            found += pieces
        line.close()
    assert found == frames


def test_who_hangs_up_is_an_engine_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        host = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with connect(host) as line, server.accept()[0]:
            assert line.fileno() >= 0
    with pytest.raises(EngineFailure, match="no docker engine at tcp://127"):
        call(host, "GET", "/_ping")
