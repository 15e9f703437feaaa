"""Looking after a command while it runs: interrupts that get lost, shells that sleep or do not answer."""

from __future__ import annotations

import _signal
import os
import time

from session_magics.holder.escalation import Escalation
from session_magics.holder.keys import at_editor, press
from session_magics.holder.pipe import reads_pipe
from session_magics.holder.processes import entry
from session_magics.holder.records import listed_trap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from session_magics.holder.child import Terminal
    from session_magics.holder.command import Active
    from session_magics.holder.farpipe import FarPipe
    from session_magics.holder.loop import Loop
    from session_magics.holder.pipe import Pipe

LOOKS = (0.02, 1.0)
"""Seconds until the first look after a command, doubled up to the second figure."""
UNHEARD_LIMIT = 3.0
"""Seconds for which a shell may read what asks it for its report and not give it."""


class Attendant:
    """For one shell process. ``deaf`` is called when it can report no more; what to do then is the caller's."""

    def __init__(
        self,
        loop: Loop,
        terminal: Terminal,
        pipe: Pipe | FarPipe,
        keys: tuple[bytes, bytes] | None,
        deaf: Callable[[], None],
    ) -> None:
        self._loop, self._terminal, self._pipe, self._keys, self._deaf = loop, terminal, pipe, keys, deaf
        self._escalation = Escalation()

    def attend(self, active: Active, seconds: float = LOOKS[0]) -> None:
        """Look after the command from time to time, soon at first, until ``over`` is called for it."""
        self._loop.cancel(active.check)
        active.check = self._loop.later(seconds, lambda: self._look(active, seconds))

    def over(self, active: Active) -> None:
        """The command has ended: the next interrupt begins anew."""
        self._loop.cancel(active.check)
        self._escalation.over()

    def interrupt(self, active: Active | None) -> None:
        """Interrupt the command, or whatever runs; again within two seconds is more insistent."""
        self._escalation.interrupt(self._terminal)
        if active is not None:
            active.interrupted = True
            self.attend(active)

    def _look(self, active: Active, seconds: float) -> None:
        shell = entry(self._terminal.pid)
        if shell is None or self._terminal.tty_fd < 0:
            return
        heard = not active.unheard
        if shell.state == "T":  # nobody else could wake a shell that was suspended
            os.kill(self._terminal.pid, _signal.SIGCONT)
        if self._keys is not None:
            self._press_again(active, *self._keys)
        elif active.told and self._pipe.taken:
            self._ask_again(active)
        if active.interrupted and not listed_trap(active.cell.traps, b"INT"):
            self._escalation.missed(self._terminal)
        self.attend(active, LOOKS[0] if heard and active.unheard else min(LOOKS[1], seconds * 2))

    def _press_again(self, active: Active, run: bytes, again: bytes) -> None:
        """A key may be missed while the shell draws its first prompt, and an interrupt may hit the report."""
        if not active.told:
            press(self._terminal, run)
        elif active.interrupted and at_editor(self._terminal):
            press(self._terminal, again)

    def _ask_again(self, active: Active) -> None:
        """The shell has read all it was given and not reported.

        An interrupt can hit a shell while it reads the line that reports, and dash drops what waits in its pipe on an
        error. One that is asked in vain has lost what it reports with: functions of ours, free descriptors.
        """
        now = time.monotonic()
        active.unheard = active.unheard or now
        if now - active.unheard < UNHEARD_LIMIT:
            self._pipe.send(active.second)
        elif reads_pipe(self._terminal.pid):
            self._deaf()
