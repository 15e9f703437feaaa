"""Reading a session's log, index and records as they grow, for somebody who has to have them elsewhere."""

from __future__ import annotations

import json
import os

from session_magics.holder.logfile import segment_name

CHUNK = 256 * 1024
"""Bytes of one read."""


class LogFollower:
    """Reads the log in the working directory from an offset on. Keeps the segment open that it reads."""

    def __init__(self, at: int) -> None:
        self.at = at
        """The offset that comes next."""
        self._fd, self._begin = -1, -1

    def end(self) -> int:
        """The offset behind the newest byte that is on disk."""
        starts = _segments()
        if not starts:
            return self.at
        try:
            size = os.stat(segment_name(starts[-1])).st_size
        except FileNotFoundError:
            size = 0
        return max(self.at, starts[-1] + size)

    def read(self, upto: int) -> bytes:
        """The bytes at ``at``, which moves behind them; over a gap it moves first. Empty at the end."""
        data = self._piece(upto)
        if not data and self._next():
            data = self._piece(upto)
        self.at += len(data)
        return data

    def _piece(self, upto: int) -> bytes:
        if self._fd < 0:
            starts = _segments()
            begin = max([one for one in starts if one <= self.at] or starts[:1], default=-1)
            if not self._open(begin):
                return b""
        return os.pread(self._fd, max(0, min(CHUNK, upto - self.at)), self.at - self._begin)

    def _next(self) -> bool:
        """Go over to the next segment if this one is complete and read."""
        if self._fd < 0:
            return False
        later = [one for one in _segments() if one > self._begin]
        if not later or os.pread(self._fd, 1, self.at - self._begin):  # the listing came after the last read
            return bool(later)
        return self._open(later[0])

    def _open(self, begin: int) -> bool:
        if begin < 0:
            return False
        try:
            fd = os.open(segment_name(begin), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        if self._fd >= 0:
            os.close(self._fd)
        self._fd, self._begin, self.at = fd, begin, max(self.at, begin)
        return True


class Records:
    """The run and the exit record in the working directory: what of them is new since it was last asked."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[int, int]] = {}

    def exit(self) -> bytes:
        """The exit record, if it was written meanwhile."""
        text = self._changed("exit")
        return text if text.strip() else b""

    def run(self) -> list[bytes]:
        """The fields of a RUN_RECORD, if it was written meanwhile."""
        return run_fields(self._changed("run.json"))

    def _changed(self, name: str) -> bytes:
        try:
            one = os.stat(name)
        except FileNotFoundError:
            return b""
        stamp = (one.st_ino, one.st_mtime_ns)
        if self._seen.get(name) == stamp:
            return b""
        self._seen[name] = stamp
        return self._text(name)

    @staticmethod
    def _text(name: str) -> bytes:
        with open(name, "rb") as file:
            return file.read()


def run_fields(text: bytes) -> list[bytes]:
    """What a relay is told of a run record; nothing for a text that is none."""
    try:
        run = json.loads(text)
        rows, columns = run["size"]
        known = [run["pid"], run["generation"], run["since"], rows, columns]
    except (ValueError, KeyError, TypeError):
        return []
    kept = [name for name in ("code", "signal", "ended", "until", "gave_up", "lost") if name in run]
    return [json.dumps(one).encode() for one in known] + [
        part for name in kept for part in (name.encode(), json.dumps(run[name]).encode())
    ]


def _segments() -> list[int]:
    return sorted(int(one[4:]) for one in os.listdir(".") if one.startswith("log.") and one[4:].isdigit())


def json_of(name: str) -> dict[str, object]:
    """The object in a file of the working directory; an empty one for a file that has none."""
    try:
        with open(name, "rb") as file:
            found = json.load(file)
    except (OSError, ValueError):
        found = {}
    return found if isinstance(found, dict) else {}
