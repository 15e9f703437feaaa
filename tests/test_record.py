"""The exit record and the holder's JSON: what is written is read back, and damage is never taken for an end."""

from __future__ import annotations

import contextlib
import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from session_magics.holder.record import EXIT_BYTES, blank_record, format_exit, parse_exit, to_json

GENERATIONS = st.integers(0, 10**9)
TIMES = st.floats(allow_nan=False)
# Text as os.fsdecode makes it: any bytes.
REASONS = st.one_of(
    st.text(max_size=40), st.binary(max_size=40).map(lambda raw: raw.decode("utf-8", "surrogateescape"))
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def test_a_blank_record_is_no_end() -> None:
    assert len(blank_record()) == EXIT_BYTES
    assert [parse_exit(data) for data in (blank_record(), b"", bytes(EXIT_BYTES), b" \n" + bytes(510))] == [None] * 4


@given(GENERATIONS, st.sampled_from(["code", "signal"]), st.integers(-255, 255), TIMES)
def test_a_number_is_read_back(generation: int, kind: str, value: int, at: float) -> None:
    data = format_exit(generation, kind, value, at)
    assert len(data) == EXIT_BYTES
    assert parse_exit(data) == (generation, kind, str(value), at)


@given(GENERATIONS, REASONS, TIMES)
def test_a_reason_is_read_back(generation: int, reason: str, at: float) -> None:
    data = format_exit(generation, "failed", reason, at)
    assert (len(data), data.count(b"\n"), data.isascii()) == (EXIT_BYTES, 2, True)
    assert parse_exit(data) == (generation, "failed", reason, at)


@given(st.text(st.characters(), min_size=150))
@example("é" * 600)
def test_a_long_reason_is_cut_between_characters(reason: str) -> None:
    data = format_exit(1, "failed", reason, 0.5)
    parsed = parse_exit(data)
    assert len(data) == EXIT_BYTES
    assert parsed is not None
    written = "".join("?" if 0xD800 <= ord(one) < 0xDC80 or 0xDCFF < ord(one) < 0xE000 else one for one in reason)
    assert written.startswith(parsed[2])
    assert len(parsed[2]) >= 30


@given(st.data(), st.integers(0, 255))
def test_a_flipped_bit_never_changes_the_end(data: st.DataObject, code: int) -> None:
    record = bytearray(format_exit(3, "code", code, 1.5))
    record[data.draw(st.integers(0, EXIT_BYTES - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with contextlib.suppress(ValueError):
        assert parse_exit(bytes(record)) in (None, (3, "code", str(code), 1.5))


@given(st.integers(1, EXIT_BYTES))
def test_a_cut_or_zeroed_record_is_damaged_or_whole(kept: int) -> None:
    record = format_exit(3, "signal", 9, 1.5)
    for data in (record[:kept], record[:kept] + bytes(EXIT_BYTES - kept)):
        if kept > record.index(b"\n"):
            assert parse_exit(data) == (3, "signal", "9", 1.5)
        else:
            with pytest.raises(ValueError):
                parse_exit(data)


@given(st.binary(max_size=600))
def test_any_bytes_raise_nothing_but_value_error(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        parse_exit(data)


@given(JSON)
def test_the_json_is_what_json_reads_back(value: object) -> None:
    line = to_json({"value": value})
    assert b"\n" not in line
    assert json.dumps(json.loads(line), sort_keys=True) == json.dumps(
        json.loads(json.dumps({"value": value})), sort_keys=True
    )


def test_the_json_keeps_bytes_that_are_no_text() -> None:
    name = b"caf\xe9".decode("utf-8", "surrogateescape")
    assert to_json(name) == b'"caf\\udce9"'
    assert json.loads(to_json(name)).encode("utf-8", "surrogateescape") == b"caf\xe9"


def test_the_json_tells_true_from_one() -> None:
    assert to_json([True, 1, 1.0, None, math.inf]) == b"[true, 1, 1.0, null, Infinity]"


def test_what_json_does_not_know_is_refused() -> None:
    with pytest.raises(TypeError, match="bytes has no JSON form"):
        to_json({"a": b""})
