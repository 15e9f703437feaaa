"""Reading the index of a log: events in order, and from where one was.

Lines that are damaged, without an end, or not yet whole cost no other.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_magics.log import INDEX_TAIL, Event, EventReader


def line(at: int, kind: str, **data: object) -> bytes:
    return json.dumps({"at": at, "t": 1.5, "kind": kind, **data}).encode() + b"\n"


def test_events_are_read_in_order_and_from_where_one_was(tmp_path: Path) -> None:
    reader = EventReader(tmp_path)
    assert reader.events() == ([], 0)
    path = tmp_path / "log.idx"
    path.write_bytes(line(0, "begin", id="c1") + line(7, "end", status=3))
    events, position = reader.events()
    assert events == [Event(0, 1.5, "begin", {"id": "c1"}), Event(7, 1.5, "end", {"status": 3})]
    assert reader.events(position) == ([], position)
    half = line(9, "resize", rows=24)
    with path.open("ab", buffering=0) as index:
        index.write(half[:10])
        assert reader.events(position) == ([], position)
        index.write(half[10:])
    assert reader.events(position)[0] == [Event(9, 1.5, "resize", {"rows": 24})]
    assert reader.damaged == 0


def test_the_newest_events_of_a_kind_are_found_however_far_back(tmp_path: Path) -> None:
    reader = EventReader(tmp_path)
    assert reader.newest(("begin", "end")) == []
    times = b"".join(line(20 + n, "time") for n in range(2 * INDEX_TAIL // len(line(20, "time"))))
    (tmp_path / "log.idx").write_bytes(line(0, "begin") + line(9, "end") + line(10, "begin") + times)
    assert [event.at for event in reader.newest(("begin", "end"), 2)] == [9, 10]
    assert [event.at for event in reader.newest(("begin", "end"), 9)] == [0, 9, 10]
    assert [event.kind for event in reader.newest(("time",))] == ["time"]


def test_damaged_lines_are_skipped_and_counted(tmp_path: Path) -> None:
    broken = [
        b"{\n",
        b"[1]\n",
        b"\xff\xfe\n",
        b'{"at": "x", "t": 1, "kind": "end"}\n',
        b'{"at": 1, "t": 1}\n',
        b"[" * 50_000 + b"\n",
    ]
    content = line(1, "begin") + b"".join(broken) + b"\0\0\0" + line(2, "end")
    (tmp_path / "log.idx").write_bytes(content)
    reader = EventReader(tmp_path)
    events, position = reader.events()
    assert [(event.at, event.kind) for event in events] == [(1, "begin"), (2, "end")]
    assert (reader.damaged, position) == (len(broken), len(content))


@given(st.binary(max_size=200))
def test_any_index_is_read_without_an_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    directory = tmp_path_factory.mktemp("log")
    (directory / "log.idx").write_bytes(data)
    assert EventReader(directory).events()[1] == data.rfind(b"\n") + 1


def test_an_endless_line_of_the_index_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "log.idx").write_bytes(b"x" * 9_000_000 + b"\n" + line(3, "end"))
    reader = EventReader(tmp_path)
    events, _ = reader.events()
    assert [event.at for event in events] == [3]
    assert reader.damaged > 0
