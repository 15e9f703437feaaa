"""A line in plain words under a cell whose command failed."""

from __future__ import annotations

import contextlib

from session_magics.display.cell import Writer
from session_magics.display.rich import Rich
from session_magics.errors import SessionError
from session_magics.model import CellResult
from session_magics.session import Session


def show_explanation(session: Session, result: CellResult, writer: Writer) -> None:
    """Show what is to be said about a command that has ended, if anything is. What is captured gets no such line."""
    from session_magics.teaching.explaining import explanation  # most cells ask for none
    from session_magics.teaching.ticks import hint_html

    told = None
    with contextlib.suppress(SessionError):  # its session is gone: the command's own error is the one to see
        told = explanation(session, result)
    if told and writer.live:
        writer.display(Rich({"text/html": hint_html(told), "text/plain": f"Tip: {told}"}))
