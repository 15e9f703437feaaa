"""What a shell in another place shall do, on its way to the pipe that it reads there."""

from __future__ import annotations

from session_magics.holder.farscript import escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from session_magics.holder.control import Control

ROOM = 16 * 1024
"""Bytes that the far pipe of commands takes for certain when it is empty."""


class FarPipe:
    """What a shell shall do, on its way to the far FIFO; see Pipe."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._files = 0
        self.unread = 0
        """Bytes that the shell may not have read yet."""

    def send(self, data: bytes) -> None:
        """Bytes for the shell; what might not fit goes by a file, so that the script is never held up."""
        if not data:
            return
        self.unread += len(data)
        if self.unread <= ROOM:
            self._control.tell(b"D", b"-", escaped(data))
            return
        self._files += 1
        name = b"long.%d" % self._files
        self._control.put(name, data)
        self._control.tell(b"Q", name)

    @property
    def taken(self) -> bool:
        """Not known here: the place is asked (see FarAttendant)."""
        return False

    def close(self) -> None:
        """Nothing is to be given up here."""
