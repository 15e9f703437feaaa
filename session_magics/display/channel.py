"""The output of one session on its way to the views that show it, at each view's own pace.

Bytes have their offsets in the log as numbers. A view asks to be served from an offset (``sync``) and says how far it
has come (``ack``); nothing is queued for it, as what it lacks is in the log. So a lost message, a closed page or a
second page needs no care beyond that.

From a view: ``sync`` (view, from, s), ``ack`` and ``here`` (view, n), ``hidden``, ``bye``. To views: ``o`` (v: the
views meant, p: where they should be, o: offset of the first byte; s and reset: answers a sync) with the bytes as a
buffer, and ``head`` (v, o: where they should be by now).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from session_magics.log import LogReader

BUFFER_BYTES = 256 * 1024
"""Bytes in a message: a message costs every program on the way some 2 ms, whatever its size."""
WINDOW_BYTES = 1024 * 1024
"""Bytes that a view may be behind what it was sent: a third of a second for a browser."""
REPLAY_BYTES = 2 * 1024 * 1024
"""Bytes that a new view is shown of a long log: more lines than its scrollback has."""
SKIP_BYTES = 8 * 1024 * 1024
"""Bytes that a view may be behind when it asks to be served from where it is."""
OUTRUN_BYTES = 4 * 1024 * 1024
"""Bytes that a view may be behind the program before it sees glimpses alone: the rest would scroll away unseen, and to
draw it would take the processor from the program."""
GLIMPSE_BYTES = 32 * 1024
"""Bytes of a glimpse: more than fits on a screen."""
GLIMPSE_EVERY = 0.2
"""Seconds between two glimpses."""
CALM_BYTES = 1024 * 1024
"""Bytes between two glimpses below which a view can follow again: as much as a browser draws in that time."""
LINE_NEAR = 64 * 1024
"""Bytes in which the beginning of a line is looked for where a replay begins."""
SILENCE = 10.0
"""Seconds for which a view that owes an answer is served."""
FORGOTTEN = 120.0
"""Seconds after which a view that owes an answer is no view any more."""
PACE = 0.016
"""Seconds between two messages; the first after a pause goes at once."""
HIDDEN_PACE = 0.033
HEAD_EVERY = 1.0
"""Seconds after which a view that has not answered is told how far it should be."""


class Port(Protocol):
    """One widget model: what is sent reaches all its views in all pages."""

    def post(self, content: Mapping[str, Any], buffers: Sequence[bytes] = ()) -> None:
        """Send a message, from any thread."""


@dataclass
class View:
    """One terminal in one page."""

    id: str
    port: Port
    position: int
    """Offset of the next byte to be sent to it."""
    acked: int
    heard: float
    """When it last said something; monotonic, like all times here."""
    request: int | None = None
    """The sync that is not answered yet."""
    reset: bool = False
    """Whether the answer begins with an empty terminal."""
    hidden: bool = False
    touches: bool = True
    """Whether the person can do more than look; only then may the size follow it."""
    sent: float = 0.0
    outrun: bool = False
    """Whether the program is too fast for it, so that it has holes."""

    def served(self, now: float) -> bool:
        """Whether sending to it makes sense: it owes nothing, or has been heard lately."""
        return self.acked >= self.position or now - self.heard < SILENCE


class Channel:
    """Views of one session. ``step`` and ``close`` are for the sender's thread, all else for any."""

    def __init__(self, directory: Path, wake: Callable[[], None], begin: int = 0) -> None:
        """Show the log from ``begin`` on."""
        self._log, self._wake, self._begin = LogReader(directory), wake, begin
        self._lock = threading.Lock()
        self._views: dict[str, View] = {}
        self._next = 0.0
        self.drained = -1
        """Log offset that every view has been sent; -1 while one lacks something."""
        self.owner = ""
        """The view that the terminal's size follows: the one typed into last, or the newest."""

    # ---- from the views

    def receive(self, port: Port, content: Mapping[str, Any], now: float, *, touches: bool = True) -> None:
        """Take in a message of a view; ``touches``: whether the person can do more than look."""
        kind, id = content.get("t"), str(content.get("view", ""))
        with self._lock:
            view = self._views.get(id)
            if kind == "sync":
                self._sync(
                    View(id, port, begin := int(content["from"]), begin, now, int(content["s"]), touches=touches)
                )
            elif view is not None:
                view.heard = now
                if kind == "ack":
                    view.acked = max(view.acked, int(content["n"]))
                elif kind == "here":
                    self._here(view, int(content["n"]))
                elif kind == "hidden":
                    view.hidden = bool(content["hidden"])
                elif kind == "bye":
                    self._drop(id)
        self._wake()

    def _sync(self, view: View) -> None:
        known = self._views.get(view.id)
        if known is not None:
            view.hidden = known.hidden
            if known.outrun:
                view.position = -1  # what it has is full of holes
        elif view.touches:
            self.owner = view.id
        view.reset = view.position < 0
        self._views[view.id] = view

    @staticmethod
    def _here(view: View, position: int) -> None:
        if position < view.position and view.acked < view.position and view.request is None:
            view.position, view.acked = position, min(view.acked, position)

    def _drop(self, id: str) -> None:
        self._views.pop(id, None)
        if self.owner == id:
            self.owner = next((one.id for one in reversed(self._views.values()) if one.touches), "")

    def own(self, id: str) -> None:
        """Have the size follow this view."""
        with self._lock:
            if id in self._views:
                self.owner = id

    def size(self) -> int:
        """Log offset behind the newest byte."""
        with self._lock:
            return self._log.end()

    def watched(self, now: float) -> bool:
        """Whether anybody looks, as far as is known."""
        with self._lock:
            return any(view.served(now) for view in self._views.values())

    # ---- to the views

    def step(self, now: float) -> tuple[bool, float | None]:
        """Send what is due, one message at most: (whether one was sent, when to come again; None: when woken)."""
        with self._lock:
            for view in [one for one in self._views.values() if now - one.heard > FORGOTTEN and not one.served(now)]:
                self._drop(view.id)
            views = [view for view in self._views.values() if view.served(now)]
            self.drained = -1
            if not views:
                return False, None
            end = self._log.end()
            if all(view.position >= end and view.request is None for view in views):
                self.drained = end
            ready = [view for view in views if self._wants(view, end, now)]
            if ready and now < self._next:
                return False, self._next
            if ready:
                self._send(ready, end, now)
                return True, self._next
            return self._remind(views, now)

    def _wants(self, view: View, end: int, now: float) -> bool:
        if view.request is not None:
            return True
        if view.outrun or end - view.position > OUTRUN_BYTES:
            view.outrun = True
            return now >= self._glimpse_due(view)
        return view.position < end and view.position - view.acked < WINDOW_BYTES

    def _send(self, ready: list[View], end: int, now: float) -> None:
        # Who asked first; then who is furthest behind, together with all that are at the same place.
        first = min(ready, key=lambda view: (view.request is None, view.sent, view.position))
        if first.request is not None:
            self._answer(first, end)
            self._deliver([first], first.position, end, now)
        elif not first.outrun:
            alike = (view for view in ready if view.request is None and not view.outrun and view.port is first.port)
            self._deliver([view for view in alike if view.position == first.position], first.position, end, now)
        elif end - first.position < CALM_BYTES and first.acked >= first.position:
            # The program is slower again. A view that asks gets the output anew, without holes.
            first.sent, self._next = now, now + PACE
            first.port.post({"t": "head", "v": [first.id], "o": first.position + 1})
        else:
            self._deliver([first], max(first.position, self._line_near(end - GLIMPSE_BYTES)), end, now)

    def _deliver(self, group: list[View], start: int, end: int, now: float) -> None:
        """Send one message, from ``start`` on if the log still has it, to views that are at the same place."""
        first = group[0]
        offset, data = next(self._log.read(start, end), (max(start, end), b""))
        data = data[:BUFFER_BYTES]
        message: dict[str, Any] = {"t": "o", "v": [view.id for view in group], "p": first.position, "o": offset}
        if first.request is not None:
            message |= {"s": first.request, "reset": first.reset}
        for view in group:
            if view.request is None and view.acked >= view.position:
                view.heard = now  # from now on it owes an answer
            view.position, view.sent = offset + len(data), now
            view.request, view.reset = None, False
        self._next = now + (HIDDEN_PACE if all(view.hidden for view in group) else PACE)
        first.port.post(message, [data])

    def _answer(self, view: View, end: int) -> None:
        """Decide where a view begins that asked."""
        oldest = max(self._log.start(), min(self._begin, end))
        if view.position > end or view.position < max(oldest, end - SKIP_BYTES):
            view.reset = True
        if view.reset:
            view.position = view.acked = self._replay_start(oldest, end)

    def _replay_start(self, oldest: int, end: int) -> int:
        start = end - REPLAY_BYTES
        return oldest if start <= oldest else self._line_near(start)

    def _line_near(self, start: int) -> int:
        return start + self._log.bytes(start, start + LINE_NEAR).find(b"\n") + 1

    def _glimpse_due(self, view: View) -> float:
        return view.sent + (GLIMPSE_EVERY if view.acked >= view.position else HEAD_EVERY)

    def _remind(self, views: list[View], now: float) -> tuple[bool, float | None]:
        """Tell a view that has not answered for a while where it should be: it may have lost the last message."""
        owing = [view for view in views if view.acked < view.position]
        dues = [view.sent + HEAD_EVERY for view in owing] + [self._glimpse_due(view) for view in views if view.outrun]
        if not owing or now < min(view.sent for view in owing) + HEAD_EVERY:
            return False, min(dues, default=None)
        late = min(owing, key=lambda view: view.sent)
        late.sent = now
        late.port.post({"t": "head", "v": [late.id], "o": late.position})
        return True, now + PACE

    def close(self) -> None:
        """Give the log back."""
        self._log.close()
