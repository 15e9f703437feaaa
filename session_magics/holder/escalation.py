"""Interrupting what runs in the foreground of a terminal, harder each time it is asked for again."""

from __future__ import annotations

import _signal
import os
import sys
import time

from session_magics.holder.processes import entry, read_file, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from session_magics.holder.child import Terminal

AGAIN_WITHIN = 2.0
"""Seconds in which another interrupt counts as more insistent than the one before."""
SIGIGNORE = 30
"""Place of the ignored signals behind the name in /proc/PID/stat; the caught ones follow."""
INT, TERM, KILL, CONT = _signal.SIGINT, _signal.SIGTERM, _signal.SIGKILL, _signal.SIGCONT


class Escalation:
    """INT, then TERM, then KILL for the foreground group; the shell itself is killed only where it is that group."""

    def __init__(self) -> None:
        self.rung = -1
        self._last = 0.0
        self._hit = 0  # the group that should have ended by the last INT

    def over(self) -> None:
        """The command has ended: the next interrupt begins anew."""
        self.rung, self._last, self._hit = -1, 0.0, 0

    def interrupt(self, terminal: Terminal) -> None:
        """Send the signal whose turn it is, and let a stopped group go on so that it can take it."""
        now = time.monotonic()
        self.rung = self.rung + 1 if now - self._last < AGAIN_WITHIN else 0
        self._last = now
        if terminal.interrupt_there(self.rung):
            return
        group = terminal.foreground()
        shell_itself = group == terminal.pid
        if self.rung == 0 or (self.rung == 1 and shell_itself):
            self._hit = group or 0 if group is None or shell_itself or _ends_by_int(group, terminal.pid) else 0
            if terminal.interrupts():
                terminal.signal_foreground(INT)
            else:
                terminal.press(b"\x03")
        elif group is not None:
            self._send(group, TERM if self.rung == 1 else KILL)
        if group is not None:
            self._send(group, CONT)
        shell = entry(terminal.pid)
        if not shell_itself and shell is not None and shell.state == "T":
            self._send(terminal.pid, CONT)

    def missed(self, terminal: Terminal) -> None:
        """Send INT again if it was lost; to be called a moment later, while the command still runs.

        It hit a program that was ending anyway, or a shell that was about to start one or had just become it, and the
        program runs on as if nothing had been. Programs that catch INT have their own ideas, and get it once.
        """
        if terminal.missed_there():
            return
        group, shell = terminal.foreground(), terminal.pid
        if not self._hit or group is None or not terminal.interrupts():
            return
        if group == shell:  # command substitutions run in its group
            others = [pid for pid, one in table().items() if one.pgid == shell and pid != shell]
            lost = bool(others) and all(_ends_by_int(pid, shell) for pid in others)
        else:
            lost = group != self._hit or _ends_by_int(group)
        if lost:
            self._hit = group if _ends_by_int(group, shell) or group == shell else 0
            terminal.signal_foreground(INT)

    @staticmethod
    def _send(group: int, number: int) -> None:
        if group > 1 and group != os.getpgrp():
            try:
                os.killpg(group, number)
            except OSError:
                pass


def _ends_by_int(pid: int, shell: int = 0) -> bool:
    """Whether the process neither catches nor ignores INT, or is gone; False if unknown.

    A child that is the shell's image still has the shell's handlers: where ``shell`` is given, one that is about to
    start a program counts as well.
    """
    try:
        fields = read_file(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        if int(fields[SIGIGNORE]) >> (INT - 1) & 1:
            return False
        if not int(fields[SIGIGNORE + 1]) >> (INT - 1) & 1:
            return True
        return shell != 0 and read_file(f"/proc/{pid}/cmdline") == read_file(f"/proc/{shell}/cmdline")
    except (OSError, ValueError, IndexError):
        return sys.platform == "linux"
