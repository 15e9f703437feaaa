"""Rows of the list of sessions, and the same as text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rounds import DEADLINE, until
from session_magics import Command, Registry
from session_magics.listing import WIDEST, Observer, last_line, table
from session_magics.text.amounts import short_bytes, short_time


def test_a_row_says_what_a_session_is_doing(real: Registry, tmp_path: Path) -> None:
    session = real.start(
        "web", Command(("sh", "-c", f"echo first; cd {tmp_path}; printf 'last \\033[1mline\\n\\n'; read x"))
    )
    until(lambda: "line" in session.tail(5))
    [row] = Observer().rows(real.infos())
    assert (row.info.name, row.last_line, row.directory) == ("web", "last line", str(tmp_path))
    assert row.usage is not None and row.usage.memory > 0 and row.until is None
    assert 0 <= row.age(row.info.since + 5) <= 5


def test_an_ended_session_keeps_how_long_it_ran(real: Registry) -> None:
    session = real.start("one", Command(("sh", "-c", "echo well; exit 3")))
    session.wait(DEADLINE)
    session.settled(DEADLINE)  # its holder goes a moment after it has told the end
    [row] = Observer().rows(real.infos())
    assert row.until is not None and row.usage is None
    assert row.age(row.info.since + 1e6) == row.until - row.info.since
    header, line = table([row]).splitlines()
    assert header.split() == ["NAME", "STATE", "AGE", "PROGRAM", "DIRECTORY", "LAST", "LINE"]
    assert line.startswith("one   exited 3") and line.endswith("well")


def test_a_failed_start_has_a_row(real: Registry) -> None:
    with pytest.raises(Exception, match="no-such"):
        real.start("one", Command(("no-such-program",)))
    assert [row.info.since for row in Observer().rows(real.infos())] in ([], [0.0])


def test_a_line_is_read_again_only_when_there_is_more(real: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    session = real.start("cat", Command(("cat",)))
    observer = Observer()
    session.send("one\n")
    until(lambda: session.output().count(b"one") == 2)  # its echo, and cat's own
    until(lambda: observer.rows(real.infos())[0].last_line == "one")
    monkeypatch.setattr("session_magics.listing.last_line", lambda info: "read again")
    assert observer.rows(real.infos())[0].last_line == "one"
    session.send("two\n")
    until(lambda: observer.rows(real.infos())[0].last_line == "read again")


def test_a_long_table_stays_on_the_line(real: Registry) -> None:
    session = real.start("wide", Command(("sh", "-c", f"echo '{'x' * 5000}'; read y")))
    until(lambda: session.info().log_bytes > 5000)
    [row] = Observer().rows(real.infos())
    assert len(row.last_line) <= 5000
    assert all(len(line) < 120 + sum(WIDEST.values()) for line in table([row]).splitlines())
    assert "…" in table([row])


def test_a_session_without_a_log_has_no_last_line(real: Registry) -> None:
    session = real.start("one", Command(("true",)))
    session.wait(DEADLINE)
    info = session.info()
    real.remove("one")
    assert last_line(info) == ""


def test_no_sessions(root: Path) -> None:
    assert table(Observer().rows(Registry(root).infos())) == "no sessions"


@given(st.floats(0, 1e8))
def test_times_are_short(seconds: float) -> None:
    shown = short_time(seconds)
    assert len(shown) <= 5
    assert int(shown[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[shown[-1]] <= seconds


@given(st.integers(0, 1 << 44))
def test_amounts_are_short(count: int) -> None:
    shown = short_bytes(count)
    assert len(shown) <= 7
    size = {"B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[shown[-1]]
    assert abs(float(shown[:-1]) * size - count) <= size
