"""What a player needs of a cast, wherever it plays."""

from __future__ import annotations

import os.path
from dataclasses import dataclass

from session_magics.recording.formats import Cast

TITLE_LENGTH = 200
"""Characters of a title that are shown, in one line."""


@dataclass(frozen=True)
class Settings:
    """How it is played."""

    speed: float = 1.0
    start_at: float = 0.0
    """Seconds of the cast."""
    idle_limit: float | None = None
    """Seconds that nothing happens at most; None: as long as it was."""
    autoplay: bool = True

    @classmethod
    def of(
        cls, cast: Cast, speed: float | None, start_at: float | None, idle_limit: float | None, *, autoplay: bool | None
    ) -> Settings:
        """Those given, and what the cast says itself; None: not given. An idle limit of 0 is none."""
        limit = cast.header.idle_limit if idle_limit is None else idle_limit
        return cls(speed or 1.0, start_at or 0.0, limit or None, autoplay is not False)


def title_of(cast: Cast, path: str) -> str:
    """What a file is called, by itself or by its name, without what could command a terminal or break a line."""
    title = cast.header.title or os.path.basename(path)
    return "".join(one if one.isprintable() else "�" for one in title[:TITLE_LENGTH])


def clock(seconds: float) -> str:
    """A duration as players show it: 1:02, 1:00:02."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def last_screen(cast: Cast) -> str:
    """The screen at the end, with SGR sequences."""
    from session_magics.text.screen import SNAPSHOT_BYTES, picture  # the emulator is slow to import

    pieces, length = [], 0
    for event in reversed(cast.events):
        if event.code == "o":
            pieces.append(event.data.encode("utf-8", "replace"))
            length += len(pieces[-1])
            if length > SNAPSHOT_BYTES:
                break
    shown = picture(b"".join(reversed(pieces)), cast.final_size, behind=False, returns=False)
    return "\n".join(shown.lines).rstrip("\n")


def described(cast: Cast, title: str) -> str:
    """What it is, in one line."""
    rows, columns = cast.header.size
    return f"[{title}] recording · {clock(cast.duration)} · {columns}×{rows}"


def still(cast: Cast, title: str) -> str:
    """The text that stands for it where nothing plays it."""
    screen = last_screen(cast)
    return f"{described(cast, title)}\n{screen}" if screen else described(cast, title)
