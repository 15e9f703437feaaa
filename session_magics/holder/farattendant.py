"""Looking after a command of a shell in another place, where every look is a question and an answer."""

from __future__ import annotations

import time

from session_magics.holder.attendant import UNHEARD_LIMIT, Attendant
from session_magics.holder.records import listed_trap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from session_magics.holder.command import Active
    from session_magics.holder.farterminal import FarTerminal
    from session_magics.holder.loop import Loop

LOOKS = (0.1, 1.0)
"""Seconds until the first look after a command, doubled up to the second figure."""


class FarAttendant(Attendant):
    """See Attendant. ``replaced`` is called when another program has taken the shell's place."""

    def __init__(
        self, loop: Loop, terminal: FarTerminal, deaf: Callable[[], None], replaced: Callable[[], None]
    ) -> None:
        super().__init__(loop, terminal, terminal.commands, None, deaf)
        self._there, self._replaced = terminal, replaced
        self._attended: Active | None = None

    def attend(self, active: Active, seconds: float = LOOKS[0]) -> None:
        """See Attendant."""
        self._attended = active
        super().attend(active, seconds)

    def over(self, active: Active) -> None:
        """See Attendant."""
        self._attended = None
        self._there.idle()
        super().over(active)

    def _look(self, active: Active, seconds: float) -> None:
        if self._there.control.live:
            self._there.look(lambda waits, other: self._looked(active, seconds, waits=waits, other=other))

    def _looked(self, active: Active, seconds: float, *, waits: bool, other: bool) -> None:
        if self._attended is not active:
            return
        heard = not active.unheard
        if other:
            self._replaced()
        elif active.told and waits:
            self._ask_again(active)
        if active.interrupted and not listed_trap(active.cell.traps, b"INT"):
            self._escalation.missed(self._there)
        self.attend(active, LOOKS[0] if heard and active.unheard else min(LOOKS[1], seconds * 2))

    def _ask_again(self, active: Active) -> None:
        """See Attendant: it waits for commands, so it has read all it was given."""
        now = time.monotonic()
        active.unheard = active.unheard or now
        self._there.commands.unread = 0
        if now - active.unheard < UNHEARD_LIMIT:
            self._there.commands.send(active.second)
        else:
            self._deaf()
