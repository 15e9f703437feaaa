"""Frames come out as they went in, however the stream is cut; what is no frame is refused and nothing else."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_magics.holder import wire

fields = st.lists(st.binary(max_size=300), max_size=6)
kinds = st.binary(min_size=1, max_size=1)


@given(fields)
def test_fields_come_out_as_they_went_in(row: list[bytes]) -> None:
    assert wire.unpack(wire.pack(*row)) == row


@given(st.lists(st.tuples(kinds, fields), max_size=5), st.data())
def test_frames_come_out_whole_and_in_order_however_the_stream_is_cut(
    frames: list[tuple[bytes, list[bytes]]], data: st.DataObject
) -> None:
    stream = b"".join(wire.frame(kind, *row) for kind, row in frames)
    decoder, found = wire.Decoder(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += list(decoder.feed(stream[:size]))
        stream = stream[size:]
    assert found == frames


@given(st.binary(max_size=2000))
def test_any_bytes_are_frames_or_are_refused(noise: bytes) -> None:
    try:
        for kind, row in wire.Decoder().feed(noise):
            assert wire.frame(kind, *row) in noise
    except wire.BadFrame:
        pass


def test_a_frame_that_is_too_long_is_refused_at_its_first_bytes() -> None:
    assert list(wire.Decoder().feed(b"R" + struct.pack(">I", wire.MAX_FRAME))) == []
    with pytest.raises(wire.BadFrame):
        list(wire.Decoder().feed(b"R" + struct.pack(">I", wire.MAX_FRAME + 1)))


@pytest.mark.parametrize("payload", [b"\0", b"\0\0\0", b"\0\0\0\1", b"\0\0\0\2x", b"\xff\xff\xff\xffxxxx"])
def test_a_field_that_is_cut_short_is_refused(payload: bytes) -> None:
    with pytest.raises(wire.BadFrame):
        wire.unpack(payload)


@given(st.integers(0, 1 << 63))
def test_whole_numbers_are_read(value: int) -> None:
    assert wire.number(b"%d" % value) == value


@pytest.mark.parametrize(
    "field", [b"", b"x", b"-1", b"1.5", b" 1", b"1_0", b"9" * 5000, b"%d" % ((1 << 63) + 1), b"\xb2"]
)
def test_what_is_no_whole_number_is_refused(field: bytes) -> None:
    with pytest.raises(wire.BadFrame):
        wire.number(field)


@pytest.mark.parametrize("field", [b"", b"x", b"-1", b"nan", b"inf", b"1e400"])
def test_what_is_no_duration_is_refused(field: bytes) -> None:
    with pytest.raises(wire.BadFrame):
        wire.seconds(field)


@given(st.floats(0, 1e8))
def test_durations_are_read(value: float) -> None:
    assert wire.seconds(repr(value).encode()) == value
