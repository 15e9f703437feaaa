"""What a session has printed so far, as a recording: from its log and the index of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from session_magics.errors import UsageMistake
from session_magics.log import EventReader, LogReader, log_changed
from session_magics.model import Running, check_size
from session_magics.recording.formats import Cast, CastEvent, Header
from session_magics.recording.places import Place
from session_magics.recording.timing import Timeline
from session_magics.recording.transcript import NOTED, Transcript, size_of
from session_magics.text.modes import MODE_BYTES

if TYPE_CHECKING:
    from session_magics.session import Session


@dataclass(frozen=True)
class Edge:
    """An end of a stretch of a log."""

    offset: int
    time: float
    """Unix time."""


class Past:
    """A session's log at one moment; ``close`` it. What comes later goes on at ``end`` and at ``index``."""

    def __init__(self, session: Session) -> None:
        info = session.info()
        self._returns = info.shell is not None
        self._size = session.first_size()
        self.log = LogReader(session.directory)
        end = self.log.end()
        events, self.index = EventReader(session.directory).events()
        self._events = [event for event in events if event.at <= end]
        self.index_events = [event for event in events if event.at > end]
        """Those of what comes later, which the index has already."""
        began = min([info.created, *(event.time for event in events[:1])])
        now = time.time() if isinstance(info.state, Running) else 0.0
        self._timeline = Timeline(events, began, (end, max(log_changed(str(session.directory)), began)))
        self.first = Edge(0, began)
        self.end = Edge(end, max(now, self._timeline.at(end)))
        self._cells = [event for event in self._events if event.kind in ("begin", "end")]

    def close(self) -> None:
        """Give the log back."""
        self.log.close()

    def edge(self, place: Place, *, end: bool = False) -> Edge:
        """Where that is; of a cell, its begin, or its end."""
        if place.kind == "start":
            return self.first
        if place.kind == "end":
            return self.end
        if place.kind == "cell":
            return self._cell(int(place.number), end=end)
        if place.kind == "offset":
            offset = min(int(place.number), self.end.offset)
            return Edge(offset, self._timeline.at(offset))
        moment = max(self.first.time, self.end.time - place.number)
        return Edge(self._timeline.offset(moment), moment)

    def _cell(self, number: int, *, end: bool) -> Edge:
        begins = [at for at, event in enumerate(self._cells) if event.kind == "begin"]
        try:
            at = begins[number - 1 if number > 0 else number] if number else len(self._cells)
            event = self._cells[at]
        except IndexError:
            known = f"1 to {len(begins)}, or from the end -1" if begins else "none has run"
            raise UsageMistake(f"cell:{number} is no cell of this session: {known}") from None
        if end:
            following = self._cells[at + 1 : at + 2]
            return Edge(following[0].at, following[0].time) if following else self.end
        return Edge(event.at, event.time)

    def header(self, begin: Edge, title: str, command: str, idle_limit: float | None = None) -> Header:
        """What a cast from there on says about itself."""
        size = self._size_at(begin)
        return Header(size, int(begin.time), title, command, idle_limit, {"TERM": "xterm-256color"})

    def _size_at(self, edge: Edge) -> tuple[int, int]:
        size = self._size
        for event in self._events:
            if event.at <= edge.offset and event.time <= edge.time:
                size = size_of(event) or size
        return check_size(size)

    def transcript(self, begin: Edge) -> Transcript:
        """What makes the events of a cast that begins there."""
        return Transcript(begin.time, returns=self._returns)

    def events(self, transcript: Transcript, begin: Edge, end: Edge) -> Iterator[CastEvent]:
        """What happened between the two."""
        if begin.offset and not self._returns:  # a shell's cell begins on a line of its own
            yield from transcript.output(begin.time, self._opening(begin))
        noted = [
            event
            for event in self._events
            if event.kind in NOTED and begin.offset <= event.at <= end.offset and begin.time <= event.time <= end.time
        ]
        position = begin.offset
        for event in sorted(noted, key=lambda event: event.at):
            yield from self._output(transcript, position, event.at)
            position = event.at
            yield from transcript.note(event, event.time)
        yield from self._output(transcript, position, end.offset)

    def _opening(self, begin: Edge) -> bytes:
        from session_magics.recording.opening import opening  # the emulator is slow to import

        data = self.log.bytes(max(0, begin.offset - MODE_BYTES), begin.offset)
        return opening(data, self._size_at(begin))

    def _output(self, transcript: Transcript, position: int, end: int) -> Iterator[CastEvent]:
        for offset, data in self.log.read(position, end):
            if offset > position:
                yield from transcript.gap(self._timeline.at(offset), offset - position)
            position = offset + len(data)
            for moment, piece in self._timeline.pieces(offset, data):
                yield from transcript.output(moment, piece)


def cast_of(session: Session) -> Cast:
    """All that a session has printed so far."""
    past = Past(session)
    try:
        begin = past.first
        transcript = past.transcript(begin)
        events = [*past.events(transcript, begin, past.end), *transcript.finish()]
        info = session.info()
        return Cast(past.header(begin, info.name, info.command_line), tuple(events))
    finally:
        past.close()
