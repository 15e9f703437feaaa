"""The live terminal of a session in a notebook: an anywidget model, and the text that stands for it elsewhere.

Imported when the first one is shown: the widget libraries take a tenth of a second to import.
"""

from __future__ import annotations

import functools
import gzip
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anywidget
from IPython.display import display
from traitlets import Bool, Dict, Int, Unicode

from session_magics.display.feed import Feed
from session_magics.display.routing import Router
from session_magics.display.still import still
from session_magics.display.theatre import Theatre
from session_magics.session import Session
from session_magics.text import strip_styles

STATIC = Path(__file__).parent.parent / "static"
ROWS = 20
"""Rows that a terminal shows when not told."""
CELL_ROWS = 14
"""Rows of the terminal of a cell, which gives way to as many lines as there are."""
VIEW_TYPE = "application/vnd.jupyter.widget-view+json"
MARK = "session_magics"
"""Key of an output's metadata by which ours are known again."""


@functools.cache
def packed() -> tuple[str, bytes]:
    """The code of our views, packed, and a name that changes with it."""
    code = (STATIC / "page.js").read_bytes()
    return hashlib.sha256(code).hexdigest()[:12], gzip.compress(code, mtime=0)


@functools.cache
def stub() -> str:
    """What each widget carries, which gets the bundle."""
    return (STATIC / "stub.js").read_text("utf-8")


class TerminalModel(anywidget.AnyWidget):
    """One terminal, in any number of pages. Facts are traits; the output comes as messages (see ``channel``)."""

    bundle = Unicode().tag(sync=True)
    facts = Dict().tag(sync=True)
    read_only = Bool(False).tag(sync=True)
    rows = Int(ROWS).tag(sync=True)
    kind = Unicode("session").tag(sync=True)
    """"session", or "cell": then it is the command of one cell, which can be interrupted and not restarted."""
    snapshot = Unicode().tag(sync=True)

    def __init__(
        self, feed: Feed, router: Router, *, read_only: bool = False, rows: int = ROWS, kind: str = "session"
    ) -> None:
        self._feed, self._router, self._opened = feed, router, False
        self.answered = False
        """Whether a page has this model."""
        self._displays: list[tuple[str, dict[str, Any]]] = []
        feed_facts = feed.attach(self)
        self._esm = stub()
        super().__init__(bundle=packed()[0], facts=dict(feed_facts), read_only=read_only, rows=rows, kind=kind)
        self._opened = True
        router.adopt(self.comm, self._take)

    # ---- messages

    def _send(self, msg: Mapping[str, Any], buffers: Sequence[Any] | None = None) -> None:
        """What ipywidgets sends through; from any thread, which its own way does not allow."""
        if self.comm is not None and self._opened:
            self._router.publish(self.comm, msg, buffers or ())

    def post(self, content: Mapping[str, Any], buffers: Sequence[bytes] = ()) -> None:
        """See Port."""
        self._send({"method": "custom", "content": content}, buffers)

    def _take(self, content: Mapping[str, Any], _buffers: Sequence[Any]) -> None:
        kind = content.get("t")
        self.answered = True
        if kind == "bundle":
            name, code = packed()
            self.post({"t": "bundle", "hash": name}, [code])
        elif kind in ("hello", "nudge"):
            pass  # that it came was all that mattered
        elif not (self.read_only and kind in ("in", "interrupt", "stop", "restart", "resize")):
            self._feed.receive(self, content)

    def show(self, facts: Mapping[str, object]) -> None:
        """See Face."""
        self.facts = dict(facts)

    # ---- in the notebook

    def renew(self, still: str, facts: Mapping[str, object]) -> None:
        """See Face."""
        self.snapshot = strip_styles(still)
        kernel = self._router.kernel
        if kernel is None:
            return
        for display_id, parent in list(self._displays):
            content = {
                "data": self._data(still, facts),
                "metadata": self._metadata(),
                "transient": {"display_id": display_id},
            }
            kernel.session.send(
                kernel.iopub_socket, "update_display_data", content, parent=parent, ident=kernel._topic("display_data")
            )

    def _data(self, still: str, facts: Mapping[str, object]) -> dict[str, Any]:
        view = {"version_major": 2, "version_minor": 0, "model_id": self.model_id}
        title = f"[{facts['name']}] {facts['command'] or facts['program']} · {facts['text']}"
        return {"text/plain": f"{title}\n{still}" if still else title, VIEW_TYPE: view}

    def _metadata(self) -> dict[str, Any]:
        return {MARK: {"session": str(self.facts["name"])}}

    def present(self, still: str) -> None:
        """Display it in the cell that runs."""
        self.snapshot = strip_styles(still)
        kernel = self._router.kernel
        parent = dict(kernel.get_parent("shell")) if kernel is not None else {}
        shown = display(self._data(still, self.facts), raw=True, metadata=self._metadata(), display_id=True)
        if shown is not None:
            self._displays.append((shown.display_id, parent))

    def close(self) -> None:
        """Take it out of every page; idempotent, as ipywidgets closes once more when the object goes."""
        if self.comm is not None:
            self._router.forget(self.comm.comm_id)
        self._feed.detach(self)
        super().close()


class Terminal:
    """A session's terminal as the value of a cell; displayed, it is live."""

    def __init__(self, theatre: Theatre, session: Session, *, read_only: bool = False, rows: int = ROWS) -> None:
        self._theatre, self.session = theatre, session
        self._read_only, self._rows = read_only, rows
        self._model: TerminalModel | None = None

    def __repr__(self) -> str:
        return f"<Terminal of {self.session!r}>"

    def _ipython_display_(self) -> None:
        if self._model is None:
            feed = self._theatre.feed(self.session)
            self._model = TerminalModel(feed, self._theatre.router, read_only=self._read_only, rows=self._rows)
        self._model.present(still(self.session.directory, self.session.info().size))


class CellTerminal:
    """A Screen: the terminal of one cell, while its command runs. All calls come from the cell's thread."""

    def __init__(self, theatre: Theatre, session: Session, begin: int) -> None:
        self._theatre = theatre
        self._feed = theatre.cell_feed(session, begin)
        self._model = TerminalModel(self._feed, theatre.router, rows=CELL_ROWS, kind="cell")

    @property
    def answered(self) -> bool:
        """See Screen."""
        if self._model.answered:
            self._theatre.has_page = True
        return self._model.answered

    def appear(self) -> None:
        """See Screen."""
        self._model.present("")

    def vanish(self) -> None:
        """See Screen. A page that has not answered by now has no terminals."""
        if not self.answered and self._theatre.has_page is None:
            self._theatre.has_page = False
        self._model.close()
        self._theatre.end(self._feed)
