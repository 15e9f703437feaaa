"""Asciicast files: versions 2 and 3 are read and written, version 1 is read.

In memory all times are seconds since the beginning. Terminals expect CR LF at line ends, so a cast has them.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from session_magics.errors import UsageMistake
from session_magics.model import DEFAULT_SIZE, check_size

Version = Literal[2, 3]

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of one line of a file; one that is longer is no cast. A whole file of version 1 is one line."""
LATEST = 1e9
"""Seconds of a cast, some thirty years: later times are none, and clocks cannot show them."""
MICROSECONDS = 1_000_000
"""Times are written so finely, as recorders do; in whole numbers, so that intervals add up."""
_SIZE = re.compile(r"(\d{1,4})x(\d{1,4})")


@dataclass(frozen=True)
class Header:
    """What a cast says about itself."""

    size: tuple[int, int] = DEFAULT_SIZE
    """Rows and columns in the beginning."""
    timestamp: int | None = None
    """Unix time of the beginning."""
    title: str = ""
    command: str = ""
    idle_limit: float | None = None
    """Seconds that a player shows nothing happening at most."""
    env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CastEvent:
    """What happened at a time: ``o`` output, ``i`` input, ``m`` marker, ``r`` resize (COLSxROWS), ``x`` exit status."""

    time: float
    code: str
    data: str

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns of a resize."""
        return _resize(self.data)


@dataclass(frozen=True)
class Cast:
    """A whole recording."""

    header: Header
    events: tuple[CastEvent, ...]

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.events[-1].time if self.events else 0.0

    @property
    def final_size(self) -> tuple[int, int]:
        """Rows and columns at the end."""
        return next((event.size for event in reversed(self.events) if event.code == "r"), self.header.size)


# ---------------------------------------------------------------------- writing


class Lines:
    """Turns a recording into the lines of a file, each as bytes with its newline."""

    def __init__(self, version: Version) -> None:
        self._version = version
        self._last = 0

    def header(self, header: Header) -> bytes:
        """The first line."""
        rows, columns = header.size
        data: dict[str, Any] = {"version": self._version}
        if self._version == 2:
            data |= {"width": columns, "height": rows}
        else:
            terminal = {"type": header.env["TERM"]} if "TERM" in header.env else {}
            data["term"] = {"cols": columns, "rows": rows, **terminal}
        more = {
            "timestamp": header.timestamp,
            "idle_time_limit": header.idle_limit,
            "command": header.command,
            "title": header.title,
            "env": {name: value for name, value in header.env.items() if self._version == 2 or name != "TERM"},
        }
        return _line(data | {name: value for name, value in more.items() if value not in (None, "", {})})

    def event(self, event: CastEvent) -> bytes:
        """The line of an event; times that go back are taken for the last one. Version 2 knows no exit: empty."""
        if event.code == "x" and self._version == 2:
            return b""
        now = max(self._last, round(event.time * MICROSECONDS))
        shown = now if self._version == 2 else now - self._last
        self._last = now
        return _line([shown / MICROSECONDS, event.code, event.data])


def _line(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


# ---------------------------------------------------------------------- reading


class CastFile:
    """An open file: its header, and its events as they are read. Errors are UsageMistakes that name the line."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        try:
            self._file = open(path, "rb")  # noqa: SIM115 - ``close`` gives it back
            self.size = os.fstat(self._file.fileno()).st_size
        except OSError as error:
            raise UsageMistake(f"{self.path} cannot be read: {(error.strerror or 'error').lower()}") from None
        self._number = 0
        self._now = 0.0
        self._old: list[Any] = []
        try:
            self.version, self.header = self._header()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> CastFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the descriptor back; idempotent."""
        self._file.close()

    def events(self) -> Iterator[CastEvent]:
        """The events in order; to be called once. Those that no player would understand are passed over."""
        for entry in self._old:
            with self._wrong("an entry of stdout"):
                delay, data = entry
                yield self._event(delay, "o", data, interval=True)
        while line := self._read():
            if not line.strip() or (self.version == 3 and line.startswith(b"#")):
                continue
            with self._wrong("no event of a cast"):
                moment, code, data = json.loads(line)
                event = self._event(moment, code, data, interval=self.version == 3)
            yield event

    def _event(self, moment: object, code: object, data: object, *, interval: bool) -> CastEvent:
        seconds = _number(moment)
        if not isinstance(code, str) or not isinstance(data, str):
            raise TypeError
        if code == "r":
            _resize(data)
        self._now = self._now + seconds if interval else max(self._now, seconds)
        if self._now > LATEST:
            raise ValueError(self._now)
        return CastEvent(self._now, code, data)

    def _header(self) -> tuple[int, Header]:
        line = self._read()
        with self._wrong("no header of an asciicast"):
            try:
                data = json.loads(line)
            except ValueError:  # version 1 may be laid out over many lines
                data = json.loads(line + self._file.read(LONGEST_LINE))
                if data["version"] != 1:
                    raise
            version = data["version"]
            if type(version) is int and version not in (1, 2, 3):
                raise UsageMistake(f"{self.path}, line 1: asciicast version {version} is not known: 1, 2 and 3 are")
            if version == 1:
                self._old = list(data["stdout"])
            header = _read_header(data, data["term"] if version == 3 else data)
        return int(version), header

    def _read(self) -> bytes:
        try:
            line = self._file.readline(LONGEST_LINE)
        except OSError as error:
            raise UsageMistake(f"{self.path} cannot be read: {(error.strerror or 'error').lower()}") from None
        self._number += 1
        if len(line) == LONGEST_LINE:
            raise UsageMistake(f"{self.path}, line {self._number}: longer than {LONGEST_LINE:,} bytes")
        return line

    @contextlib.contextmanager
    def _wrong(self, what: str) -> Iterator[None]:
        """Say of anything that cannot be understood where it is."""
        try:
            yield
        except UsageMistake as mistake:
            if str(mistake).startswith(self.path):
                raise
            raise UsageMistake(f"{self.path}, line {self._number}: {mistake}") from None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
            raise UsageMistake(f"{self.path}, line {self._number}: {what}") from None


def read_cast(path: str | Path) -> Cast:
    """Read a whole file; raises UsageMistake."""
    with CastFile(path) as file:
        return Cast(file.header, tuple(file.events()))


def _read_header(data: Mapping[str, Any], terminal: Mapping[str, Any]) -> Header:
    names = ("cols", "rows") if "cols" in terminal else ("width", "height")
    columns, rows = (terminal[name] for name in names)
    if type(columns) is not int or type(rows) is not int:
        raise TypeError
    limit = data.get("idle_time_limit")
    env = {str(name): str(value) for name, value in (data.get("env") or {}).items()}
    if isinstance(terminal.get("type"), str):
        env["TERM"] = terminal["type"]
    timestamp = data.get("timestamp")
    return Header(
        check_size((rows, columns)),
        int(_number(timestamp)) if timestamp is not None else None,
        str(data.get("title") or ""),
        str(data.get("command") or ""),
        _number(limit) if limit is not None else None,
        env,
    )


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(value)
    return float(value)


def _resize(data: str) -> tuple[int, int]:
    match = _SIZE.fullmatch(data)
    if match is None:
        raise UsageMistake(f"{data[:40]!r} is no size: COLUMNSxROWS, such as 80x24")
    return check_size((int(match[2]), int(match[1])))
