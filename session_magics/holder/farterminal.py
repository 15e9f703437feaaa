"""A program on a terminal of another place that has no Python, for a holder that keeps all the rest here.

A client program (docker, ssh) carries the bytes of the terminal; the signals, modes and processes there are asked for
over the control connection beside it. Both are ready-made commands of this side.
"""

from __future__ import annotations

import binascii
import os

from session_magics.holder.child import SpawnError, Terminal, spawn
from session_magics.holder.control import Control, end_client
from session_magics.holder.dialects import mark
from session_magics.holder.farscript import HELLO, child_file, escaped, run_file
from session_magics.holder.stopping import COOKIE
from session_magics.holder.trees import HOLDER_MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from session_magics.holder.launch import Launch
    from session_magics.holder.loop import Loop, Timer

    class Ends(Protocol):
        """Who is told what becomes of the program."""

        def ended(self, code: int | None, signal: int | None) -> None: ...

        def lose(self, reason: str) -> None: ...

        def hear(self) -> None: ...

        def leave(self) -> None: ...


START_LIMIT = 8.0
"""Seconds for each of the two connections to come up: a container's takes 0.2, a distant host's some seconds."""
MARK_LIMIT = 1.0
"""Seconds for the mark behind the program's last byte, once its end is known."""
SILENCE_LIMIT = 0.5
"""Seconds between the end of the terminal's client and the record of the program's end, which comes another way."""
RESCUE_LIMIT = 1.8
"""Seconds for a new connection to end what a lost one has left behind."""
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


class FarTerminal(Terminal):
    """See Terminal. ``pid`` is the client's on this side, ``tty_path`` the terminal's there."""

    far = True
    mark_patience = 5.0
    """The mark comes by another connection than the record: it is still to come as long as both live."""

    def __init__(self, loop: Loop, near: Terminal, control: Control, place: str, ends: Ends) -> None:
        super().__init__(near.pid, near.pty_fd, near.tty_path, near.tty_fd)
        self._loop, self.control, self._place, self._ends = loop, control, place, ends
        self.directory = b""
        self.commands = FarPipe(control)
        self.take_records: Callable[[bytes], None] = lambda _data: None
        self._marks = (b"", b"")
        self._begun, self._seen = False, b""
        self._ready = b""  # what was read before the holder's turn
        self._client_gone = False
        self._rest = b""
        self._status: tuple[int | None, int | None] | None = None
        self._started = self.failure = b""
        self._image = b""
        self._typed = False
        self._line_by_line = True
        self._over = False
        self._left = True  # whether processes are there, as far as is known
        self._timer: Timer | None = None
        self.rescue: Control | None = None

    # ---- the start

    def greet(self, words: bytes) -> None:
        """Have a directory made there; raises SpawnError."""
        answer: list[bytes] = []
        self.control.greet(words, answer.extend)
        self.control.until(lambda: answer or self.failure, START_LIMIT, {self.pty_fd: self._read_early})
        if answer[:1] != [b"ready"]:
            said = b" ".join(answer[1:]) or self.control.complaint.strip() or self.failure or b"it does not answer"
            raise SpawnError(f"{self._place}: {os.fsdecode(said)}")
        self.directory = b" ".join(answer[1:])

    def begin(self, launch: Launch, size: tuple[int, int], argv: list[bytes], *, shell: bool) -> None:
        """Have the program started; raises SpawnError."""
        self._marks = (mark(binascii.hexlify(os.urandom(12))), mark(binascii.hexlify(os.urandom(12))))
        self.control.put(b"run", run_file(self.directory, size, self._marks, raw_lines=shell))
        files = child_file(self.directory, argv, launch.env, launch.unset, launch.cwd, shell=shell)
        self.control.put(b"child", files)
        there: list[bool] = []
        self.control.ask(lambda _words: there.append(True), b"P")
        also = {self.pty_fd: self._read_early}
        if self.control.until(lambda: self.failure or (there and HELLO in self._seen), START_LIMIT, also):
            super().write(self.directory + b"\n")
        self.control.until(lambda: self._started or self.failure, START_LIMIT, also)
        if not self._started:
            said = self.failure or self.control.complaint.strip() or self._seen.strip()[-200:]
            raise SpawnError(os.fsdecode(said or b"the terminal there does not come up"))
        pid, self.tty_path = self._started.split(b" ", 1)
        self.control.ask(self._known, b"T", pid, self.tty_path)
        self.control.keep_alive()
        self._loop.later(0.0, self._ends.hear)

    def _known(self, words: list[bytes]) -> None:
        self._image = words[0] if words else b"0"

    def _read_early(self) -> None:
        data = self.read()
        if data is None:
            self.failure = self.failure or self._seen.strip()[-200:] or b"the connection ended at once"
        else:
            self._ready += data

    # ---- output

    def read(self) -> bytes | None:
        """See Terminal; what came before the program and the marks around its output are left out."""
        data = super().read()
        if data is None:
            return self._ready_bytes(self._held()) or None
        self._seen += data
        if not self._begun:
            at = self._seen.find(self._marks[0]) if self._marks[0] else -1
            if at < 0:
                return b""
            self._begun, self._seen = True, self._seen[at + len(self._marks[0]) :]
        end = self._marks[1]
        if (at := self._seen.find(end)) >= 0:
            data, self._seen, self.at_end = self._seen[:at], b"", True
            self._loop.later(0.0, self._finish)
            return self._ready_bytes(data)
        keep = self._seen.rfind(end[:1], max(0, len(self._seen) - len(end) + 1))
        held = self._seen[keep:] if keep >= 0 and end.startswith(self._seen[keep:]) else b""
        data, self._seen = self._seen[: len(self._seen) - len(held)], held
        return self._ready_bytes(data)

    def _ready_bytes(self, data: bytes) -> bytes:
        ready, self._ready = self._ready, b""
        return ready + data

    def _held(self) -> bytes:
        seen, self._seen = self._seen, b""
        return seen if self._begun else b""

    # ---- input and modes

    def write(self, data: bytes) -> int:
        """See Terminal."""
        if self.tty_fd < 0:
            return len(data)
        self._typed = True
        return super().write(data)

    def canonical(self) -> bool:
        """See Terminal; as it was when last asked."""
        return self._line_by_line

    def resize(self, rows: int, columns: int) -> None:
        """See Terminal. The client passes it on as well, at its leisure."""
        super().resize(rows, columns)
        self.control.tell(b"S", b"%d" % rows, b"%d" % columns)

    def reset(self) -> None:
        """See Terminal; done there before whatever the shell is told next."""
        self.control.tell(b"R", b"%d" % self._typed)
        self._typed = False

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
            self._started = body
        elif kind == b"N":
            self.failure = body
        else:
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
        if self._over or not self._started or self._status is not None:
            return
        self._over = True
        self._loop.cancel(self._timer)
        self._loop.later(RESCUE_LIMIT, lambda: self._lose(ended=False))
        try:
            self.rescue = self.control.again(broken=lambda: self._lose(ended=False))
        except SpawnError:
            self._lose(ended=False)
        else:
            self.rescue.greet(self.farewell, lambda words: self._lose(ended=not words))

    farewell = b""

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
        self._over = True
        self._loop.cancel(self._timer)
        if not self._left:
            self.control.leave()
        self.control.close()
        if self.rescue is not None:
            self.rescue.close()
        super().close()
        if not self._client_gone:
            end_client(self.pid, 0.2)


def open_far(
    loop: Loop, launch: Launch, size: tuple[int, int], ends: Ends, argv: list[bytes], *, shell: bool
) -> FarTerminal:
    """A program on a terminal of another place; raises SpawnError."""
    env = near_environment(launch)
    cookie = COOKIE + b"=" + launch.env[COOKIE]
    name = b"session-magics-" + binascii.hexlify(os.urandom(8))
    control = Control(loop, launch.control, env, launch.near_cwd)
    try:
        near = spawn(launch.client, env, launch.near_cwd or b".", size)  # at once, as each takes its time to come up
    except BaseException:
        control.close()
        raise
    terminal = FarTerminal(loop, near, control, launch.place, ends)
    control.records, control.broken = terminal.hear_records, terminal.lost
    try:
        terminal.greet(b"%s %s %d" % (name, cookie, launch.hangup))
        terminal.farewell = b"end %s" % cookie
        terminal.begin(launch, size, argv, shell=shell)
    except BaseException:
        terminal.close()
        raise
    return terminal


def near_environment(launch: Launch) -> dict[bytes, bytes]:
    """The environment of a client: ours, with what its command adds, and without the mark of a holder."""
    without = (HOLDER_MARK.rstrip(b"="), *launch.near_unset)
    return {key: value for key, value in os.environb.items() if key not in without} | launch.near_env
