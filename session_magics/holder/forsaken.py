"""Ending a session to whose holder nobody has come for a while, where whoever it belongs to would be connected."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from session_magics.holder.loop import Loop
    from session_magics.holder.server import Server


class Forsaken:
    """Calls ``end`` once when there has been no client for so many seconds, told within a quarter more."""

    def __init__(self, loop: Loop, server: Server, limit: float, end: Callable[[], None]) -> None:
        self._loop, self._server, self._limit, self._end = loop, server, limit, end
        self._seen = time.monotonic()
        self._look()

    def _look(self) -> None:
        now = time.monotonic()
        self._seen = now if self._server.clients else self._seen
        if now - self._seen >= self._limit:
            self._end()
        else:
            self._loop.later(self._limit / 4, self._look)
