"""Following a log as it grows, wherever a reader and the writer meet."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_magics.holder.agentfiles import LogFollower, Records, run_fields
from session_magics.holder.logfile import LogWriter
from session_magics.holder.record import blank_record, format_exit


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@given(steps=st.lists(st.one_of(st.integers(1, 9000), st.none()), max_size=40), start=st.integers(0, 5000))
@settings(max_examples=60, deadline=None)
def test_a_follower_has_every_byte_that_is_kept_at_its_offset(
    steps: list[int | None], start: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Written in pieces, None standing for a look; what was dropped before the look is a gap, and nothing else is."""
    place = tmp_path_factory.mktemp("log")
    before = Path.cwd()
    os.chdir(place)
    try:
        writer = LogWriter(".", cap=1 << 16)
        written = bytearray(start)
        writer.append(bytes(start))
        follower, unseen = LogFollower(start), 0
        for size in [*steps, None]:
            if size is not None:
                data = bytes((len(written) + n) * 7 % 251 for n in range(size))
                writer.append(data)
                written += data
                unseen += size
                continue
            assert follower.end() == writer.end or not written
            while data := follower.read(writer.end):
                assert data == written[follower.at - len(data) : follower.at]
                unseen -= len(data)
            assert follower.at == writer.end
            assert unseen == 0 or len(written) > 1 << 15
            unseen = 0
        writer.close()
    finally:
        os.chdir(before)


def test_a_follower_reads_no_further_than_it_may(folder: Path) -> None:
    writer = LogWriter(".")
    writer.append(b"0123456789")
    follower = LogFollower(2)
    assert (follower.read(5), follower.read(5), follower.read(99)) == (b"234", b"", b"56789")
    writer.close()


def test_a_follower_of_nothing_is_at_its_end(folder: Path) -> None:
    assert (LogFollower(7).end(), LogFollower(7).read(99)) == (7, b"")


def test_records_are_told_once_for_each_time_they_are_written(folder: Path) -> None:
    records = Records()
    (folder / "exit").write_bytes(blank_record())
    assert (records.exit(), records.run()) == (b"", [])
    ended = format_exit(1, "code", 3, 0.0)
    (folder / "exit").write_bytes(ended)
    assert (records.exit(), records.exit()) == (ended, b"")


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"{}", b'{"size": 3}', b'{"size": [1, 2]}'])
def test_a_run_record_that_is_none_tells_nothing(text: bytes) -> None:
    assert run_fields(text) == []
