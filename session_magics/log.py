"""Reading a session's log by absolute offset, and its index of events.

A log is a row of segments ``log.<offset>``: the file's first byte has that offset. Bytes that no segment has
(dropped on a full disk, or older than the cap) are a gap; offsets never shift.
"""

from __future__ import annotations

import builtins
import contextlib
import json
import os
import re
import time
from bisect import bisect_right
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from session_magics.durable import translated

CHUNK_BYTES = 256 * 1024
"""Most that one step of ``read`` hands out; larger reads gained nothing."""
BLOCK_BYTES = 64 * 1024
"""Step of reading backwards: some 800 lines of 80 columns."""
TAIL_LIMIT = 1024 * 1024
"""Most bytes of a tail, so that one line of 50 MB stays harmless."""
INDEX_TAIL = 64 * 1024
"""Bytes of the index looked at first for its newest events: behind the begin of a command are the times of its output,
40 KB of them in an hour."""
EVENT_READ_BYTES = 4 * 1024 * 1024
"""Read size of the index; a line longer than this is taken for damage."""
CONTINUATION = bytes(range(0x80, 0xC0))
"""Bytes that no character of UTF-8 begins with."""
SETTLED_NS = 50_000_000
"""A directory's time stamp moves in ticks of up to 10 ms, so a younger stamp may hide a later change."""

SEGMENT = re.compile(r"log\.([0-9]{20})")


def segment_name(offset: int) -> str:
    """Return the file name of the segment whose first byte has that offset."""
    return f"log.{offset:020d}"


def segment_offsets(directory: str) -> list[int]:
    """Return the offsets of the segments that exist, in order."""
    return sorted(int(match[1]) for name in os.listdir(directory) if (match := SEGMENT.fullmatch(name)))


def log_end(directory: str) -> int:
    """Return the offset behind the newest byte of a log: all that was ever written, kept or not."""
    offsets = segment_offsets(directory)
    return offsets[-1] + os.stat(f"{directory}/{segment_name(offsets[-1])}").st_size if offsets else 0


def log_changed(directory: str) -> float:
    """Return the Unix time at which a log was last written to; 0 for one without output."""
    offsets = segment_offsets(directory)
    return os.stat(f"{directory}/{segment_name(offsets[-1])}").st_mtime if offsets else 0.0


class LogReader:
    """Reads one log while its holder writes it and drops old segments.

    It holds one descriptor (the newest segment's) until ``close``. Not for two threads at once. What can no
    longer be read is a gap, never an error, except that a refused or failing read raises StoreError.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._path = str(directory)
        self._offsets: list[int] = []
        self._fd = -1
        self._fd_offset = -1
        self._stamp = -1
        self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<LogReader {self._path} end={self._end}>"

    def close(self) -> None:
        """Give the descriptor back; reading again opens it again."""
        fd, self._fd, self._fd_offset = self._fd, -1, -1
        if fd >= 0:
            os.close(fd)
        self._stamp = -1

    def end(self) -> int:
        """Return the offset behind the newest byte; it never goes back."""
        self._refresh()
        if self._fd >= 0:
            self._end = max(self._end, self._fd_offset + os.fstat(self._fd).st_size)
        return self._end

    def start(self) -> int:
        """Return the offset of the oldest byte that is kept (0 for an empty log)."""
        self._refresh()
        return self._offsets[0] if self._offsets else 0

    def read(self, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yield (offset, bytes) in order; an offset that is further on than the last chunk's end shows a gap.

        It ends at ``end`` or at the end of the log, whichever comes first.
        """
        position = max(begin, 0)
        while position < end:
            segment, following = self._segment_at(position)
            data = b""
            if segment is not None:
                stop = end if following is None else min(end, following)
                data = self._pread(segment, position, min(CHUNK_BYTES, stop - position))
            if data:
                yield position, data
                position += len(data)
            elif following is not None:
                # A gap, as the segment was complete before the read came back empty: the next one was known. But a
                # listing that ran while segments were begun may lack one of them, so a second one must agree.
                self._rescan()
                if self._segment_at(position) == (segment, following):
                    position = following
            elif not self._rescan():
                return

    def bytes(self, begin: int, end: int) -> builtins.bytes:
        """Return what is kept of ``[begin, end)``, gaps left out."""
        return b"".join(data for _, data in self.read(begin, end))

    def missing(self, begin: int, end: int) -> int:
        """Return how many bytes of ``[begin, end)`` are not there."""
        begin = max(begin, 0)
        kept = 0
        for offset, size in self._spans():
            kept += max(0, min(end, offset + size) - max(begin, offset))
        return max(0, end - begin - kept)

    def tail_bytes(self, lines: int, *, end: int | None = None, limit: int = TAIL_LIMIT) -> builtins.bytes:
        """Return the last ``lines`` lines that end in a newline, and what follows them, at most ``limit`` bytes.

        ``end``: of what comes before this offset; default: of all.
        """
        blocks: list[builtins.bytes] = []
        room, wanted = limit, lines + 1
        for offset, size in reversed(self._spans()):
            stop = offset + size if end is None else min(offset + size, end)
            while stop > offset and room > 0 and wanted > 0:
                step = min(BLOCK_BYTES, room, stop - offset)
                block = self._pread(offset, stop - step, step)
                if not block:
                    break  # removed meanwhile
                stop -= step
                found = block.count(b"\n")
                if found >= wanted:
                    block = block[_nth_newline_from_end(block, wanted) + 1 :]
                blocks.append(block)
                wanted -= found
                room -= len(block)
        tail = b"".join(reversed(blocks))
        # Cut by a limit, of whichever kind, it may begin within a character.
        return tail.lstrip(CONTINUATION) if wanted > 0 and (room <= 0 or self.start() > 0) else tail

    def _spans(self) -> list[tuple[int, int]]:
        """Return (offset, size) of every segment, none reaching into the next."""
        self._refresh()
        spans = []
        for index, offset in enumerate(self._offsets):
            try:
                size = os.stat(f"{self._path}/{segment_name(offset)}").st_size
            except FileNotFoundError:
                continue
            following = self._offsets[index + 1] if index + 1 < len(self._offsets) else offset + size
            spans.append((offset, min(size, following - offset)))
        return spans

    def _segment_at(self, position: int) -> tuple[int | None, int | None]:
        """Return the known segment that ``position`` falls in, and the offset of the next one."""
        index = bisect_right(self._offsets, position)
        segment = self._offsets[index - 1] if index else None
        return segment, self._offsets[index] if index < len(self._offsets) else None

    def _pread(self, segment: int, position: int, size: int) -> builtins.bytes:
        with translated(self._path):
            if segment == self._fd_offset:
                return os.pread(self._fd, size, position - segment)
            try:
                fd = self._open(segment)
            except FileNotFoundError:
                return b""
            try:
                return os.pread(fd, size, position - segment)
            finally:
                os.close(fd)

    def _open(self, segment: int) -> int:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(f"{self._path}/{segment_name(segment)}", flags)

    def _refresh(self) -> None:
        """Look for new and removed segments, if the directory changed since the last look."""
        try:
            stamp = os.stat(self._path).st_mtime_ns
        except OSError:
            stamp = -1
        if stamp < 0 or stamp != self._stamp:
            self._rescan()

    def _rescan(self) -> bool:
        """Read the directory anew; True if the segments are others than before."""
        before = self._offsets
        with translated(self._path):
            try:
                stamp = os.stat(self._path).st_mtime_ns
                self._offsets = segment_offsets(self._path)
            except FileNotFoundError:  # the session was removed: what is open can still be read
                self._offsets = [self._fd_offset] if self._fd >= 0 else []
                return self._offsets != before
            self._stamp = stamp if time.time_ns() - stamp > SETTLED_NS else -1
            self._open_newest()
        return self._offsets != before

    def _open_newest(self) -> None:
        newest = self._offsets[-1] if self._offsets else -1
        if newest == self._fd_offset or newest < 0:
            return
        with contextlib.suppress(FileNotFoundError):
            fd = self._open(newest)
            old, self._fd, self._fd_offset = self._fd, fd, newest
            if old >= 0:
                os.close(old)


@dataclass(frozen=True)
class Event:
    """One line of the index: what happened at an offset of the log."""

    at: int
    """The log offset."""
    time: float
    """Unix time, for display."""
    kind: str
    data: dict[str, object]
    """What else the line says, by kind."""


class EventReader:
    """Reads the index of one log; it keeps nothing open. ``damaged`` counts the lines it had to skip."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.damaged = 0

    def newest(self, kinds: Container[str], count: int = 1) -> list[Event]:
        """The newest events of these kinds, oldest first; no more of the index is read than it takes."""
        try:
            size = os.stat(f"{self.directory}/log.idx").st_size
        except OSError:
            return []
        tail = INDEX_TAIL
        while True:
            events, _ = self.events(max(0, size - tail))
            found = [event for event in events if event.kind in kinds][-count:]
            if len(found) == count or tail >= size:
                return found
            tail *= 8

    def events(self, since_position: int = 0) -> tuple[list[Event], int]:
        """Return the events behind ``since_position`` (bytes in the index) and the position to go on from.

        A line without its newline is not read yet: the holder may be in the middle of writing it.
        """
        path = f"{self.directory}/log.idx"
        found: list[Event] = []
        position = since_position
        with translated(path):
            try:
                fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            except FileNotFoundError:
                return found, position
            try:
                while data := os.pread(fd, EVENT_READ_BYTES, position):
                    whole = data.rfind(b"\n") + 1
                    if not whole and len(data) == EVENT_READ_BYTES:
                        whole = len(data)
                    if not whole:
                        break
                    found.extend(self._parse(data[:whole]))
                    position += whole
            finally:
                os.close(fd)
        return found, position

    def _parse(self, data: bytes) -> Iterator[Event]:
        for line in data.split(b"\n"):
            # A power cut leaves zeros where data never reached the disk; the next line is appended behind them.
            line = line.lstrip(b"\0")
            if not line:
                continue
            event = _event(line)
            if event is None:
                self.damaged += 1
            else:
                yield event


def _event(line: bytes) -> Event | None:
    try:
        data = json.loads(line)
        at, moment, kind = data.pop("at"), data.pop("t"), data.pop("kind")
    except (ValueError, RecursionError, KeyError, AttributeError, TypeError):
        return None
    if (
        type(at) is not int
        or isinstance(moment, bool)
        or not isinstance(moment, int | float)
        or not isinstance(kind, str)
    ):
        return None
    return Event(at, moment, kind, data)


def _nth_newline_from_end(block: bytes, count: int) -> int:
    position = len(block)
    for _ in range(count):
        position = block.rfind(b"\n", 0, position)
    return position
