"""The sessions of one shown table: measured once a second while somebody looks, and what people do to them there.

From a view: ``seen`` (view, seen), ``focus`` (view, on), ``bye`` (view); ``stop`` (id, now), ``restart`` (id),
``remove`` (id), ``show`` (view, id). To views: ``rows`` (at, rows), ``notice`` (text), ``shown`` (view, id, model).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from session_magics.display.channel import Port
from session_magics.display.facts import cut, state_word
from session_magics.errors import SessionError
from session_magics.listing import Observer, Row, table
from session_magics.model import describe
from session_magics.registry import Registry
from session_magics.session import Session

EVERY = 1.0
"""Seconds between two looks at the sessions: half a hundred of them take some 0.05 s."""
SILENCE = 15.0
"""Seconds after which a view that has not said that it is seen is taken to be gone; a view says so every 5 s."""
STILL_EVERY = 10.0
"""Seconds between two renewals of the text in the notebook: each makes the page replace the output."""


class TableFace(Port, Protocol):
    """The widget model that shows the table."""

    def renew(self, still: str) -> None:
        """Put this text into the notebook, for whatever shows it without the kernel."""

    def open_terminal(self, session: Session) -> str:
        """Make a live terminal of a session; the id of its widget model."""


class Roster:
    """One shown table. ``receive`` is for the router's thread and does not block; the rest is done by its own."""

    def __init__(
        self, registry: Registry, labels: Mapping[str, str], face: TableFace, shown: Sequence[Row] = ()
    ) -> None:
        """Serve the sessions with these labels; ``shown`` are the rows whose text is in the notebook."""
        self._registry, self._labels, self._face = registry, labels, face
        self._observer = Observer()
        self._lock = threading.Lock()
        self._nudge = threading.Event()
        self._seen: dict[str, float] = {}
        self._focused: set[str] = set()
        self._busy: dict[str, str] = {}
        self._names: Mapping[str, str] = {}
        self._thread: threading.Thread | None = None
        self._kept = _states(shown)
        self._renewed = time.monotonic()
        self._closed = False

    def receive(self, content: Mapping[str, Any]) -> None:
        """A message of a view."""
        kind, view, id = content.get("t"), str(content.get("view", "")), str(content.get("id", ""))
        if kind == "seen" and content["seen"]:
            self._see(view)
        elif kind in ("seen", "bye"):
            with self._lock:
                self._seen.pop(view, None)
                self._focused.discard(view)
        elif kind == "focus":
            (self._focused.add if content["on"] else self._focused.discard)(view)
        elif kind == "stop":
            now = bool(content.get("now"))
            self._apart(id, "stopping", lambda name: self._registry.get(name).stop(now=now))
        elif kind == "restart":
            self._apart(id, "restarting", self._registry.restart)
        elif kind == "remove":
            self._apart(id, "", self._registry.remove)
        elif kind == "show":
            self._show(id, view)

    def _see(self, view: str) -> None:
        with self._lock:
            new = view not in self._seen
            self._seen[view] = time.monotonic()
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._watch, name="session table", daemon=True)
                self._thread.start()
            elif new:
                self._nudge.set()

    # ---- what people do

    def _show(self, id: str, view: str) -> None:
        try:
            session = self._registry.get(self._names.get(id, id))
            self._face.post({"t": "shown", "view": view, "id": id, "model": self._face.open_terminal(session)})
        except SessionError as error:
            self._face.post({"t": "notice", "view": view, "id": id, "text": str(error)})

    def _apart(self, id: str, doing: str, action: Callable[[str], object]) -> None:
        """In a thread of its own: it may take seconds."""

        def act() -> None:
            try:
                action(self._names.get(id, id))
            except SessionError as error:
                self._tell(str(error))
            finally:
                if self._busy.get(id) == doing:
                    del self._busy[id]
                self._nudge.set()

        if doing:
            self._busy[id] = doing
        self._nudge.set()
        threading.Thread(target=act, name=f"session {self._names.get(id, id)}", daemon=True).start()

    def _tell(self, line: str) -> None:
        self._face.post({"t": "notice", "text": line})

    # ---- what they see

    def _watch(self) -> None:
        while self._watched():
            self._nudge.clear()
            try:
                self._look()
            except (SessionError, OSError) as error:  # the root is not readable now
                self._tell(str(error))
            self._nudge.wait(EVERY)

    def _watched(self) -> bool:
        """Whether somebody looks; if not, the thread is over."""
        with self._lock:
            oldest = time.monotonic() - SILENCE
            self._seen = {view: heard for view, heard in self._seen.items() if heard > oldest}
            if self._seen and not self._closed:
                return True
            self._thread = None
            return False

    def _look(self) -> None:
        rows = self._observer.rows(self._registry.infos(self._labels))
        self._names = {_id(row): row.info.name for row in rows}
        self._face.post({"t": "rows", "at": time.time(), "rows": [self._content(row) for row in rows]})
        states = _states(rows)
        now = time.monotonic()
        if states != self._kept and not self._focused and now - self._renewed > STILL_EVERY:
            self._kept, self._renewed = states, now
            self._face.renew(table(rows))

    def _content(self, row: Row) -> dict[str, object]:
        info, usage = row.info, row.usage
        return {
            "id": _id(row),
            "name": info.name,
            "state": state_word(info.state),
            "text": describe(info.state),
            "doing": row.doing,
            "program": cut(row.program),
            "directory": row.directory,
            "since": row.info.since,
            "until": row.until,
            "code": getattr(info.state, "code", None),
            "pid": info.pid,
            "cpu": round(usage.cpu, 1) if usage is not None else None,
            "memory": usage.memory if usage is not None else None,
            "ports": list(usage.ports) if usage is not None else [],
            "last": cut(row.last_line),
            "labels": dict(info.labels),
            "busy": self._busy.get(_id(row), ""),
        }

    def close(self) -> None:
        """Look no more."""
        self._closed = True
        self._nudge.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(1.0)


def _states(rows: Sequence[Row]) -> Sequence[tuple[str, str]]:
    return [(row.info.name, describe(row.info.state)) for row in rows]


def _id(row: Row) -> str:
    return row.info.id or row.info.name  # a damaged name has no id
