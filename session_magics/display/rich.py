"""What a cell shows beside text: a bundle of the same thing in several types, of which the page takes the best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

JAVASCRIPT = "application/javascript"


@dataclass(frozen=True)
class Rich:
    """One display. ``data`` maps mime types to text, or to base64 of what is binary; ``text/plain`` is one of them."""

    data: Mapping[str, str]
    key: str = ""
    """Jupyter's display id, by which a later display takes this one's place; empty: none does."""

    @property
    def text(self) -> str:
        """What is shown where there is only text."""
        return self.data["text/plain"]

    @property
    def runs(self) -> bool:
        """Whether showing it again does something again."""
        return JAVASCRIPT in self.data

    @property
    def size(self) -> int:
        """Characters of all of it."""
        return sum(map(len, self.data.values()))


Piece = str | Rich
"""Part of what a cell shows, in order."""


def replaced(pieces: list[Piece], rich: Rich) -> bool:
    """Put a display in the place of that with the same key; False if there is none."""
    at = next((at for at, one in enumerate(pieces) if isinstance(one, Rich) and one.key == rich.key != ""), None)
    if at is not None:
        pieces[at] = rich
    return at is not None


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """The same with neighbouring texts in one, and no empty ones."""
    result: list[Piece] = []
    for piece in pieces:
        if isinstance(piece, str) and result and isinstance(result[-1], str):
            result[-1] += piece
        elif piece != "":
            result.append(piece)
    return result
