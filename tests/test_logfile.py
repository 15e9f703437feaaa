"""The log that a holder writes: every byte at its offset, the newest under the cap, gaps marked to the byte."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from disks import fill, free
from rounds import sessions, until
from session_magics import Registry, run_cell
from session_magics.holder import logfile
from session_magics.holder.logfile import LogWriter
from session_magics.log import EventReader, LogReader

pytestmark = pytest.mark.usefixtures("root")


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    with sessions(root) as opened:
        yield opened


def kept(directory: Path) -> list[tuple[int, bytes]]:
    """What the log holds, as (offset, bytes), neighbours joined."""
    pieces: list[tuple[int, bytes]] = []
    with LogReader(directory) as log:
        for offset, data in log.read(0, log.end()):
            if pieces and pieces[-1][0] + len(pieces[-1][1]) == offset:
                pieces[-1] = (pieces[-1][0], pieces[-1][1] + data)
            elif data:
                pieces.append((offset, data))
    return pieces


def bytes_on_disk(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("log.0*"))


def gaps(directory: Path) -> list[tuple[int, object]]:
    """(offset behind the gap, bytes lost) of each gap that is marked."""
    return [(event.at, event.data["lost"]) for event in EventReader(directory).events()[0] if event.kind == "gap"]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 9000), max_size=30), st.sampled_from([65536, 100_000]), st.integers(0, 29))
def test_the_newest_bytes_are_kept_at_their_offsets_under_the_cap(sizes: list[int], cap: int, reopen: int) -> None:
    directory = Path(tempfile.mkdtemp(prefix="smlog"))
    try:
        writer = LogWriter(str(directory), cap=cap)
        sent = b""
        for number, size in enumerate(sizes):
            if number == reopen:  # the next generation of a session that had ended
                writer.close()
                writer = LogWriter(str(directory), cap=cap)
            data = random.Random(number).randbytes(size)
            sent += data
            writer.append(data)
            assert writer.end == len(sent)
            assert bytes_on_disk(directory) <= cap
        writer.close()
        pieces = kept(directory)
        if sent:
            [(offset, data)] = pieces
            assert data == sent[offset:]
            assert len(data) >= min(len(sent), cap - 2 * cap // logfile.SEGMENTS)
    finally:
        shutil.rmtree(directory)


def test_a_single_write_may_be_longer_than_the_cap(tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), cap=65536)
    data = random.Random(1).randbytes(1_000_000)
    writer.append(data)
    writer.close()
    [(offset, tail)] = kept(tmp_path)
    assert tail == data[offset:]
    assert 50_000 < len(tail) <= 65536


def test_what_a_full_disk_refuses_is_counted_and_marked_to_the_byte(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logfile, "DISK_RETRY", 0.0)
    writer = LogWriter(str(disk))
    writer.append(b"before")
    fill(disk)
    data = random.Random(2).randbytes(300_000)
    writer.append(data)
    writer.append(b"lost too")
    assert writer.end == 6 + 300_000 + 8
    free(disk)
    writer.append(b"after")
    writer.close()
    (start, first), (behind, last) = kept(disk)
    assert (start, behind, last) == (0, 6 + 300_000 + 8, b"after")
    assert first == (b"before" + data)[: len(first)]
    assert gaps(disk) == [(behind, behind - len(first))]


def test_a_disk_that_is_full_from_the_first_byte_on_loses_all_until_there_is_room(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logfile, "DISK_RETRY", 0.0)
    writer = LogWriter(str(disk))
    fill(disk)
    for _ in range(50):
        writer.append(b"x" * 1000)
    assert list(disk.glob("log.0*")) == []
    free(disk)
    writer.append(b"here")
    writer.close()
    assert kept(disk) == [(50_000, b"here")]
    assert gaps(disk) == [(50_000, 50_000)]


def test_what_was_lost_last_counts_for_the_next_generation(disk: Path) -> None:
    writer = LogWriter(str(disk))
    writer.append(b"first")
    fill(disk)
    writer.append(b"x" * 10_000)
    end = writer.end
    length = sum(len(data) for _, data in kept(disk))
    free(disk)
    writer.close()
    assert gaps(disk) == [(end, end - length)]
    writer = LogWriter(str(disk))
    assert writer.end == end == 10_005
    writer.append(b"second")
    writer.close()
    assert kept(disk)[1:] == [(end, b"second")]


def test_the_disk_is_tried_again_once_a_second_and_not_for_every_write(
    disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(logfile, "time", SimpleNamespace(time=time.time, monotonic=lambda: now))
    writer = LogWriter(str(disk))
    fill(disk)
    writer.append(b"x")
    free(disk)
    for _ in range(100):
        writer.append(b"y")
    now += 0.9
    writer.append(b"y")
    assert list(disk.glob("log.0*")) == []
    now += 0.2
    writer.append(b"z")
    writer.close()
    [(offset, data)] = kept(disk)
    assert set(data) == set(b"z")
    assert gaps(disk) == [(offset, offset)]


def test_an_event_that_was_cut_off_spoils_no_other(disk: Path) -> None:
    writer = LogWriter(str(disk))
    writer.event("filler", text="")
    writer.event("filler", text="x" * (4096 - 100 - 2 * writer.index_size))
    fill(disk)
    before = len(EventReader(disk).events()[0])
    for number in range(60):  # the last page of the index still has room for one and a half
        writer.event("torn", text="x" * number)
    free(disk)
    writer.event("whole", number=1)
    writer.event("whole", number=2)
    writer.close()
    events = EventReader(disk).events()[0]
    assert len(events) > before
    assert [event.data["number"] for event in events if event.kind == "whole"] == [1, 2]


# ---------------------------------------------------------------- through a holder


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_cells_run_on_a_full_disk(disk: Path, shell: str) -> None:
    with sessions(disk) as registry:
        session = registry.shell("main", shell=shell, lifetime="detached", rc=False)
        assert run_cell(session, "X=kept").returncode == 0
        fill(disk)
        assert run_cell(session, 'echo "$X"; test "$X" = kept').returncode == 0
        assert run_cell(session, "(exit 3)", check=False).returncode == 3
        free(disk)
        until(lambda: session.output(run_cell(session, "echo back").begin) == b"back\n")
        session.stop()
