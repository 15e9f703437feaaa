"""Interrupts of a kernel: they end a cell, and never the kernel's own work around it."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


class Gate:
    """A handler of SIGINT that raises KeyboardInterrupt while a cell runs, and keeps one that comes just before."""

    def __init__(self) -> None:
        self._open = self._waiting = False
        self._before: Any = signal.SIG_IGN

    def note(self, *_: object) -> None:
        """Fit to be a signal handler."""
        if self._open:
            raise KeyboardInterrupt
        self._waiting = True

    def enter(self) -> None:
        """A request begins. ValueError in another thread than the main one, where no signal is handled."""
        self._before = signal.signal(signal.SIGINT, self.note)
        self._waiting = False

    def leave(self) -> None:
        """The request has ended."""
        signal.signal(signal.SIGINT, self._before)

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """The time in which a cell may be interrupted; what came since the request began counts."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        try:
            self._open = True
            if self._waiting:
                raise KeyboardInterrupt
            yield
        finally:
            self._open = False
