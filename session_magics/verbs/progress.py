"""A line that tells how far something long is, for whoever waits for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self, TextIO

AFTER = 1.0
"""Seconds before anything is shown: most verbs are over by then."""
EVERY = 0.5
"""Seconds between two looks at how far it is."""
BAR = 20
"""Characters of a bar."""

Show = Callable[[str, bool], None]


class Progress:
    """Shows a line while a ``with`` block runs long, and once more at its end. Its text is made in a thread of its own.

    ``show`` puts the line in place of the one before, and is told whether it is the last (None: nobody sees it);
    ``text`` makes it from the seconds so far and from whether that is all.
    """

    def __init__(self, show: Show | None, text: Callable[[float, bool], str]) -> None:
        self._show, self._text = show, text
        self._over = threading.Event()
        self._shown = ""
        self._began = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="session progress", daemon=True)

    def __enter__(self) -> Self:
        if self._show is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._show is not None:
            self._thread.join()
            if self._shown:
                self._tell(True)

    def _run(self) -> None:
        wait = AFTER
        while not self._over.wait(wait):
            self._tell(False)
            wait = EVERY

    def _tell(self, over: bool) -> None:
        text = self._text(time.monotonic() - self._began, over)
        if self._show is not None and (over or text != self._shown):
            self._shown = text
            self._show(text, over)


def on_terminal(stream: TextIO) -> Show:
    """Shows the line on a terminal, over the one before."""

    def show(text: str, last: bool) -> None:
        print(f"\r\x1b[K{text}", end="\n" if last else "", file=stream, flush=True)

    return show


def bar(done: int, total: int) -> str:
    """So many of so many, as a bar."""
    filled = BAR * done // total if total else BAR
    return "━" * filled + "╌" * (BAR - filled)
