"""The live terminal of a session in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traitlets import Bool, Dict, Int

from session_magics.display.feed import Feed
from session_magics.display.routing import Router
from session_magics.display.still import still
from session_magics.display.theatre import Theatre
from session_magics.display.widget import LiveWidget
from session_magics.model import AGENT_SIZE, SessionInfo
from session_magics.session import Session

ROWS = 20
"""Rows that a terminal shows when not told."""
CELL_ROWS = 14
"""Rows of the terminal of a cell, which gives way to as many lines as there are."""
TOUCHES = frozenset(("in", "interrupt", "stop", "restart", "resize"))
"""Messages of somebody who does more than look."""


class TerminalModel(LiveWidget):
    """One terminal. Facts are traits; the output comes as messages (see ``channel``).

    Its ``kind`` is "session", or "cell": then it is the command of one cell, which can be interrupted and not
    restarted.
    """

    facts = Dict().tag(sync=True)
    read_only = Bool(False).tag(sync=True)
    rows = Int(ROWS).tag(sync=True)

    def __init__(
        self, feed: Feed, router: Router, *, read_only: bool = False, rows: int = ROWS, kind: str = "session"
    ) -> None:
        self._feed = feed
        super().__init__(router, facts=dict(feed.attach(self)), read_only=read_only, rows=rows, kind=kind)

    def received(self, content: Mapping[str, Any]) -> None:
        """See LiveWidget."""
        if not (self.read_only and content.get("t") in TOUCHES):
            self._feed.receive(self, content)

    def show(self, facts: Mapping[str, object]) -> None:
        """See Face."""
        self.facts = dict(facts)

    def renew(self, still: str, facts: Mapping[str, object]) -> None:
        """See Face."""
        self.replace_text(_titled(still, facts))

    def appear(self, still: str) -> None:
        """Display it in the cell that runs."""
        self.present(_titled(still, self.facts), {"session": str(self.facts["name"])})
        self._feed.displayed()

    def close(self) -> None:
        """See LiveWidget."""
        self._feed.detach(self)
        super().close()


def _titled(still: str, facts: Mapping[str, object]) -> str:
    title = f"[{facts['name']}] {facts['command'] or facts['program']} · {facts['text']}"
    title += f" · {facts['doing']}" if facts["doing"] else ""
    return f"{title}\n{still}" if still else title


def usual_rows(info: SessionInfo) -> int:
    """The height of a view that suits the program of a session."""
    return ROWS if info.tool is None else AGENT_SIZE[0]


class Terminal:
    """A session's terminal as the value of a cell; displayed, it is live."""

    def __init__(self, theatre: Theatre, session: Session, *, read_only: bool = False, rows: int | None = None) -> None:
        """``rows`` is the height of the view; None: what suits the program."""
        self._theatre, self.session = theatre, session
        self._read_only, self._rows = read_only, rows
        self._model: TerminalModel | None = None

    def __repr__(self) -> str:
        return f"<Terminal of {self.session!r}>"

    def _ipython_display_(self) -> None:
        info = self.session.info()
        if self._model is None:
            feed, rows = self._theatre.feed(self.session), self._rows or usual_rows(info)
            self._model = TerminalModel(feed, self._theatre.router, read_only=self._read_only, rows=rows)
        self._model.appear(still(self.session.directory, info.size))


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
        self._model.appear("")

    def vanish(self) -> None:
        """See Screen. A page that has not answered by now has no terminals."""
        if not self.answered and self._theatre.has_page is None:
            self._theatre.has_page = False
        self._model.close()
        self._theatre.end(self._feed)
