"""The live table of sessions in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traitlets import Dict

from session_magics.display.terminal import TerminalModel, usual_rows
from session_magics.display.theatre import Theatre
from session_magics.display.widget import LiveWidget
from session_magics.listing import Listing
from session_magics.session import Session


class TableModel(LiveWidget):
    """One table; its rows come as messages (see ``roster``)."""

    labels = Dict().tag(sync=True)
    """Those that all its sessions carry."""

    def __init__(self, theatre: Theatre, listing: Listing) -> None:
        self._theatre = theatre
        self._terminals: dict[str, TerminalModel] = {}
        self._roster = theatre.roster(listing, self)
        super().__init__(theatre.router, kind="table", labels=dict(listing.labels))

    def received(self, content: Mapping[str, Any]) -> None:
        """See LiveWidget."""
        self._roster.receive(content)

    def renew(self, still: str) -> None:
        """See TableFace."""
        self.replace_text(still)

    def open_terminal(self, session: Session) -> str:
        """See TableFace."""
        model = self._terminals.get(session.id)
        if model is None:
            feed, rows = self._theatre.feed(session), usual_rows(session.info())
            model = self._terminals[session.id] = TerminalModel(feed, self._theatre.router, rows=rows)
        return str(model.model_id)

    def close(self) -> None:
        """See LiveWidget."""
        self._roster.close()
        for model in self._terminals.values():
            model.close()
        super().close()


def show_table(theatre: Theatre, listing: Listing) -> None:
    """Display a live table of the sessions that carry the listing's labels; the listing itself stands for it."""
    TableModel(theatre, listing).present(str(listing), {"sessions": "table"})
