"""Reading a log by offset while it is written, cut and dropped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rounds import rounds
from session_magics.errors import StoreError
from session_magics.log import BLOCK_BYTES, CHUNK_BYTES, TAIL_LIMIT, LogReader, log_end, segment_name

# Segments as (bytes of a gap before it, its content).
LOGS = st.lists(st.tuples(st.integers(0, 5), st.binary(max_size=12)), max_size=6)


def write(directory: Path, offset: int, data: bytes) -> Path:
    path = directory / segment_name(offset)
    path.write_bytes(data)
    return path


def number(position: int) -> bytes:
    """The bytes of a test log from ``position`` on are those of its own offsets: any slice can be checked."""
    return b"%015d\n" % (position // 16)


def pattern(begin: int, end: int) -> bytes:
    return b"".join(map(number, range(begin - begin % 16, end, 16)))[begin % 16 :][: end - begin]


def test_an_empty_log_has_nothing_to_read(tmp_path: Path) -> None:
    with LogReader(tmp_path) as log:
        assert (log.start(), log.end(), log.bytes(0, 100), log.missing(0, 100), log.tail_bytes(5)) == (
            0,
            0,
            b"",
            100,
            b"",
        )
    assert log_end(str(tmp_path)) == 0


def test_a_slice_is_read_across_segments_and_a_gap_is_a_jump(tmp_path: Path) -> None:
    write(tmp_path, 100, b"abc")
    write(tmp_path, 103, b"def")
    write(tmp_path, 110, b"xyz")
    with LogReader(tmp_path) as log:
        assert (log.start(), log.end(), log_end(str(tmp_path))) == (100, 113, 113)
        assert list(log.read(0, 1000)) == [(100, b"abc"), (103, b"def"), (110, b"xyz")]
        assert list(log.read(101, 104)) == [(101, b"bc"), (103, b"d")]
        assert log.bytes(104, 112) == b"efxy"
        assert log.missing(104, 112) == 4
        assert log.missing(0, 113) == 104
        assert list(log.read(106, 110)) == []
        assert list(log.read(50, 40)) == []


@given(LOGS, st.integers(0, 80), st.integers(0, 80))
def test_any_slice_of_any_log_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, segments: list[tuple[int, bytes]], a: int, b: int
) -> None:
    directory = tmp_path_factory.mktemp("log")
    kept: dict[int, int] = {}
    position = 0
    for gap, data in segments:
        position += gap
        if not data and position in kept:
            continue
        write(directory, position, data)
        kept.update(zip(range(position, position + len(data)), data, strict=True))
        position += len(data)
    wanted = [kept[place] for place in range(a, b) if place in kept]
    with LogReader(directory) as log:
        assert list(log.bytes(a, b)) == wanted
        assert log.missing(a, b) == max(0, b - a) - len(wanted)
        assert log.end() == position or not any(data for _, data in segments)
        seen = {offset + index: byte for offset, data in log.read(a, b) for index, byte in enumerate(data)}
        assert seen == {place: kept[place] for place in range(a, b) if place in kept}


def test_chunks_are_bounded(tmp_path: Path) -> None:
    data = pattern(0, 3 * CHUNK_BYTES + 7)
    write(tmp_path, 0, data)
    with LogReader(tmp_path) as log:
        chunks = list(log.read(0, log.end()))
    assert [len(chunk) for _, chunk in chunks] == [CHUNK_BYTES] * 3 + [7]
    assert b"".join(chunk for _, chunk in chunks) == data


def test_what_is_appended_and_what_is_begun_is_seen_at_once(tmp_path: Path) -> None:
    with LogReader(tmp_path) as log:
        assert log.end() == 0
        position = 0
        for _ in range(50):
            path = write(tmp_path, position, b"12")
            assert log.end() == position + 2
            with path.open("ab") as segment:
                segment.write(b"3")
            assert log.end() == position + 3
            assert log.bytes(position, position + 3) == b"123"
            position += 5


def test_dropped_segments_become_a_gap(tmp_path: Path) -> None:
    paths = [write(tmp_path, offset, pattern(offset, offset + 16)) for offset in range(0, 160, 16)]
    with LogReader(tmp_path) as log:
        reading = log.read(0, 160)
        assert next(reading)[0] == 0
        for path in paths[:5]:
            path.unlink()
        assert next(reading) == (80, pattern(80, 96))
        assert (log.start(), log.end()) == (80, 160)
        assert log.missing(0, 160) == 80
        for path in paths[5:]:
            path.unlink()
        assert log.end() == 160


def test_the_end_never_goes_back(tmp_path: Path) -> None:
    write(tmp_path, 0, b"abc")
    newest = write(tmp_path, 3, b"de")
    with LogReader(tmp_path) as log:
        assert log.end() == 5
        newest.unlink()
        assert log.end() == 5
        assert log.bytes(0, 5) == b"abc"


def test_segments_that_overlap_count_once(tmp_path: Path) -> None:
    write(tmp_path, 0, b"abcdef")
    write(tmp_path, 3, b"XYZ\n")
    with LogReader(tmp_path) as log:
        assert (log.bytes(0, 7), log.tail_bytes(1), log.missing(0, 9)) == (b"abcXYZ\n", b"abcXYZ\n", 2)


def test_a_reader_of_a_removed_session_ends_quietly(tmp_path: Path) -> None:
    directory = tmp_path / "session"
    directory.mkdir()
    path = write(directory, 0, b"abc")
    with LogReader(directory) as log:
        assert log.end() == 3
        path.unlink()
        directory.rmdir()
        assert log.end() == 3
        assert log.bytes(0, 10) == b"abc"
    with LogReader(directory) as log:
        assert (log.end(), log.bytes(0, 10)) == (0, b"")


def test_a_reader_holds_one_descriptor_and_gives_it_back(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    for offset in range(0, 160, 16):
        write(tmp_path, offset, pattern(offset, offset + 16))
    log = LogReader(tmp_path)
    assert log.bytes(0, log.end()) == pattern(0, 160)
    write(tmp_path, 160, b"x")
    assert log.end() == 161
    assert len(set(os.listdir("/proc/self/fd")) - before) == 1
    log.close()
    log.close()
    assert set(os.listdir("/proc/self/fd")) == before
    assert log.bytes(0, 16) == pattern(0, 16)
    log.close()


WRITER = f"""
import os, sys; sys.path.insert(0, {str(Path(__file__).parent.parent)!r})
from session_magics.log import segment_name
directory, total = sys.argv[1], int(sys.argv[2])
position, segments, step = 0, [], 0
print("go", flush=True)
while position < total:
    step += 1
    path = os.path.join(directory, segment_name(position))
    segments.append(path)
    with open(path, "ab", buffering=0) as segment:
        for _ in range(1 + step % 7):
            places = range(position, position + 16 * (1 + step % 900), 16)
            data = b"".join(b"%015d\\n" % (place // 16) for place in places)
            position += segment.write(data)
    if step % 5 == 0:
        position += 16 * step  # what a full disk refused
    if len(segments) > 6:
        os.unlink(segments.pop(0))
print(position, flush=True)
"""


def test_a_follower_reads_true_bytes_while_segments_come_and_go(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path), str(rounds(10_000_000, 40_000_000))],
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        position = got = 0
        with LogReader(tmp_path) as log:
            while True:
                ended = writer.poll() is not None
                end = log.end()
                for offset, data in log.read(position, end):
                    assert offset >= position
                    assert data == pattern(offset, offset + len(data))
                    position = offset + len(data)
                    got += len(data)
                if ended and end == log.end() and position >= log_end(str(tmp_path)):
                    break
                position = max(position, end)
            assert got > 0
            assert log.end() == log_end(str(tmp_path))


def test_nothing_is_lost_where_nothing_is_dropped(tmp_path: Path) -> None:
    code = WRITER.replace("if step % 5 == 0:", "if False:").replace("if len(segments) > 6:", "if False:")
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path), str(rounds(5_000_000, 20_000_000))],
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        position = 0
        with LogReader(tmp_path) as log:
            while True:
                ended = writer.poll() is not None
                end = log.end()
                for offset, data in log.read(position, end):
                    assert offset == position
                    position += len(data)
                if ended and position == log_end(str(tmp_path)):
                    break


def test_a_tail_is_the_last_whole_lines_and_what_follows(tmp_path: Path) -> None:
    write(tmp_path, 0, b"one\ntw")
    write(tmp_path, 6, b"o\nthree\n")
    write(tmp_path, 50, b"four\nfi")
    with LogReader(tmp_path) as log:
        assert [log.tail_bytes(count) for count in (0, 1, 2, 3)] == [
            b"fi",
            b"four\nfi",
            b"three\nfour\nfi",
            b"two\nthree\nfour\nfi",
        ]
        assert log.tail_bytes(99) == b"one\ntwo\nthree\nfour\nfi"
        assert log.tail_bytes(99, limit=9) == b"e\nfour\nfi"
        assert [log.tail_bytes(1, end=end) for end in (0, 2, 4, 6)] == [b"", b"on", b"one\n", b"one\ntw"]


@given(
    st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")), max_size=12),
    st.integers(0, 14),
    st.integers(1, 40),
)
def test_a_tail_is_what_split_gives(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], count: int, cut: int
) -> None:
    directory = tmp_path_factory.mktemp("log")
    data = b"".join(line + b"\n" for line in lines)
    for offset in range(0, len(data), cut):
        write(directory, offset, data[offset : offset + cut])
    with LogReader(directory) as log:
        assert log.tail_bytes(count) == b"".join(line + b"\n" for line in lines[-count:] if count)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes were asked for in each read of a log."""
    sizes: list[int] = []
    plain = os.pread

    def pread(fd: int, size: int, offset: int) -> bytes:
        sizes.append(size)
        return plain(fd, size, offset)

    monkeypatch.setattr(os, "pread", pread)
    return sizes


def test_the_tail_of_one_giant_line_is_bounded_and_fast(tmp_path: Path, read: list[int]) -> None:
    with write(tmp_path, 0, b"first\n").open("ab") as segment:
        segment.truncate(50_000_000)
    with LogReader(tmp_path) as log:
        assert log.tail_bytes(10) == bytes(TAIL_LIMIT)
        assert sum(read) == TAIL_LIMIT
        assert log.tail_bytes(10, limit=10) == bytes(10)
        assert sum(read) == TAIL_LIMIT + 10


def test_a_tail_does_not_read_the_whole_log(tmp_path: Path, read: list[int]) -> None:
    write(tmp_path, 0, b"line\n" * 1_000_000)
    with LogReader(tmp_path) as log:
        assert log.tail_bytes(1000) == b"line\n" * 1000
        assert 5000 < sum(read) <= 2 * BLOCK_BYTES


def test_a_segment_that_cannot_be_read_is_one_error(tmp_path: Path) -> None:
    (tmp_path / segment_name(0)).symlink_to("/etc/passwd")
    write(tmp_path, 10, b"x")
    with LogReader(tmp_path) as log, pytest.raises(StoreError):
        log.bytes(0, 5)
