"""Interrupting what runs in the foreground of a terminal, harder each time it is asked for again."""

from __future__ import annotations

import _signal
import os
import time

from session_magics.holder.processes import entry, foreground_group, signal_foreground

TYPE_CHECKING = False
if TYPE_CHECKING:
    from session_magics.holder.child import Terminal

AGAIN_WITHIN = 2.0
"""Seconds in which another interrupt counts as more insistent than the one before."""
INT, TERM, KILL, CONT = _signal.SIGINT, _signal.SIGTERM, _signal.SIGKILL, _signal.SIGCONT


class Escalation:
    """INT, then TERM, then KILL for the foreground group; the shell itself is killed only where it is that group."""

    def __init__(self) -> None:
        self.rung = -1
        self._last = 0.0

    def over(self) -> None:
        """The command has ended: the next interrupt begins anew."""
        self.rung, self._last = -1, 0.0

    def interrupt(self, terminal: Terminal) -> None:
        """Send the signal whose turn it is, and let a stopped group go on so that it can take it."""
        now = time.monotonic()
        self.rung = self.rung + 1 if now - self._last < AGAIN_WITHIN else 0
        self._last = now
        group = foreground_group(terminal.pty_fd)
        shell_itself = group == terminal.pid
        if self.rung == 0 or (self.rung == 1 and shell_itself):
            if terminal.interrupts():
                signal_foreground(terminal.pty_fd, INT)
            else:
                terminal.write(b"\x03")
        elif group is not None:
            self._send(group, TERM if self.rung == 1 else KILL)
        if group is not None:
            self._send(group, CONT)
        shell = entry(terminal.pid)
        if not shell_itself and shell is not None and shell.state == "T":
            self._send(terminal.pid, CONT)

    @staticmethod
    def _send(group: int, number: int) -> None:
        if group > 1 and group != os.getpgrp():
            try:
                os.killpg(group, number)
            except OSError:
                pass
