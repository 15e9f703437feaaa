"""Jupyter's replies to what is asked about the text of a cell, out of what the magics say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from session_magics.magics.shellcell import ShellCell

if TYPE_CHECKING:
    from session_magics.completion import Completions
    from session_magics.magics.magics import SessionMagics

NAMED_IN_PAGE = "_jupyter_types_experimental"
"""Where front ends look for the kinds of completions."""


def completed(found: Completions, shift: int = 0) -> dict[str, Any]:
    """The reply with completions; ``shift`` is added to their offsets."""
    start, end = found.start + shift, found.end + shift
    kinds = [{"start": start, "end": end, "text": item.text, "type": item.kind} for item in found.items]
    return {
        "status": "ok",
        "matches": [item.text for item in found.items],
        "cursor_start": start,
        "cursor_end": end,
        "metadata": {NAMED_IN_PAGE: kinds},
    }


def inspected(found: Mapping[str, str] | None) -> dict[str, Any]:
    """The reply with what stands at the cursor."""
    return {"status": "ok", "found": found is not None, "data": found or {}, "metadata": {}}


def judged(status: str, indent: str) -> dict[str, Any]:
    """The reply that says whether a cell is complete."""
    return {"status": status, **({"indent": indent} if status == "incomplete" else {})}


def reply_aside(magics: SessionMagics, kind: str, request: Mapping[str, Any]) -> dict[str, Any] | None:
    """The reply to a request while a cell runs, in any thread, for text of ours; None for any other."""
    code = request["code"]
    cursor = request.get("cursor_pos")
    # a shell kernel knows plain cells
    asked = getattr(getattr(magics.shell, "kernel", None), "asked", None) or (lambda code, cursor: (code, cursor, 0))
    cell, at, shift = asked(code, len(code) if cursor is None else cursor)
    if kind == "complete_request":
        completions = magics.complete(cell, at, aside=True)
        return None if completions is None else completed(completions, shift)
    ours = ShellCell.of(cell) is not None
    if kind == "is_complete_request":
        return judged(*magics.is_complete(cell)) if ours else None
    found = magics.inspect(cell, at, request.get("detail_level", 0), aside=True)
    return inspected(found) if ours or found else None
