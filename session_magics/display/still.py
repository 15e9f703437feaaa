"""The static text of a session, for whatever shows a notebook without its kernel."""

from __future__ import annotations

import re
from pathlib import Path

from session_magics import text
from session_magics.log import LogReader
from session_magics.text.screen import SNAPSHOT_BYTES, styled

LINES = 24
"""Lines of a session's text that a notebook keeps."""
LONGEST = 4000
"""Characters of it: a picture of a terminal, not its log."""
_ALTERNATE = re.compile(rb"\x1b\[\?(?:\d+;)*(?:47|1047|1049)(?:;\d+)*([hl])")


def still(directory: Path, size: tuple[int, int]) -> str:
    """The last lines with their colours; of a program that fills the screen, the screen."""
    with LogReader(directory) as log:
        end = log.end()
        data = log.bytes(max(0, end - SNAPSHOT_BYTES), end)
    switches = _ALTERNATE.findall(data)
    if switches and switches[-1] == b"h":
        return shortened(styled(data, size))
    model = text.LineModel(size[0])
    model.feed(data)
    model.finish()
    return shortened(model.text())


def shortened(shown: str) -> str:
    """The last lines of a text, as many as a notebook keeps."""
    lines = shown.rstrip("\n").split("\n")[-LINES:]
    while len(lines) > 1 and sum(map(len, lines)) > LONGEST:
        del lines[0]
    return "\n".join(line if len(line) <= LONGEST else text.strip_styles(line)[-LONGEST:] for line in lines)
