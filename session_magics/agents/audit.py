"""What was approved, and why: JSON lines in the session's directory, from which each decision can be made again.

Each decision is a line of its own with all that it was made from, on the disk before a key is sent; what the screen
showed afterwards is a second line. Nothing that a person typed is written, and no screen of a time when the terminal
hides what is typed.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from session_magics.durable import translated

FILE = "approvals.jsonl"
OLDER = ".1"
"""Behind the name of the one older file that is kept."""
FILE_BYTES = 4 * 1024 * 1024
"""Size at which a file is put aside: some 500 decisions."""

Record = Mapping[str, Any]
"""One line."""


class Trail:
    """Appends to one session's audit log. ``close`` it, or use ``contextlib.closing``."""

    def __init__(self, directory: Path, *, limit: int = FILE_BYTES) -> None:
        self._path, self._limit = f"{directory}/{FILE}", limit
        self._fd = -1

    def append(self, record: Record) -> None:
        """Write one line; it is on the disk when this returns. Raises StoreError."""
        line = json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        with translated(self._path):
            self._make_room(len(line))
            if self._fd < 0:
                self._fd, torn = _open(self._path)
                line = b"\n" * torn + line
            while line:
                line = line[os.write(self._fd, line) :]
            os.fsync(self._fd)

    def _make_room(self, size: int) -> None:
        try:
            full = os.stat(self._path).st_size + size > self._limit
        except FileNotFoundError:
            full = False
        if full:
            self.close()
            os.replace(self._path, self._path + OLDER)

    def close(self) -> None:
        """Give the descriptor back; appending again opens it again."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def _open(path: str) -> tuple[int, bool]:
    """A descriptor to append with, and whether the last line there lacks its end."""
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    size = os.fstat(fd).st_size
    return fd, size > 0 and os.pread(fd, 1, size - 1) != b"\n"


@dataclasses.dataclass(frozen=True)
class Records:
    """What a file holds, oldest first, and a note for each line that could not be read."""

    lines: tuple[Record, ...]
    notes: tuple[str, ...]


def read(path: Path) -> Records:
    """All of one file; a line that is torn or damaged is left out, with a note."""
    lines, notes = [], []
    with translated(str(path)):
        content = path.read_bytes()
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line:
            continue
        record = None
        with contextlib.suppress(ValueError, RecursionError):
            record = json.loads(line)
        if isinstance(record, dict):
            lines.append(record)
        else:
            notes.append(f"{path.name}: line {number} cannot be read ({len(line)} bytes)")
    return Records(tuple(lines), tuple(notes))


def newest(directory: Path, count: int) -> list[Record]:
    """The last decisions of a session, oldest first; none if nothing was ever decided."""
    found: list[Record] = []
    for name in (FILE, FILE + OLDER):
        if len(found) < count and (directory / name).exists():
            found = [line for line in read(directory / name).lines if line.get("kind") == "decision"] + found
    return found[-count:]


def replay(path: Path, decide_again: Callable[[Record], Record]) -> list[tuple[Record, Record]]:
    """For each decision on record: as it was, and as ``decide_again`` (of ``approval``) makes it now."""
    return [(line["decision"], decide_again(line)) for line in read(path).lines if line.get("kind") == "decision"]


# ---------------------------------------------------------------------- values


def encode(value: object) -> Any:
    """A value of frozen dataclasses, tuples and plain values as JSON has it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return [encode(one) for one in value] if isinstance(value, tuple) else value


def decode(kind: Any, value: Any) -> Any:
    """The value of type ``kind`` that ``encode`` made this from; a field that is not there has its default."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        hints = typing.get_type_hints(kind)
        return kind(**{name: decode(hints[name], value[name]) for name in _given(kind, value)})
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        parts = [part for part in typing.get_args(kind) if part is not types.NoneType]
        return None if value is None else decode(parts[0], value)
    if typing.get_origin(kind) is tuple:
        part, *rest = typing.get_args(kind)
        return tuple(decode(of, one) for of, one in zip(_types(part, rest, len(value)), value, strict=True))
    return value


def _types(part: Any, rest: list[Any], count: int) -> list[Any]:
    """The types of a tuple's elements."""
    return [part] * count if rest == [...] else [part, *rest]


def _given(kind: type[Any], value: Record) -> Iterator[str]:
    return (field.name for field in dataclasses.fields(kind) if field.name in value)
