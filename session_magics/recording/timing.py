"""When which byte of a log was written, as its index tells, and pauses that are made shorter."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import replace

from session_magics.log import Event
from session_magics.recording.formats import CastEvent

FRAME = 1 / 30
"""Seconds that one event of the output stands for, where only the time of a longer stretch is known: as smooth as
players draw."""

LINE_BYTES = 512
"""Bytes that a line may have to appear at once."""
_LINE_END = re.compile(rb"\r?\n|\r")


class Timeline:
    """Unix times of log offsets. Between two that are known they are in proportion to the bytes."""

    def __init__(self, events: Iterable[Event], begin: float, end: tuple[int, float]) -> None:
        """``begin``: when the log began; ``end``: its end, and when that may have been reached."""
        points = [(0, begin)]
        for event in events:
            idle = event.data.get("idle")
            if isinstance(idle, int | float):
                points.append((event.at, event.time - idle))
            points.append((event.at, event.time))
        self._offsets: list[int] = []
        self._times: list[float] = []
        offset, moment = 0, begin
        for point in [*points, end]:  # a clock may have been set back, and an end is told after what follows it
            offset, moment = max(offset, point[0]), max(moment, point[1])
            self._offsets.append(offset)
            self._times.append(moment)

    def at(self, offset: int) -> float:
        """When the byte at this offset came."""
        index = bisect_right(self._offsets, offset)
        if not 0 < index < len(self._offsets):
            return self._times[-1 if index else 0]
        begin, end = self._offsets[index - 1], self._offsets[index]
        share = (offset - begin) / (end - begin)
        return self._times[index - 1] + share * (self._times[index] - self._times[index - 1])

    def offset(self, moment: float) -> int:
        """The first offset whose byte came at that time or later."""
        index = bisect_right(self._times, moment)
        if not 0 < index < len(self._times):
            return self._offsets[-1 if index else 0]
        begin, end = self._times[index - 1], self._times[index]
        share = (moment - begin) / (end - begin)
        return self._offsets[index - 1] + math.ceil(share * (self._offsets[index] - self._offsets[index - 1]))

    def pieces(self, offset: int, data: bytes) -> Iterator[tuple[float, bytes]]:
        """Cut bytes into what came within one frame, each with its time; at line ends where there are some."""
        at, stop = 0, len(data)
        while at < stop:
            index = bisect_right(self._offsets, offset + at)
            known = self._offsets[index] - offset if index < len(self._offsets) else stop
            end = min(stop, known)
            span = self._times[index] - self._times[index - 1] if 0 < index < len(self._offsets) else 0.0
            size = end - at
            if span > FRAME:
                whole = self._offsets[index] - self._offsets[index - 1]
                size = max(1, math.ceil(whole * FRAME / span))
            cut = min(end, at + size)
            if cut < end and (found := _LINE_END.search(data, cut - 1, min(end, cut + LINE_BYTES))) is not None:
                cut = found.end()
            yield self.at(offset + at), data[at:cut]
            at = cut


class Shortener:
    """Makes pauses shorter than a limit out of longer ones."""

    def __init__(self, limit: float | None) -> None:
        self._limit = limit
        self._cut = self._last = 0.0

    def shorten(self, event: CastEvent) -> CastEvent:
        """The event at its new time; for events in order."""
        pause, self._last = event.time - self._last, max(self._last, event.time)
        if self._limit is not None and pause > self._limit:
            self._cut += pause - self._limit
        return replace(event, time=max(0.0, event.time - self._cut)) if self._cut else event
