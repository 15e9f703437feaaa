"""Places in a session's past, as people name them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Place:
    """The ``start``, the ``end``, an ``offset`` of the log, so many seconds ``ago``, or the ``cell`` of that number.

    Cells are counted from 1, or from the last one, which is -1.
    """

    kind: Literal["start", "end", "offset", "ago", "cell"]
    number: float = 0

    def __str__(self) -> str:
        shown = f"{self.number:g}"
        return {"offset": shown, "ago": f"{shown}s", "cell": f"cell:{shown}"}.get(self.kind, self.kind)
