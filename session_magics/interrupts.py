"""Ctrl-C while a cell runs: counted and noticed by a loop, instead of raised in the middle of it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator


class Interrupts:
    """Interrupts that have come. ``fileno`` becomes readable with the first one."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()
        os.set_blocking(self._read, False)
        os.set_blocking(self._write, False)

    def fileno(self) -> int:
        """Readable when there is something to ``take``."""
        return self._read

    def note(self, *_: object) -> None:
        """One more; fit to be a signal handler."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._write, b"!")

    def take(self) -> int:
        """How many have come since the last call."""
        try:
            return len(os.read(self._read, 512))
        except BlockingIOError:
            return 0

    def close(self) -> None:
        """Give up the descriptors."""
        os.close(self._read)
        os.close(self._write)


@contextlib.contextmanager
def noticed() -> Iterator[Interrupts]:
    """Collect SIGINT for the time of a block; elsewhere than in the main thread none ever comes.

    A block within a block goes on with the Interrupts of the outer one. What nobody has taken at the end of the
    outermost is raised as a KeyboardInterrupt there, so that none is ever swallowed.
    """
    handler = signal.getsignal(signal.SIGINT)
    outer = getattr(handler, "__self__", None)
    # None is a handler that was not set by Python, so it could not be put back
    main = threading.current_thread() is threading.main_thread() and handler is not None
    if main and isinstance(outer, Interrupts):
        yield outer
        return
    interrupts = Interrupts()
    try:
        if main:
            signal.signal(signal.SIGINT, interrupts.note)
        yield interrupts
    finally:
        if main:
            signal.signal(signal.SIGINT, handler)
        late = interrupts.take()
        interrupts.close()
    if late:
        raise KeyboardInterrupt
