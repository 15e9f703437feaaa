"""One shown session: its views, its output, what is known about it."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from session_magics.backends import Link
from session_magics.display import facts
from session_magics.display.channel import Channel, Port
from session_magics.display.hands import Hands
from session_magics.display.still import still
from session_magics.errors import SessionError
from session_magics.listing import AgentWatch
from session_magics.model import BackingOff, Running, check_size
from session_magics.session import Session

TYPING = 1.0
"""Seconds after a key for which its echo may still come."""
PROBE_QUIET = 0.3
"""Seconds without output before it is asked whether the program waits for input."""
PROBE_SLOW_AFTER = 5.0
"""Seconds without output after which it is asked more seldom: an idle terminal should cost nothing."""
PROBE_SLOW = 2.0
STILL_QUIET = 2.0
"""Seconds without output before the text in the notebook is renewed."""
STILL_EVERY = 10.0
"""Seconds between two renewals: each makes the page replace the output."""


class Face(Port, Protocol):
    """A widget model that shows the session."""

    read_only: bool

    def show(self, facts: Mapping[str, object]) -> None:
        """Show these facts."""

    def renew(self, still: str, facts: Mapping[str, object]) -> None:
        """Put this text into the notebook, for whatever shows it without the kernel."""


class Feed:
    """Everything about one session that is shown. ``look`` is for one thread, ``step`` for another (the sender's)."""

    def __init__(
        self, session: Session, restart: Callable[[], object], wake: Callable[[], None], *, begin: int = 0
    ) -> None:
        """Show the session from the log offset ``begin`` on."""
        self.session = session
        self.channel = Channel(session.directory, wake, begin)
        self._hands = Hands(session, self.tell, restart)
        self._wake = wake
        self._faces: list[Face] = []
        self._lock = threading.Lock()
        self._link: Link | None = None  # the sender's
        self._prober: Link | None = None
        self._armed = False
        self._agents = AgentWatch()
        self._facts = facts.read(session, self._agents)
        self._waiting = ""
        self._typed = self._probed = self._moved = self._renewed = 0.0
        self._seen = self._kept = -1
        self._owed = False
        self._focused: set[str] = set()
        self._was_running = self._facts["state"] in ("running", "backing-off")

    def attach(self, face: Face) -> Mapping[str, object]:
        """Serve a model too; the facts it begins with."""
        with self._lock:
            self._faces.append(face)
        return self._facts

    def displayed(self) -> None:
        """A model is in the notebook now: what ended meanwhile has had no text there to renew."""
        self._owed = True
        self._wake()

    def detach(self, face: Face) -> None:
        """Serve it no more; idempotent."""
        with self._lock:
            self._faces = [one for one in self._faces if one is not face]

    def tell(self, line: str) -> None:
        """Show a line of ours in the title bars."""
        for face in self._faces:
            face.post({"t": "notice", "text": line})

    def receive(self, face: Face, content: Mapping[str, Any]) -> None:
        """A message of a view. Called in the router's thread; does not block."""
        kind, view = content.get("t"), str(content.get("view", ""))
        if kind == "in":
            self._typed = time.monotonic()
            self.channel.own(view)
            self._hands.type(content["b"].encode("latin-1") if "b" in content else content["d"].encode())
        elif kind == "resize":
            if view == self.channel.owner:
                self._hands.resize(*check_size((int(content["rows"]), int(content["columns"]))))
        elif kind == "interrupt":
            self._hands.interrupt()
        elif kind == "stop":
            self._hands.stop(now=bool(content.get("now")))
        elif kind == "restart":
            self._hands.restart()
        elif kind == "focus":
            self._focus(view, bool(content["on"]), touches=not face.read_only)
        else:
            if kind == "bye":
                self._focused.discard(view)
            self.channel.receive(face, content, time.monotonic(), touches=not face.read_only)

    def _focus(self, view: str, on: bool, *, touches: bool) -> None:
        if not on:
            self._focused.discard(view)
            return
        self._focused.add(view)
        if touches:
            self.channel.own(view)
            self._wake()

    # ---- the sender's side

    def fileno(self) -> int | None:
        """See Source."""
        with self._lock:
            return self._link.fileno() if self._link is not None else None

    def news(self) -> None:
        """See Source."""
        with self._lock:
            link = self._link
        if link is None:
            return
        self._armed = False
        try:
            while link.receive(0):
                pass
        except SessionError:
            with self._lock:
                self._link = None
            link.close()

    def urgent(self, now: float) -> bool:
        """See Source."""
        return now - self._typed < TYPING

    def step(self, now: float) -> tuple[bool, float | None]:
        """See Source."""
        result = self.channel.step(now)
        if self.channel.drained >= 0 and not self._armed and (link := self._link) is not None:
            with contextlib.suppress(SessionError):
                link.watch(self.channel.drained, 1 << 62)
                self._armed = True
        return result

    # ---- the attendant's side

    def look(self, now: float) -> None:
        """See how the session is; called several times a second."""
        watched = self.channel.watched(now)
        running = isinstance(self.session.state(), Running | BackingOff)
        end = self.channel.size()
        if end != self._seen:
            self._seen, self._moved, self._waiting = end, now, ""
        if running and watched:
            self._connect()
            self._probe(now)
        elif self._prober is not None:
            self._hang_up()
        if watched or running != self._was_running:
            self._update()
        if self._still_due(now, running, watched):
            self._renew(now)
        self._was_running = running

    def _connect(self) -> None:
        if self._link is None:
            with contextlib.suppress(SessionError):
                link = self.session.connect()
                with self._lock:
                    self._link, self._armed = link, False
                self._wake()

    def _probe(self, now: float) -> None:
        quiet = now - self._moved
        if quiet < PROBE_QUIET or (quiet > PROBE_SLOW_AFTER and now - self._probed < PROBE_SLOW):
            return
        self._probed = now
        try:
            self._prober = self._prober or self.session.connect()
            answer = self._prober.probe()
        except SessionError:
            self._hang_up()
            return
        if answer.kind != "read":
            self._waiting = ""
        else:
            self._waiting = "input" if answer.echo or not answer.canonical else "secret"

    def _update(self) -> None:
        if os.path.isdir(self.session.directory):
            found = facts.read(self.session, self._agents, owner=self.channel.owner, waiting=self._waiting)
        else:
            found = facts.removed(self._facts)
        if found != self._facts:
            self._facts = found
            for face in list(self._faces):
                face.show(found)

    def _still_due(self, now: float, running: bool, watched: bool) -> bool:
        owed, self._owed = self._owed, False
        if not running and (self._was_running or owed):
            return True
        if self._kept == self._seen or not running or not watched or self._focused:
            return False
        return now - self._moved > STILL_QUIET and now - self._renewed > STILL_EVERY

    def _renew(self, now: float) -> None:
        self._renewed, self._kept = now, self._seen
        self._update()
        shown = still(self.session.directory, self.session.info().size)
        for face in list(self._faces):
            face.renew(shown, self._facts)

    def _hang_up(self) -> None:
        prober, self._prober = self._prober, None
        if prober is not None:
            prober.close()

    def close(self) -> None:
        """Give everything back, once neither sender nor attendant come any more."""
        self._hang_up()
        self.channel.close()
        with self._lock:
            link, self._link = self._link, None
        if link is not None:
            link.close()
