"""text.py: large outputs take memory and time in proportion, and leave what is seen at their end.

A sequence that has no end is given up, or all that follows would be kept for it.
"""

from __future__ import annotations

import gc
import time
import tracemalloc

import pytest

from session_magics.text import LineModel, plain
from session_magics.text.escapes import STRING_LIMIT

PARTS = 16
"""A large output in parts: so much longer it takes, or that squared."""


@pytest.mark.parametrize("start", ["\x1b]0;", "\x1bP", "\x1b_", "\x1b^", "\x1bX"])
def test_a_string_without_an_end_is_given_up(start: str) -> None:
    data = start + "x" * (STRING_LIMIT - len(start) + 2)
    assert plain(data.encode()) == ""
    assert plain((data + "seen\n").encode()) == "seen\n"
    assert plain((data + "\x1b\\seen\n").encode()) == "seen\n"


def test_a_thousand_frames_leave_the_last() -> None:
    frames = "".join(f"\r{n:4}/1000 [{'#' * (n // 100):10}]" for n in range(1, 1001))
    assert plain(frames.encode() + b"\n") == "1000/1000 [##########]\n"


def test_memory_is_that_of_the_text() -> None:
    line = b"\x1b[32m.\x1b[0m\x1b[31mF\x1b[0m \n"
    tracemalloc.start()
    try:
        model = LineModel()
        for _ in range(600):
            model.feed(line * 50)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * model.size


@pytest.mark.parametrize(
    ("begin", "pieces", "count"),
    [
        (b"", [b"2024-01-01 INFO module: the quick brown fox jumps over the lazy dog\n"], 150_000),
        (b"", [b"\x1b[32m12:00:00\x1b[0m \x1b[1mINFO\x1b[0m the quick brown fox jumps over the lazy dog\r\n"], 40_000),
        (b"", [b"\r 50%|##########          | 50000/100000 [00:10<00:10]"], 100_000),
        (b"\r\x1b[K", [b"the quick brown fox jumps over the lazy dog\n"], 300_000),
        (b"", [b"\0", b"\r", b"\b"], 3_000_000),
        (b"", [b"\x1b]"], 500_000),
    ],
    ids=["plain", "coloured", "frames", "plain-after-an-edit", "controls", "openings"],
)
def test_large_outputs_take_time_in_proportion(begin: bytes, pieces: list[bytes], count: int) -> None:
    """Compared with a part of the same: only another order of growth fails, and no machine that is slow."""
    part, whole = (
        min(took(data) for _ in range(3))
        for share in (PARTS, 1)
        for data in [begin + b"".join(piece * (count // share) for piece in pieces)]
    )
    assert whole < 5 * PARTS * part


def took(data: bytes) -> float:
    """Seconds of the processor for an output."""
    gc.disable()  # it looks through all that other tests have left
    try:
        began = time.thread_time()
        model = LineModel()
        for start in range(0, len(data), 1 << 16):
            model.feed(data[start : start + (1 << 16)])
            model.take()
        return time.thread_time() - began
    finally:
        gc.enable()
