"""One limit for all that is sent to the page."""

from __future__ import annotations

import math

from session_magics.display.sender import Sender


class Busy:
    """A source that always has something to send."""

    def __init__(self, *, typed: bool = False) -> None:
        self.typed, self.sent = typed, 0

    def fileno(self) -> int | None:
        return None

    def news(self) -> None:
        pass

    def urgent(self, now: float) -> bool:
        return self.typed

    def step(self, now: float) -> tuple[bool, float | None]:
        self.sent += 1
        return True, now


def test_what_is_typed_is_echoed_though_others_have_used_up_the_limit() -> None:
    sender, busy, typed = Sender(), Busy(), Busy(typed=True)
    sender._tokens, sender._counted = 0.0, math.inf
    assert sender._round([busy, typed]) is not None
    assert (busy.sent, typed.sent) == (0, 1)
