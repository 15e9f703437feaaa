"""The displays that a shell's functions made, as the page takes them."""

from __future__ import annotations

import base64
import re
import uuid
from pathlib import Path

from session_magics.display.rich import JAVASCRIPT, Rich
from session_magics.showing import KINDS, Mark, fetch
from session_magics.text.amounts import short_bytes

_IMAGES = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF....WEBP", re.DOTALL), "image/webp"),
    (re.compile(rb"%PDF-"), "application/pdf"),
    (re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<[?!][^>]*>\s*)*<svg[\s>]", re.IGNORECASE), "image/svg+xml"),
)
"""How data begins that is of these types."""
SVG_HEAD = 4096
"""Bytes in which the first element of an SVG must begin: comments and a document type may stand before."""


class Shown:
    """The displays of one cell. Their ids are this execution's own: whoever runs it again gets new displays."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._prefix = uuid.uuid4().hex
        self._keys: set[str] = set()

    def take(self, mark: Mark) -> tuple[Rich, bool] | str | None:
        """The display of a mark and whether it takes an earlier one's place, or why there is none.

        None: nobody has made it, or it was shown already.
        """
        data = fetch(self._directory, mark)
        if data is None:
            return None
        kind = mime_type(KINDS[mark.name], data)
        if kind is None:
            what = f"the {len(data):,} bytes are" if data else "no data: there is"
            return f"{mark.name}: {what} no image that is known here (png, jpeg, gif, webp, svg, pdf)"
        key = f"{self._prefix}-{mark.id}" if mark.id else ""
        again = key in self._keys
        self._keys.add(key) if key else None
        return Rich(bundle(kind, data), key), again


def mime_type(kind: str, data: bytes) -> str | None:
    """The type of data that is an image, HTML or JavaScript; None for an image of no type that pages know."""
    if kind == "image":
        return next((name for begin, name in _IMAGES if begin.match(data[:SVG_HEAD])), None)
    return {"html": "text/html", "javascript": JAVASCRIPT}[kind]


def bundle(kind: str, data: bytes) -> dict[str, str]:
    """The data as Jupyter has it, with a few words for where it cannot be shown."""
    is_text = kind in ("text/html", JAVASCRIPT, "image/svg+xml")
    shown = data.decode("utf-8-sig", "replace") if is_text else base64.b64encode(data).decode("ascii")
    return {kind: shown, "text/plain": f"<{kind}, {short_bytes(len(data))}>"}
