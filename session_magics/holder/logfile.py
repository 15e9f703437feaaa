"""Writing a session's log: raw bytes in segments under a cap, and the index of events."""

from __future__ import annotations

import os
import time

from session_magics.holder.record import to_json

LOG_CAP = 64 * 1024 * 1024
"""Bytes kept of one session; the oldest segments go first."""
SEGMENTS = 16
"""The cap in segments: what is dropped at once is a sixteenth of it."""
INDEX_TAIL = 4096
"""Bytes at the end of the index that hold its last event."""
EVENT_START = b'{"at": '
DISK_RETRY = 1.0
"""Seconds between tries to write after the disk refused."""
QUIET = 0.5
"""Seconds without output that the index tells of; readers take what comes between two times of it for steady."""
STEADY = 10.0
"""Seconds between two times in the index while output never pauses, and at which it may have one more."""
TIMES = 200
"""Times that may come closer together: with one each ``STEADY`` seconds an hour of output costs 40 KB at most."""


def segment_name(offset: int) -> str:
    """The file name of the segment whose first byte has this offset."""
    return f"log.{offset:020d}"


class LogWriter:
    """Appends to the log in one directory; goes on where an earlier generation stopped.

    ``end`` is the absolute offset after the last byte *taken*: bytes that a full disk refused count, and the
    next segment begins after them, so that readers see the gap to the byte.
    """

    def __init__(self, directory: str, *, cap: int = LOG_CAP, timed: bool = False) -> None:
        """``timed``: what is appended comes as it is printed, so the index is to tell when."""
        self._directory, self._cap = directory, cap
        self._segment_bytes = max(4096, cap // SEGMENTS)
        names = sorted(one for one in os.listdir(directory) if one.startswith("log.") and one[4:].isdigit())
        self._segments = [[int(one[4:]), os.stat(os.path.join(directory, one)).st_size] for one in names]
        self._fd = -1
        self._index = os.open(
            os.path.join(directory, "log.idx"), os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        self.index_size = os.fstat(self._index).st_size
        self.end = max(sum(self._segments[-1]) if self._segments else 0, self._last_offset())
        self._torn = False
        self._dropped = 0
        self._retry_at = 0.0
        self._timed = timed
        self._heard = self._counted = time.time()
        self._due = 0.0
        self._left = float(TIMES)
        self._told = self.end  # the offset of the last time in the index

    def _last_offset(self) -> int:
        """The offset of the last event: behind the last segment where a full disk cost the end of an earlier one."""
        tail = os.pread(self._index, INDEX_TAIL, max(0, self.index_size - INDEX_TAIL))
        digits, _, _ = tail[tail.rfind(EVENT_START) + len(EVENT_START) :].partition(b",")
        return int(digits) if EVENT_START in tail and digits.isdigit() else 0

    def append(self, data: bytes) -> None:
        """Take bytes; never raises for a disk that is full or broken, but counts and marks what is lost."""
        at, length = 0, len(data)
        if self._timed:
            now = time.time()
            silence, self._heard = now - self._heard, now
            if now >= self._due or not 0 <= silence < QUIET:
                self._tell_time(now, silence)
        if self._dropped and time.monotonic() < self._retry_at:
            self._lose(length)
            return
        while at < length:
            try:
                room = self._open_segment()
                written = os.write(self._fd, data[at : at + room] if at or length > room else data)
            except OSError:
                self._lose(length - at)
                return
            if self._dropped:  # only now: an empty segment can be had on a full disk
                lost, self._dropped = self._dropped, 0
                self.event("gap", lost=lost)
            self._segments[-1][1] += written
            self.end += written
            at += written

    def _open_segment(self) -> int:
        """Make sure that a segment with room is open; return the room in bytes."""
        if self._dropped:
            self._close_segment()
        if self._fd >= 0:
            room = self._segment_bytes - self._segments[-1][1]
            if room > 0:
                return room
            self._close_segment()
        path = os.path.join(self._directory, segment_name(self.end))
        self._fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        if not self._segments or self._segments[-1][0] != self.end:
            self._segments.append([self.end, 0])
        self._trim()
        return self._segment_bytes

    def _trim(self) -> None:
        while (
            len(self._segments) > 1 and sum(size for _, size in self._segments[:-1]) + self._segment_bytes > self._cap
        ):
            offset, _ = self._segments.pop(0)
            try:
                os.unlink(os.path.join(self._directory, segment_name(offset)))
            except FileNotFoundError:
                pass

    def _lose(self, count: int) -> None:
        """Count bytes that the disk refused; the next segment will begin behind them."""
        self._close_segment()
        if time.monotonic() >= self._retry_at:
            self._retry_at = time.monotonic() + DISK_RETRY
        if self._segments and self._segments[-1][1] == 0:
            try:
                os.unlink(os.path.join(self._directory, segment_name(self._segments.pop()[0])))
            except OSError:
                pass
        self._dropped += count
        self.end += count

    def _close_segment(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def event(self, kind: str, at: int | None = None, **data: str | int | float | bool | None) -> None:
        """Add a line to the index; lost without a word if the disk is full, as the log's offsets still hold."""
        now = time.time()
        if self._timed:
            if self.end > self._told and now - self._heard >= QUIET:
                data["idle"] = round(now - self._heard, 3)
            self._told = self.end
        self.copy_events(to_json({"at": self.end if at is None else at, "t": now, "kind": kind, **data}) + b"\n")

    def _tell_time(self, now: float, silence: float) -> None:
        """Have the index tell that what comes next comes now, and how long nothing came, if there is room for it."""
        self._left = min(TIMES, self._left + max(0.0, now - self._counted) / STEADY)
        self._counted = now
        if self._left < 1:
            self._due = now + STEADY * (1 - self._left)
            return
        self._left -= 1
        self._due = now + STEADY
        self._told = self.end
        idle = {"idle": round(silence, 3)} if silence >= QUIET else {}
        self.copy_events(to_json({"at": self.end, "t": round(now, 3), "kind": "time", **idle}) + b"\n")

    def copy_events(self, lines: bytes) -> None:
        """Add whole lines to the index as they are."""
        lines = b"\n" + lines if self._torn else lines  # so that a line that was cut off spoils no other
        try:
            written = os.write(self._index, lines)
        except OSError:
            return
        self.index_size += written
        self._torn = written < len(lines)

    def skip(self, count: int) -> None:
        """Leave out bytes that are lost where they come from; the next segment will begin behind them."""
        self._close_segment()
        self.end += count

    def close(self) -> None:
        """Mark what was lost last, and give up the descriptors."""
        if self._dropped:
            self.event("gap", lost=self._dropped)
            self._dropped = 0
        self._close_segment()
        if self._index >= 0:
            os.close(self._index)
            self._index = -1
