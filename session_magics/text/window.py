"""Looking for a pattern in output that comes in pieces."""

from __future__ import annotations

import re

from session_magics import text
from session_magics.errors import UsageMistake

WINDOW_BYTES = 16 * 1024
"""Output kept behind what has been looked at: a match that is longer and comes in several pieces is not found."""


def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern that a user gave; raises UsageMistake if it is no regular expression, or matches whatever comes."""
    try:
        found = re.compile(pattern, re.M)
    except (re.error, OverflowError, RecursionError) as error:  # the last two: numbers too large, nested too deeply
        raise UsageMistake(f"{pattern[:60]!r} is no regular expression: {error}") from None
    if found.search("") and found.search("x"):  # not ^$, which waits for an empty line
        hint = f"write {re.escape(pattern)} for these very characters" if pattern else "say what to wait for"
        raise UsageMistake(f"{pattern[:60]!r} matches any output, even none: {hint}")
    return found


class Window:
    """The end of a stream of terminal bytes, as plain text to search in."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern
        self._kept = b""

    def feed(self, data: bytes) -> str | None:
        """Add bytes; the first match in what is known now, None if there is none yet."""
        whole = self._kept + data
        found = self._pattern.search(text.plain(whole))
        if found is not None:
            return found[0]
        self._kept = _end(whole)
        return None


def _end(data: bytes) -> bytes:
    """About the last WINDOW_BYTES, from the beginning of a line if one is near: ``^`` should match nowhere else."""
    if len(data) <= WINDOW_BYTES:
        return data
    cut = len(data) - WINDOW_BYTES
    newline = data.find(b"\n", cut - 1, cut + WINDOW_BYTES // 2)
    return data[cut:] if newline < 0 else data[newline + 1 :]
