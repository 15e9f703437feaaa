"""A program on a terminal of another place that has no Python, for a holder that keeps all the rest here.

A client program (docker, ssh) carries the bytes of the terminal; the signals, modes and processes there are asked for
over the control connection beside it. Both are ready-made commands of this side.
"""

from __future__ import annotations

import os

from session_magics.holder.child import SpawnError, Terminal
from session_magics.holder.control import Control, end_client
from session_magics.holder.farpipe import FarPipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from session_magics.holder.loop import Loop, Timer

    class Ends(Protocol):
        """Who is told what becomes of the program."""

        def ended(self, code: int | None, signal: int | None) -> None: ...

        def lose(self, reason: str) -> None: ...

        def hear(self) -> None: ...

        def leave(self) -> None: ...


CLIENT_LIMIT = 0.2
"""Seconds for the terminal's client to end when its terminal is gone."""
MARK_LIMIT = 1.0
"""Seconds for the mark behind the program's last byte, once its end is known."""
SILENCE_LIMIT = 0.5
"""Seconds between the end of the terminal's client and the record of the program's end, which comes another way."""
RESCUE_LIMITS = (4.0, 1.8)
"""Seconds for a new connection to end what a lost one has left behind; the second where it took three to notice that
the old one is silent."""


class FarTerminal(Terminal):
    """See Terminal. ``pid`` is the client's on this side, ``tty_path`` the terminal's there."""

    far = True
    mark_patience = 5.0
    """The mark comes by another connection than the record: it is still to come as long as both live."""

    def __init__(self, loop: Loop, near: Terminal, control: Control, place: str, ends: Ends, farewell: bytes) -> None:
        super().__init__(near.pid, near.pty_fd, near.tty_path, near.tty_fd)
        self._loop, self.control, self._place, self._ends = loop, control, place, ends
        self._farewell = farewell
        self.directory = b""
        self.commands = FarPipe(control)
        self.take_records: Callable[[bytes], None] = lambda _data: None
        self._marks = (b"", b"")
        self._begun, self.seen = False, b""
        self._ready = b""  # what was read before the holder's turn
        self._client_gone = False
        self._rest = b""
        self._status: tuple[int | None, int | None] | None = None
        self.started = self.failure = b""
        """Pid and terminal of the program there once it runs, or why it does not."""
        self._image = b""
        self._typed = self._ahead = 0  # bytes since the last command began, and those of them when none ran
        self._idle = True
        self._line_by_line = True
        self._over = False
        self._left = True  # whether processes are there, as far as is known
        self._timer: Timer | None = None
        self.rescue: Control | None = None

    # ---- the start

    def expect(self, marks: tuple[bytes, bytes]) -> None:
        """What will stand in the output before and behind that of the program."""
        self._marks = marks

    def read_early(self) -> None:
        """Read before the holder does; what is the program's is kept for it."""
        data = self.read()
        if data is None:
            self.failure = self.failure or self.seen.strip()[-200:] or b"the connection ended at once"
        else:
            self._ready += data

    def tell_directory(self) -> None:
        """Let the terminal script go on, which has said HELLO."""
        super().write(self.directory + b"\n")

    def know(self) -> None:
        """The program runs: have it remembered there."""
        pid, self.tty_path = self.started.split(b" ", 1)
        self.control.ask(self._known, b"T", pid, self.tty_path)
        self.control.keep_alive()
        self._loop.later(0.0, self._ends.hear)

    def _known(self, words: list[bytes]) -> None:
        self._image = words[0] if words else b"0"

    # ---- output

    def read(self) -> bytes | None:
        """See Terminal; what came before the program and the marks around its output are left out."""
        data = super().read()
        if data is None:
            return self._ready_bytes(self._held()) or None
        self.seen += data
        if not self._begun:
            at = self.seen.find(self._marks[0]) if self._marks[0] else -1
            if at < 0:
                return b""
            self._begun, self.seen = True, self.seen[at + len(self._marks[0]) :]
        end = self._marks[1]
        if (at := self.seen.find(end)) >= 0:
            data, self.seen, self.at_end = self.seen[:at], b"", True
            self._loop.later(0.0, self._finish)
            return self._ready_bytes(data)
        keep = self.seen.rfind(end[:1], max(0, len(self.seen) - len(end) + 1))
        held = self.seen[keep:] if keep >= 0 and end.startswith(self.seen[keep:]) else b""
        data, self.seen = self.seen[: len(self.seen) - len(held)], held
        return self._ready_bytes(data)

    def _ready_bytes(self, data: bytes) -> bytes:
        ready, self._ready = self._ready, b""
        return ready + data

    def _held(self) -> bytes:
        seen, self.seen = self.seen, b""
        return seen if self._begun else b""

    # ---- input and modes

    def write(self, data: bytes) -> int:
        """See Terminal."""
        if self.tty_fd < 0:
            return len(data)
        count = super().write(data)
        self._typed += count
        if self._idle:
            self._ahead += count
        return count

    def idle(self) -> None:
        """No command runs: the modes are brought back, and what is typed from now on is for none."""
        self._idle = True
        self.control.tell(b"R", b"none")

    def canonical(self) -> bool:
        """See Terminal; as it was when last asked."""
        return self._line_by_line

    def resize(self, rows: int, columns: int) -> None:
        """See Terminal. The client passes it on as well, at its leisure."""
        super().resize(rows, columns)
        self.control.tell(b"S", b"%d" % rows, b"%d" % columns)

    def reset(self) -> None:
        """See Terminal; done there before whatever the shell is told next, and the modes when the last command ended.

        Keys travel by the other connection: those that were typed while no command ran are waited for there.
        """
        if self._typed:
            self.control.tell(b"R", b"%d" % self._typed if self._ahead else b"any")
        self._typed = self._ahead = 0
        self._idle = False

    def put(self, name: str, data: bytes) -> None:
        """See Terminal."""
        self.control.put(name.encode(), data)

    def probe(self, then: Callable[[str, bool, bool], None]) -> None:
        """See Terminal."""

        def heard(words: list[bytes]) -> None:
            wait, echo, canonical = words
            self._line_by_line = canonical == b"1"
            then(wait.decode(), echo == b"1", self._line_by_line)

        self.control.ask(heard, b"W")

    # ---- signals

    def interrupt_there(self, rung: int) -> bool:
        """See Terminal. The place decides who is hit, and says if only the key can do it."""

        def heard(words: list[bytes]) -> None:
            if words == [b"key"]:
                self.press(b"\x03")

        self.control.ask(heard, b"I", b"%d" % rung)
        return True

    def missed_there(self) -> bool:
        """See Terminal."""
        self.control.tell(b"M")
        return True

    def look(self, then: Callable[[bool, bool], None]) -> None:
        """Tell whether the shell waits for commands, and whether another program has taken its place."""

        def heard(words: list[bytes]) -> None:
            if len(words) == 3:
                then(words[1] == b"1", self._image not in (b"", b"0", words[2]))

        self.control.ask(heard, b"L")

    def kill_program(self) -> None:
        """See Terminal."""
        self.control.tell(b"N")

    def members(self, then: Callable[[list[int]], None], how: bytes = b"list") -> None:
        """Tell the pids there of all that is the session's, and ask or force them to end."""
        self.control.ask(lambda words: then([int(one) for one in words]), b"K", how)

    def left_behind(self) -> bool:
        """See Terminal; as last heard, and ``leave`` is called on the holder when that changes."""
        if self._left and self.control.live:

            def heard(pids: list[int]) -> None:
                if not pids:
                    self._left = False
                    self._ends.leave()

            self.members(heard)
        return self._left and self.control.live

    # ---- the end

    def is_end(self, pid: int) -> bool:
        """Never; but at the end of a client the end of the program is near, or the connection lost."""
        if pid == self.pid:
            self._client_gone = True
            self._timer = self._loop.later(SILENCE_LIMIT, self._silent)
        return False

    def _silent(self) -> None:
        if self._status is None:
            self.lost()
        else:
            self._finish()

    def hear_records(self, data: bytes) -> None:
        """Take bytes of the FIFO: those about the start and the end are ours, all others the shell's."""
        if b"\001B\t" in data:
            self.commands.unread = 0
        *pieces, self._rest = (self._rest + data).split(b"\0")
        for piece in pieces:
            at = piece.rfind(b"\001")
            kind, body = piece[at + 1 : at + 2], piece[at + 5 :]
            if at >= 0 and kind in (b"Y", b"N", b"Z") and piece[at + 2 : at + 5] == b"\t0\t":
                self._own_record(kind, body)
            else:
                self.take_records(piece + b"\0")

    def _own_record(self, kind: bytes, body: bytes) -> None:
        if kind == b"Y":
            self.started = body
        elif kind == b"N":
            self.failure = body
        else:
            if not self.started:  # killed on the way
                self.failure = self.failure or b"it was ended before it began: " + body
            what, _, number = body.partition(b" ")
            self._status = (None, int(number)) if what == b"signal" else (int(number), None)
            self._timer = self._loop.later(MARK_LIMIT, self._finish)
            if self.at_end:
                self._finish()

    def _finish(self) -> None:
        """Tell the end, when it and the last byte are here and it is known whether anything is left."""
        if self._status is None or self._over:
            return
        self._over = True
        self._loop.cancel(self._timer)
        status = self._status

        def heard(pids: list[int]) -> None:
            self._left = bool(pids)
            self.control.broken = lambda: None
            if self.tty_fd >= 0:
                self._ends.ended(*status)

        if self.control.live:
            self.members(heard)
            self.control.broken = lambda: heard([])
        else:
            heard([])

    def lost(self) -> None:
        """A connection is broken, and no end of the program is known: end what it left by a new one, then say so."""
        if self._over or not self.started or self._status is not None:
            return
        self._over = True
        self._loop.cancel(self._timer)
        self._loop.later(RESCUE_LIMITS[self.control.silent], lambda: self._lose(ended=False))
        try:
            self.rescue = self.control.again(broken=lambda: self._lose(ended=False))
        except SpawnError:
            self._lose(ended=False)
        else:
            self.rescue.greet(self._farewell, lambda words: self._lose(ended=not words))

    def _lose(self, *, ended: bool) -> None:
        if self.tty_fd < 0:
            return
        self.release()
        why = os.fsdecode(self.control.complaint.strip())
        rest = "what ran there was ended" if ended else "what ran there may still run"
        self._ends.lose(f"its connection to {self._place} broke{f' ({why})' if why else ''}; {rest}")

    def kill(self) -> None:
        """See Terminal: hanging up does it."""
        self.control.close()

    def close(self) -> None:
        """See Terminal; the far side ends what is left, and its files go."""
        self._take_leave()
        self.control.close()
        if self.rescue is not None:
            self.rescue.close()
        super().close()
        if not self._client_gone:
            end_client(self.pid, CLIENT_LIMIT)

    def part(self, then: Callable[[], None]) -> None:
        """Close without waiting; ``then`` is called when the far side is gone."""
        self._take_leave()
        super().close()
        if not self._client_gone:
            self._loop.later(CLIENT_LIMIT, lambda: end_client(self.pid, 0.0))
        self.control.part(then)

    def _take_leave(self) -> None:
        self._over = True
        self._loop.cancel(self._timer)
        if not self._left:
            self.control.leave()
