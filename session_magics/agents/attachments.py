"""Attachments of a session: the images and videos that its output names and that exist.

Nothing is recorded: the names are found in the log, and whether they are files is asked whenever they are listed. So
a file that comes late is there then, and one that was deleted is not.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
import time
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from session_magics.agents.media import TYPES, MediaScanner, Mention, mime_type
from session_magics.log import LogReader

MENTIONS_KEPT = 5_000
"""Names remembered of one session, the newest: to ask for that many files takes some 0.1 s."""
SHOWN_BYTES = 2_000_000
"""Largest file shown in a page; base64 makes a third more of it. Plots have some 100 kB, screenshots up to 2 MB."""
SHOWN_TOTAL = 8_000_000
"""Bytes of all files shown together: a notebook of more than some 10 MB is slow to save and shown by few sites."""
SHOWN_TYPES = frozenset(TYPES.values()) - {"image/tiff", "video/x-msvideo", "video/x-flv", "video/x-ms-wmv"}
"""What at least one browser shows or plays."""
_COLUMNS = ("NAME", "SIZE", "TYPE", "MODIFIED", "PATH")
# How files of the shown types begin. Whatever else has such a name (a link to a key, a pointer of Git LFS) must not get
# into a notebook, which is made public easily.
_MEDIUM = re.compile(
    rb"\x89PNG|\xff\xd8\xff|GIF8|BM|RIFF....WEBP|\x00\x00\x01\x00|....(?:ftyp|moov|mdat|wide|free|skip)|\x1aE\xdf\xa3|OggS"
    rb"|(?:\xef\xbb\xbf)?\s*<(?:svg|\?xml|!--|!DOCTYPE svg)",
    re.S | re.I,
)
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


@dataclass(frozen=True)
class Attachment:
    """One file, as it was when it was listed."""

    path: str
    """Absolute, without symbolic links."""
    name: str
    size: int
    """Bytes."""
    mime: str
    modified: float
    """Unix time."""

    def read(self, limit: int) -> bytes | None:
        """Return its bytes; None if it is gone, no regular file any more, or larger than ``limit`` bytes."""
        try:
            fd = os.open(self.path, _READ)
        except (OSError, ValueError):
            return None
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return None
            data = file.read(limit + 1)
        return data if len(data) <= limit else None


class Gallery(list[Attachment]):
    """Attachments, in order of their first mention; shows itself as images and players in a page, else as a table."""

    def __str__(self) -> str:
        if not self:
            return "no attachments"
        rows = [_COLUMNS, *map(_cells, self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        )

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        contents = self._contents()
        return "".join(_figure(one, contents.get(one.path)) for one in self) or "<p>no attachments</p>"

    def _contents(self) -> dict[str, bytes]:
        """Path to content of what is to be shown: the newest first, until the room is used up."""
        room, contents = SHOWN_TOTAL, {}
        for one in sorted(self, key=lambda one: one.modified, reverse=True):
            data = one.read(min(SHOWN_BYTES, room)) if one.mime in SHOWN_TYPES else None
            if data is not None and _MEDIUM.match(data):
                contents[one.path] = data
                room -= len(data)
        return contents


class Attachments:
    """Finds the attachments of one session; it remembers how far the log was read. For one thread.

    ``session_directory`` is that of its record, ``cwd`` the one that its program began in, from which names count.
    """

    def __init__(self, session_directory: Path, cwd: str | Path) -> None:
        self.directory, self.cwd = session_directory, os.path.abspath(cwd)
        self._scanner = MediaScanner()
        self._offset = 0
        self._mentions: dict[Mention, None] = {}

    def scan(self) -> Gallery:
        """Read what the log has more than the last time, and return those attachments that exist now."""
        with LogReader(self.directory) as log:
            for offset, data in log.read(self._offset, log.end()):
                if offset > self._offset:  # what was there is dropped already
                    self._scanner.gap()
                self._remember(self._scanner.feed(data))
                self._offset = offset + len(data)
        allowed = self._allowed()
        found: dict[str, Attachment] = {}
        for mention in dict.fromkeys([*self._mentions, *self._scanner.rest()]):
            one = next(filter(None, (self._attachment(name, allowed) for name in mention)), None)
            if one is not None:
                found.setdefault(one.path, one)
        return Gallery(found.values())

    def _remember(self, mentions: Iterable[Mention]) -> None:
        for mention in mentions:
            self._mentions[mention] = None
        for mention in list(self._mentions)[:-MENTIONS_KEPT]:
            del self._mentions[mention]

    def _allowed(self) -> tuple[str, ...]:
        """The directories that attachments may lie in, each with the slash that ends it."""
        places = (self.cwd, os.path.expanduser("~"), tempfile.gettempdir())
        return tuple(os.path.join(os.path.realpath(place), "") for place in places)

    def _attachment(self, name: str, allowed: tuple[str, ...]) -> Attachment | None:
        """What a name stands for now; None if that is no file, or is none's business."""
        path = os.path.join(self.cwd, os.path.expanduser(name) if name.startswith("~/") else name)
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                return None
            real = os.path.realpath(path, strict=True)
            status = os.lstat(real)
        except (OSError, ValueError):
            return None
        mime = mime_type(name)
        if mime is None or not stat.S_ISREG(status.st_mode) or not real.startswith(allowed):
            return None
        return Attachment(real, os.path.basename(name), status.st_size, mime, status.st_mtime)


def _cells(one: Attachment) -> tuple[str, ...]:
    modified = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one.modified))
    return (_printable(one.name), f"{one.size:,}", one.mime, modified, _printable(one.path))


def _figure(one: Attachment, data: bytes | None) -> str:
    """HTML of one attachment. Its content is only ever an image's or a player's source: no script in an SVG runs."""
    name, path = escape(_printable(one.name)), escape(_printable(one.path))
    line = f"{name} · {one.size:,} bytes · <code>{path}</code>"
    if data is None:
        return f"<p>{line}</p>\n"
    source = f'src="data:{one.mime};base64,{b64encode(data).decode()}" style="max-width:100%"'
    if one.mime.startswith("image/"):
        shown = f'<img {source} alt="{name}">'
    else:
        shown = f'<video controls {source} title="{name}"></video>'
    return f'<figure style="margin:0 0 1em">{shown}<figcaption>{line}</figcaption></figure>\n'


def _printable(text: str) -> str:
    """Text without characters that a terminal or a page would obey."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
