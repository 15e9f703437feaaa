"""Waiting for what happens in a session: more output, another event, the end. One connection, no polling."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from session_magics.backends import Link
from session_magics.errors import SessionError, SessionNotRunning, SessionUnresponsive
from session_magics.model import BackingOff, Exited, Running, State, Unknown

NO_OFFSET = 1 << 62
"""A log offset that is never passed, for those who do not wait for output."""
STATE_CHECK = 1.0
"""Seconds between looks at the directory while a holder is silent; its end closes the connection, so this is only for
a holder whose socket something else keeps open."""
RECONNECT = 0.02
"""Seconds between tries to reach a holder that lives, by its lock, and takes no connection: it comes up or goes."""


class News:
    """Says when something has happened. For one thread; ``close`` it, or use it in a ``with`` statement.

    It outlives holders: where one has gone and another came up for the same session, it connects anew.

    Args:
        connect: gives a link to the holder, which is then owned here.
        state: reads the session's state.
    """

    def __init__(self, connect: Callable[[], Link], state: Callable[[], State]) -> None:
        self._connect, self._state = connect, state
        self._link: Link | None = None
        self._index = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def running(self) -> bool:
        """Whether the program runs or will do so again by itself. What it wrote before an end is in the log then."""
        state = self._state()
        if isinstance(state, Exited) and state.background and self._link is not None:
            # Between two generations of a restart the end is on record and the new start is not yet. A holder does
            # both in one go, so once it has answered anything, the record says what came of it.
            with contextlib.suppress(SessionError):
                self._link.probe()
            state = self._state()
        return isinstance(state, Running | BackingOff)

    def over(self) -> bool:
        """Whether the program has ended for good; of a state that cannot be read that is not said."""
        return not self.running() and not isinstance(self._state(), Unknown)

    def wait(self, position: int, deadline: float | None) -> bool:
        """Wait until the log is longer than ``position`` or anything else may have happened.

        Returns False once ``deadline`` (monotonic; None: never) has passed. A holder that is gone, or that does not
        answer, counts as something that happened: the state tells.
        """
        left = STATE_CHECK if deadline is None else min(STATE_CHECK, deadline - time.monotonic())
        if left <= 0:
            return False
        try:
            self.link().watch(position, self._index)
            self.take(left)
        except SessionNotRunning:
            self.close()
            time.sleep(min(RECONNECT, left))
        except SessionUnresponsive:  # it took a second to find out, so there is no need to pause
            self.close()
        return True

    # For whoever waits for other things as well, by the link's descriptor.

    def link(self) -> Link:
        """The connection; it stays this object's. Raises SessionNotRunning, SessionUnresponsive: ``close`` then."""
        if self._link is None:
            self._link, self._index = self._connect(), 0
        return self._link

    def watch(self, position: int) -> None:
        """Have the link become readable when ``wait`` would return. Raises as ``link`` does."""
        self.link().watch(position, self._index)

    def take(self, timeout: float = 0) -> None:
        """Take in what has come by the link, waiting up to ``timeout`` seconds. Raises as ``link`` does."""
        link = self.link()
        if link.receive(timeout):
            self._index = max(self._index, link.index_size)

    def close(self) -> None:
        """Hang up; idempotent."""
        link, self._link = self._link, None
        if link is not None:
            link.close()
