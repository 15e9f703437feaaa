"""The busy indicator of the page, which goes on showing that a cell runs while messages of widgets are handled."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

RESTATE_AFTER = (0.03, 0.5)
"""Seconds between our part of a message's handling and the word that a cell still runs, said twice: the kernel says in
between that the handling is over, at once unless the machine is busy. Both are counted from what came before."""


class RunningCell:
    """Knows which cell runs, and tells the page so again after each message that is handled meanwhile.

    The page takes the end of the handling for the end of the cell.
    """

    def __init__(self, ip: Any) -> None:
        self._kernel: Any = getattr(ip, "kernel", None)
        self._events = ip.events
        self._lock = threading.Lock()
        self._request: dict[str, Any] | None = None
        self._depth = 0  # a cell may run others
        self._timer: threading.Timer | None = None
        self._left = 0  # how often the page is still to be told
        if self._kernel is not None:
            self._events.register("pre_run_cell", self._began)
            self._events.register("post_run_cell", self._ended)
            self._began(None)  # the cell that made us runs

    def close(self) -> None:
        """Watch no more."""
        for event, callback in (("pre_run_cell", self._began), ("post_run_cell", self._ended)):
            with contextlib.suppress(ValueError):
                self._events.unregister(event, callback)
        with self._lock:
            self._request = None
            self._restate_later(0)

    def _began(self, _info: object) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        with self._lock, contextlib.suppress(Exception):
            request = dict(self._kernel.get_parent("shell"))
            if request["header"]["msg_type"] != "execute_request":  # a widget's button, say
                return
            same = self._request is not None and self._request["header"]["msg_id"] == request["header"]["msg_id"]
            self._request, self._depth = request, self._depth + 1 if same else 1

    def _ended(self, _result: object) -> None:
        if threading.current_thread() is threading.main_thread():
            with self._lock:
                self._depth -= 1
                if self._depth <= 0:
                    self._request = None

    def restate(self, *, at_once: bool = False) -> None:
        """A message was handled: say again, in a moment, that the kernel is busy, if a cell runs.

        ``at_once``: now as well, so that nobody sees the indicator change where the page is quick.
        """
        with self._lock:
            if self._request is None:
                return
            if at_once:
                self._say()
            if self._left > 1:  # soon; the page may take in the end of this message only after that
                self._left = len(RESTATE_AFTER) + 1
            else:
                self._restate_later(len(RESTATE_AFTER))

    def _restate_later(self, left: int) -> None:
        self._left = left
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if left:
            self._timer = threading.Timer(RESTATE_AFTER[-min(left, len(RESTATE_AFTER))], self._restate_now)
            self._timer.daemon = True
            self._timer.start()

    def _restate_now(self) -> None:
        with self._lock, contextlib.suppress(Exception):
            if threading.current_thread() is not self._timer:
                return  # put off
            self._timer = None
            self._restate_later(self._left - 1 if self._request is not None else 0)
            if self._request is not None:  # under the lock, so that it comes before the cell's own end
                self._say()

    def _say(self) -> None:
        kernel, busy = self._kernel, {"execution_state": "busy"}
        kernel.session.send(kernel.iopub_socket, "status", busy, parent=self._request, ident=kernel._topic("status"))
