"""A shell in another place: the protocol is the same, the pipe and the looks at it go by the control connection."""

from __future__ import annotations

from session_magics.holder.cells import Shell
from session_magics.holder.farattendant import FarAttendant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from session_magics.holder.farterminal import FarTerminal


class FarShell(Shell):
    """See Shell."""

    def adopt_far(self, terminal: FarTerminal, *, cwd: bytes) -> None:
        """Take a shell that was just started there."""
        self.dialect.directory, terminal.take_records = terminal.directory, self._take_records
        initial = self._prepare(terminal)
        attendant = FarAttendant(self.loop, terminal, lambda: self._deaf(terminal), self._is_replaced)
        self._begin(terminal.commands, attendant, initial, cwd)

    def _is_replaced(self) -> None:
        self.replaced = True
