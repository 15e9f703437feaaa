"""When what was printed: the times in a log's index, and what is made of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_magics.holder import logfile
from session_magics.holder.logfile import LogWriter
from session_magics.log import Event, EventReader
from session_magics.recording.formats import CastEvent
from session_magics.recording.timing import FRAME, Shortener, Timeline

HOUR = 3600
BEGIN = 1_700_000_000.0
MOST_INDEX = 40 * 1024


class Clock:
    """What the writer takes for the time."""

    def __init__(self) -> None:
        self.now = BEGIN

    def time(self) -> float:
        return self.now

    monotonic = time


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(logfile, "time", made)
    return made


def steady(step: float) -> Callable[[], Iterator[float]]:
    def pauses() -> Iterator[float]:
        while True:
            yield step

    return pauses


def typed() -> Iterator[float]:
    """Somebody who types, and thinks."""
    chance = random.Random(7)
    while True:
        yield chance.choice([0.1, 0.15, 0.2, 0.3, 0.7, 4.0])


def printed(
    directory: Path, clock: Clock, pauses: Callable[[], Iterator[float]], seconds: float
) -> tuple[dict[int, float], Timeline, int]:
    """Print a line after each pause, for so long: when which offset came, what is known of it, the index's size."""
    writer = LogWriter(str(directory), timed=True)
    told = {}
    for pause in pauses():
        clock.now += pause
        if clock.now > BEGIN + seconds:
            break
        told[writer.end] = clock.now
        writer.append(b"line of some length\n")
    events, size = EventReader(directory).events()
    timeline = Timeline(events, BEGIN, (writer.end, clock.now))
    writer.close()
    return told, timeline, size


@pytest.mark.parametrize(
    "pauses",
    [steady(0.05), steady(0.49), steady(1.0), steady(3.0), typed],
    ids=["fast", "slow", "second", "slower", "typed"],
)
def test_an_hour_of_output_costs_little_and_its_times_are_near(
    pauses: Callable[[], Iterator[float]], clock: Clock, tmp_path: Path
) -> None:
    told, timeline, size = printed(tmp_path, clock, pauses, HOUR)
    wrong = [abs(timeline.at(offset) - moment) for offset, moment in told.items()]
    assert size <= MOST_INDEX
    assert max(wrong) <= logfile.STEADY
    assert sum(wrong) / len(wrong) <= logfile.STEADY / 4


def test_pauses_and_bursts_of_a_shorter_time_are_exact(clock: Clock, tmp_path: Path) -> None:
    pauses = [5.0, *[0.001] * 50, 3.0, *[0.002] * 9, 0.7, 20.0]
    told, timeline, _ = printed(tmp_path, clock, lambda: iter(pauses), HOUR)
    assert max(abs(timeline.at(offset) - moment) for offset, moment in told.items()) < 0.01
    assert timeline.offset(BEGIN + 6) == 51 * 20


def test_events_tell_for_how_long_nothing_came(clock: Clock, tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path), timed=True)
    writer.append(b"abc")
    clock.now += 100
    writer.event("resize", rows=1, columns=2)
    clock.now += 100
    writer.event("exit", code=0, signal=None)
    writer.close()
    events, _ = EventReader(tmp_path).events()
    assert [(event.kind, event.data.get("idle")) for event in events[1:]] == [("resize", 100.0), ("exit", None)]
    timeline = Timeline(events, BEGIN, (3, 0))
    assert [timeline.at(at) - BEGIN for at in (0, 1, 2, 3)] == [0, 0, 0, 200]


def test_a_clock_that_is_set_back_is_no_trouble(clock: Clock, tmp_path: Path) -> None:
    pauses = [1.0, 1.0, -HOUR, 1.0, 2 * HOUR, 1.0]
    told, timeline, _ = printed(tmp_path, clock, lambda: iter(pauses), 3 * HOUR)
    times = [timeline.at(offset) for offset in told]
    assert times == sorted(times)


def test_what_is_not_timed_has_no_times(clock: Clock, tmp_path: Path) -> None:
    writer = LogWriter(str(tmp_path))
    writer.append(b"abc")
    clock.now += 100
    writer.event("exit", code=0, signal=None)
    writer.close()
    events, _ = EventReader(tmp_path).events()
    assert [(event.kind, event.data) for event in events] == [("exit", {"code": 0, "signal": None})]


POINTS = st.lists(st.tuples(st.integers(0, 300), st.floats(0, 50)), max_size=8)


@settings(max_examples=60, deadline=None)
@given(POINTS, st.binary(min_size=1, max_size=300), st.integers(0, 50))
def test_output_is_cut_into_pieces_in_order_and_whole(points: list[tuple[int, float]], data: bytes, at: int) -> None:
    events = [Event(offset, moment, "time", {}) for offset, moment in points]
    timeline = Timeline(events, 0.0, (at + len(data), 60.0))
    pieces = list(timeline.pieces(at, data))
    assert b"".join(piece for _, piece in pieces) == data
    times = [moment for moment, _ in pieces]
    assert times == sorted(times)
    for offset in range(0, 300, 7):
        moment = timeline.at(offset)
        assert timeline.at(timeline.offset(moment)) >= moment - 1e-6


def test_lines_come_as_lines() -> None:
    timeline = Timeline([], 0.0, (40, 4.0))
    assert list(timeline.pieces(0, b"0123456789abcdef\r\n0123456789\n01234567890")) == [
        (0.0, b"0123456789abcdef\r\n"),
        (pytest.approx(1.8), b"0123456789\n"),
        *[(pytest.approx(2.9 + at / 10), b"%d" % (at % 10)) for at in range(11)],
    ]
    fast = Timeline([], 0.0, (1000, FRAME / 2))
    assert [len(piece) for _, piece in fast.pieces(0, b"x\n" * 500)] == [1000]


def test_long_pauses_are_made_shorter() -> None:
    events = [CastEvent(time, "o", "") for time in (5, 6, 20, 21, 100)]
    shortened = Shortener(2.0)
    assert [shortened.shorten(event).time for event in events] == [2, 3, 5, 6, 8]
    whole = Shortener(None)
    assert [whole.shorten(event) for event in events] == events
