"""Which conversation an agent's session holds: its id, found in the output and kept with the session."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import re
from functools import lru_cache
from pathlib import Path

from session_magics.agents.tools import Tool
from session_magics.durable import read_bounded, translated, write_atomic
from session_magics.errors import StoreError, UsageMistake
from session_magics.log import LogReader
from session_magics.text.escapes import parse_csi, split

FILE = "conversation"
"""Name of the file in the session's directory."""
FILE_BYTES = 4096
"""Most of the file that is read; an id is far shorter."""
MATCH_LIMIT = 256
"""Characters of output that an id and the words before it may take; so much is kept between two pieces of output."""

_SOUND = re.compile(r"(?!-)[^\x00-\x20\x7f-\x9f][^\x00-\x1f\x7f-\x9f]{0,199}")
# An id becomes an argument: a leading dash would make it an option.
_MOVES = "ABCDEFGHdf"
# Final characters of the sequences that move the cursor: full-screen programs use them in place of blanks.


class IdCapture:
    """Finds the first id of a conversation in a tool's output; the result does not depend on how the output is cut.

    Styles are left out, also within the id; a movement of the cursor counts as a blank.
    """

    def __init__(self, tool: Tool) -> None:
        self.id: str | None = None
        self._pattern = re.compile(tool.id_pattern) if tool.id_pattern else None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._pending = ""
        self._tail = ""

    def feed(self, data: bytes) -> str | None:
        """Take the next bytes of the output; return the id once it is known."""
        if self._pattern is None or self.id is not None:
            return self.id
        pieces, self._pending = split(self._pending + self._decoder.decode(data))
        pieces[1::2] = map(_blank, pieces[1::2])
        text = self._tail + "".join(pieces)
        for match in self._pattern.finditer(text):
            if len(match[0]) <= MATCH_LIMIT and _SOUND.fullmatch(match[1] or ""):
                self.id = match[1]
                break
        self._tail = text[-MATCH_LIMIT:]
        return self.id


@lru_cache(maxsize=1024)
def _blank(control: str) -> str:
    """What an escape sequence or a run of controls means for the words around it."""
    if control[0] == "\r":
        return control.replace("\r", " ")
    csi = parse_csi(control)
    return " " if csi is not None and csi[2] in _MOVES else ""


def remembered(directory: Path) -> str | None:
    """The id that was kept in a session's directory; None if there is none, or it cannot be read."""
    try:
        entry = json.loads(read_bounded(os.path.join(directory, FILE), FILE_BYTES))
        id = entry["id"]
        return id if isinstance(id, str) and _SOUND.fullmatch(id) else None
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return None


def remember(directory: Path, id: str) -> None:
    """Keep the id of the session's conversation, in place of any before.

    Raises:
        UsageMistake: no conversation can have that id.
        StoreError: it could not be written.
    """
    if not _SOUND.fullmatch(id):
        raise UsageMistake(
            f"{id[:40]!r} is no id of a conversation: it has 1 to 200 printable characters, no dash first"
        )
    path = os.path.join(directory, FILE)
    with translated(path):
        write_atomic(path, json.dumps({"id": id}).encode() + b"\n")


def learn(directory: Path, tool: Tool, log: LogReader, limit: int | None = None) -> str | None:
    """The id of a session's conversation: the one that was kept, else the first in its log, which is then kept.

    ``limit``: bytes of the log that are looked at, from its beginning; default: all.
    """
    if (known := remembered(directory)) is not None or not tool.id_pattern:
        return known
    capture = IdCapture(tool)
    begin = log.start()
    for _, data in log.read(begin, log.end() if limit is None else min(log.end(), begin + limit)):
        if (found := capture.feed(data)) is not None:
            with contextlib.suppress(StoreError):  # a full disk: it is in the log still
                remember(directory, found)
            return found
    return None
