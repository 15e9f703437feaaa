"""Lines 17 to 20: a flood of output is in the log up to its cap, whoever reads it, or does not."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from floods import expected, flood
from holders import MB, descriptors, faults, holder, memory
from others import PROJECT
from rounds import rounds, until
from session_magics import Command, Exited, Registry
from session_magics.holder import logfile
from session_magics.log import LogReader
from terminals import DETACH, attached

BACKENDS = ("native", "tmux")

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc"),
    pytest.mark.timeout(120),
]


class Flood:
    """A session that prints what is asked of it, of bytes that tell where they belong."""

    def __init__(self, registry: Registry, backend: str = "native") -> None:
        self.count = registry.store.root / "count"
        self.session = registry.start("flood", Command(flood(str(self.count))), backend=backend)
        self.printed = 1
        self.arrived()

    def arrived(self, limit: float = 120.0) -> None:
        """Wait until all that was asked for is in the log."""
        until(lambda: self.session.info().log_bytes >= self.printed, limit, what=self.session.info)

    def ask(self, count: int) -> None:
        self.session.send(f"{count}\r")
        self.printed += count

    def on(self) -> None:
        """Print until ``over``."""
        self.session.send("on\r")

    def over(self) -> int:
        """End it; the bytes that it has printed in all."""
        state = self.session.stop()
        assert isinstance(state, Exited) and state.code == 0, state
        self.printed = int(self.count.read_bytes())
        return self.printed

    def check(self) -> int:
        """Check all that is kept; the offset at which it begins, behind which nothing is missing."""
        with LogReader(self.session.directory) as log:
            assert log.end() == self.printed
            start, at = log.start(), log.start()
            for offset, data in log.read(0, log.end()):
                assert offset == at, f"a hole from {at} to {offset}"
                assert data == expected(offset, len(data)), f"other bytes at {offset}"
                at += len(data)
            assert at == self.printed
            assert log.missing(0, log.end()) == start
        assert faults(self.session) == []
        return start


def bytes_on_disk(directory: Path) -> int:
    total = 0
    for path in directory.glob("log.0*"):
        with contextlib.suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


@contextlib.contextmanager
def watched(directory: Path) -> Iterator[list[int]]:
    """The most that the log has had on disk at any look, and the number of looks."""
    seen, over = [0, 0], threading.Event()

    def look() -> None:
        while not over.is_set():
            seen[:] = max(seen[0], bytes_on_disk(directory)), seen[1] + 1

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("backend", BACKENDS)
def test_line_17_the_newest_is_kept_under_the_cap(
    registry: Registry, capped: Callable[[int], None], backend: str
) -> None:
    volume, cap = rounds(24 * MB, 1024 * MB), rounds(2 * MB, logfile.LOG_CAP)
    segment = cap // logfile.SEGMENTS
    capped(cap)
    flooded = Flood(registry, backend)
    with watched(flooded.session.directory) as seen:
        flooded.ask(volume)
        flooded.arrived(600)
    assert seen[1] > 10 and seen[0] <= cap + segment, seen
    start = flooded.check()
    assert bytes_on_disk(flooded.session.directory) == flooded.printed - start >= cap - 2 * segment
    flooded.over()


def test_line_18_a_viewer_that_reads_on_gets_every_byte(registry: Registry) -> None:
    volume = rounds(16 * MB, 48 * MB)  # under the cap: nothing may be dropped
    flooded = Flood(registry)
    flooded.ask(volume)
    seen = 0
    for data in flooded.session.follow(0):
        assert data == expected(seen, len(data))
        seen += len(data)
        if seen == flooded.printed:
            break
    assert flooded.check() == 0


@pytest.mark.parametrize("count", [1, 10, 50])
def test_line_19_a_viewer_that_stalls_costs_nothing(
    registry: Registry, capped: Callable[[int], None], count: int
) -> None:
    """Of the viewers one is an attached terminal that is not read; the others have read once, and then no more."""
    volume = rounds(5 * MB, 100 * MB)
    capped(4 * volume)
    flooded = Flood(registry)
    flooded.ask(volume)  # what any flood takes is taken before
    flooded.arrived()
    pid = holder(flooded.session)
    before, begin = memory(pid, "VmHWM"), flooded.printed
    open_before = descriptors(pid)
    with contextlib.ExitStack() as stack:
        terminal = stack.enter_context(attached("flood"))
        terminal.told("detaches")
        terminal.type("1\r")  # the first key takes the line away: from then on output passes as it comes
        flooded.printed += 1
        flooded.arrived()
        terminal.until(gone="detaches")
        terminal.stall(True)
        viewers = [stack.enter_context(contextlib.closing(flooded.session.follow(begin))) for _ in range(count - 1)]
        flooded.ask(1)
        firsts = [next(viewer) for viewer in viewers]
        flooded.ask(volume)
        flooded.arrived()  # while all are stalled
        assert memory(pid, "VmHWM") - before <= MB, "memory of the holder"
        terminal.stall(False)
        terminal.type(DETACH)
        assert terminal.wait() == 0
        for viewer, first in zip(viewers, firsts, strict=True):
            at = begin + len(first)
            assert first == expected(begin, len(first))
            while at < flooded.printed:
                data = next(viewer)
                assert data == expected(at, len(data))
                at += len(data)
    assert flooded.check() == 0
    until(lambda: descriptors(pid) == open_before, what=lambda: descriptors(pid))
    flooded.over()


# Follows from where the log begins and checks each byte; says so once it has read anything, and each jump that it saw.
VIEWER = f"""
import sys; sys.path[:0] = [{PROJECT!r}, {PROJECT + "/tests"!r}]
from floods import expected
from session_magics import Registry
from session_magics.log import LogReader
session = Registry(sys.argv[1]).get("flood")
with LogReader(session.directory) as log, session.news() as news:
    position, said = log.start(), False
    while True:
        for offset, data in log.read(position, log.end()):
            assert data == expected(offset, len(data)), f"other bytes at {{offset}}"
            assert offset == position or log.start() > position, f"a hole from {{position}} to {{offset}}"
            position = offset + len(data)
            if not said:
                said = print("reads", flush=True) is None
        news.wait(position, None)
"""


def test_line_20_viewers_come_and_are_killed_during_a_flood(registry: Registry) -> None:
    draw, left = random.Random(20), rounds(16, 1000)
    flooded = Flood(registry)
    pid = holder(flooded.session)
    before = descriptors(pid)
    flooded.on()
    while left > 0:
        batch = [
            subprocess.Popen(
                [sys.executable, "-c", VIEWER, str(registry.store.root)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            for _ in range(min(left, 4))
        ]
        left -= len(batch)
        for viewer in batch:
            assert viewer.stdout is not None
            said = viewer.stdout.readline()
            if said:
                time.sleep(draw.uniform(0, 0.05))  # anywhere in its reading
            viewer.kill()
            complaint = viewer.communicate()[1]
            assert (said, complaint) == (b"reads\n", b"")
    until(lambda: descriptors(pid) == before, what=lambda: descriptors(pid))
    assert flooded.over() > MB
    flooded.check()
