"""Cell commands in a shell session: when each begins and ends, its output's place in the log, and its status."""

from __future__ import annotations

import binascii
import fcntl
import os
import struct
import termios
import time

from session_magics.holder.dialects import Cell, dialect, mark
from session_magics.holder.escalation import Escalation
from session_magics.holder.loop import GONE, WRITE
from session_magics.holder.processes import entry
from session_magics.holder.records import Records, listed_trap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from session_magics.holder.child import Terminal
    from session_magics.holder.logfile import LogWriter
    from session_magics.holder.loop import Loop, Timer

MARK_PATIENCE = 0.05
"""Seconds to wait for the mark once the record of the end is there; on Linux it has always come before."""
TAKEN_CHECK = (0.02, 0.5)
"""Seconds until the first look whether the line that reports the end was read without effect, doubled up to the
second figure. An interrupt can hit a shell while it reads that line, and dash drops what waits in its pipe on an
error."""
FIRST_LINE = 200
"""Bytes of a command's first line that the index keeps."""
EXEC_CHECK = 0.05
"""Seconds after which a process that closed its commands without ending counts as replaced."""
START_LIMIT = 10.0
"""Seconds a start-up file may take before it is interrupted."""


def _waiting_bytes(pipe: int) -> int:
    """How much of what was written to a pipe has not been read."""
    return int(struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"))[0])


class Request:
    """A cell that waits to be run, or is. ``hidden`` marks those of ours."""

    def __init__(
        self,
        text: bytes,
        *,
        hidden: bool,
        done: Callable[[Finished], None],
        begun: Callable[[int, int, bytes], None] = lambda _number, _begin, _notice: None,
    ) -> None:
        self.text, self.hidden, self.done, self.begun = text, hidden, done, begun


class Finished:
    """How a command ended, in values that fit a frame."""

    def __init__(self, number: int, begin: int, end: int) -> None:
        self.number, self.begin, self.end = number, begin, end
        self.status = 0
        self.state = "done"
        self.cwd = b""
        self.duration = 0.0
        self.restarted = b""
        self.exact = True
        self.values: list[bytes] = []

    def fields(self) -> list[bytes]:
        """The fields of a DONE frame behind the request's id."""
        plain = (self.number, self.begin, self.end, self.status, self.state, f"{self.duration:.6f}", int(self.exact))
        return [*[str(one).encode() for one in plain], self.cwd, self.restarted, *self.values]


class Active:
    """The command that runs."""

    def __init__(self, request: Request, cell: Cell, recovery: bytes) -> None:
        self.request, self.cell, self.recovery = request, cell, recovery
        self.begin: int | None = None
        self.end: int | None = None
        self.started = time.monotonic()
        self.told = False  # record B has come
        self.body: bytes | None = None  # of record E
        self.ended = 0.0
        self.traps = b""
        self.exact = True
        self.interrupted = False
        self.interrupt_at_begin = False
        self.values: list[bytes] = []
        self.timer: Timer | None = None
        self.check: Timer | None = None


class Shell:
    """The parent side of the protocol for one shell process after another on one log.

    ``terminal`` is the live shell, or None between two. Calls come from the loop's thread only.
    """

    def __init__(self, loop: Loop, log: LogWriter, name: str, program: bytes, *, rc: bool) -> None:
        self.loop, self.log = loop, log
        self.dialect = dialect(name, program, os.getcwdb())
        self.terminal: Terminal | None = None
        self.active: Active | None = None
        self.waiting: list[Request] = []
        self.environment = b""
        self.cwd = b""
        self.replaced = False
        self.notice = b""
        self.ready = False
        self._number = 0
        self._rc = rc
        self._held = b""
        self._records = Records()
        self._flags = self._int_trap = b""
        self._debug = False
        self._last = 0
        self._commands = -1
        self._unsent = b""
        self._fifo = self._make_fifo()
        self.escalation = Escalation()

    def _make_fifo(self) -> int:
        try:
            os.mkfifo("records", 0o600)
        except FileExistsError:
            pass
        fd = os.open("records", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)  # a writer of our own: never end of file
        self.loop.watch(fd, self._records_readable)
        return fd

    def adopt(self, terminal: Terminal, commands: int, *, cwd: bytes) -> None:
        """Take a shell that was just started with ``commands`` as the writing end of its standard input."""
        self.terminal, self._commands = terminal, commands
        os.set_blocking(commands, False)
        self.replaced = self.ready = False
        self._flags = self._int_trap = self._held = self._unsent = b""
        self._debug = False
        initial = self.dialect.init(terminal.tty_path)
        for name, text in self.dialect.files().items():
            fd = os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            os.write(fd, text)
            os.close(fd)
        self.loop.watch(commands, self._commands_event, 0)
        self._send(initial)
        first = self.dialect.start_up if self._rc else b":"
        restore = self.dialect.restore(self.environment, self.cwd or cwd)
        self.waiting[:0] = [Request(text, hidden=True, done=self._started) for text in (first, restore)]
        self.loop.later(START_LIMIT, self._start_limit)
        self._next()

    def _started(self, finished: Finished) -> None:
        """A command of ours is over: after the second the shell is the user's."""
        self.ready = finished.state == "done" and not any(one.hidden for one in self.waiting)

    def _start_limit(self) -> None:
        if self.active and self.active.request.hidden and self.active.cell.number == self._number:
            self.interrupt()

    def run(self, request: Request) -> None:
        """Run the text when the shell is free; only commands of ours are ever queued behind another."""
        self.waiting.append(request)
        self._next()

    @property
    def busy(self) -> bytes:
        """The first line of the user's command that runs or waits; empty if there is none."""
        queue = ([self.active.request] if self.active else []) + self.waiting
        return next((one.text.strip().partition(b"\n")[0][:FIRST_LINE] or b"#" for one in queue if not one.hidden), b"")

    @property
    def visible_end(self) -> int:
        """How far the log may be read now: not beyond the end of a command whose status is still to come."""
        active = self.active
        return self.log.end if active is None or active.end is None else active.end

    def _next(self) -> None:
        if self.active or not self.waiting or not self.terminal:
            return
        request = self.waiting.pop(0)
        self._number += 1
        begin, end = (binascii.hexlify(os.urandom(12)) for _ in range(2))
        cell = Cell(self._number, request.text, begin, end)
        cell.flags, cell.int_trap, cell.debug = self._flags, self._int_trap, self._debug
        cell.last = self._last
        line, recovery = self.dialect.command(cell)
        self.active = Active(request, cell, recovery)
        self.terminal.reset()
        self._send(line)

    # ---- the pipe of commands

    def _send(self, data: bytes) -> None:
        self._unsent += data
        self._commands_event(0)

    def _commands_event(self, events: int) -> None:
        if self._commands < 0:
            return
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._commands, self._unsent[:65536]) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            events |= GONE
        if events & GONE:
            self.loop.forget(self._commands)
            terminal = self.terminal
            self.loop.later(EXEC_CHECK, lambda: self._pipe_closed(terminal))
            return
        self.loop.watch(self._commands, self._commands_event, WRITE if self._unsent else 0)

    def _pipe_closed(self, terminal: Terminal | None) -> None:
        """No reader is left: if the process still lives, ``exec`` has put another program into its place."""
        self.replaced = terminal is not None and terminal is self.terminal and entry(terminal.pid) is not None

    # ---- what comes from the terminal

    def output(self, data: bytes) -> None:
        """Take bytes of the terminal: log them without the marks, and note where the command begins and ends."""
        data, self._held = self._held + data, b""
        while data:
            active = self.active
            if active is None or active.end is not None:
                self.log.append(data)  # idle output: background jobs, prompts' hooks
                return
            wanted = mark(active.cell.end if active.begin is not None else active.cell.begin)
            at = data.find(wanted)
            if at < 0:
                start = data.rfind(b"\033", max(0, len(data) - len(wanted)))
                keep = start if start >= 0 and wanted.startswith(data[start:]) else len(data)
                self._held = data[keep:]
                self._log(data[:keep])
                return
            self._log(data[:at])
            data = data[at + len(wanted) :]
            if active.begin is None:
                self._begins(active)
            else:
                active.end = self.log.end
                self._finish_if_whole()

    def _begins(self, active: Active) -> None:
        active.begin = self.log.end
        if not active.request.hidden:
            first = active.request.text.strip().partition(b"\n")[0][:FIRST_LINE].decode("utf-8", "replace")
            self.log.event("begin", n=active.cell.number, text=first)
            notice, self.notice = self.notice, b""
            active.request.begun(active.cell.number, active.begin, notice)
        if active.interrupt_at_begin:
            self.interrupt()

    def _log(self, data: bytes) -> None:
        if data:
            self.log.append(data)

    # ---- what comes from the FIFO

    def _records_readable(self, _events: int) -> None:
        try:
            data = os.read(self._fifo, 1 << 20)
        except BlockingIOError:
            return
        for kind, body in self._records.feed(data, self._number):
            active = self.active
            if kind == b"V":
                self.environment = body
            elif kind == b"X":
                self.cwd = body
            elif active is not None:
                self._record(active, kind, body)

    def _record(self, active: Active, kind: bytes, body: bytes) -> None:
        if kind == b"B" and not active.told:
            active.told = True
            self._send(active.recovery)
            if self.dialect.drops_input:
                self._check_taken(active, TAKEN_CHECK[0])
        elif kind == b"T":
            active.traps = body
        elif kind == b"G":
            active.values.append(body)
        elif kind == b"E" and active.body is None:
            active.body, active.ended = body, time.monotonic()
            if active.end is None:
                active.timer = self.loop.later(MARK_PATIENCE, self._mark_missing)
            self._finish_if_whole()

    def _mark_missing(self) -> None:
        active = self.active
        if active is None or active.body is None or self.terminal is None:
            return
        self.output(self.terminal.read() or b"")
        if self.active is active:
            self._log(self._held)
            self._held, active.exact = b"", False
            active.begin = self.log.end if active.begin is None else active.begin
            active.end = self.log.end
            self._finish_if_whole()

    # ---- the end

    def _finish_if_whole(self) -> None:
        active = self.active
        if active is None or active.body is None or active.end is None or active.begin is None:
            return
        status, _, rest = active.body.partition(b"\t")
        flags, _, self.cwd = rest.partition(b"\t")
        aborted = status.startswith(b"A")
        code = int(status.lstrip(b"A") or 0)
        code = code if code < 256 else 128 + (code & 127)  # ksh counts signals from 256
        if aborted:
            code = 130 if active.interrupted else code or 2
        self._flags = flags
        self._int_trap = listed_trap(active.traps, b"INT")
        self._debug = bool(listed_trap(active.traps, b"DEBUG"))
        finished = Finished(active.cell.number, active.begin, active.end)
        finished.status, finished.cwd, finished.exact = code, self.cwd, active.exact
        finished.duration, finished.values = active.ended - active.started, active.values
        self._conclude(active, finished)

    def _conclude(self, active: Active, finished: Finished) -> None:
        self.loop.cancel(active.timer)
        self.loop.cancel(active.check)
        self.escalation.over()
        self.active = None
        if not active.request.hidden:
            self._last = finished.status if finished.status >= 0 else 128 - finished.status
            finished.restarted = self.notice
            self.notice = b""
            self.log.event(
                "end", finished.end, n=finished.number, begin=finished.begin, status=finished.status,
                state=finished.state, seconds=round(finished.duration, 6),
                cwd=finished.cwd.decode("utf-8", "surrogateescape"),
            )  # fmt: skip
        active.request.done(finished)
        self._next()

    def died(self, code: int | None, signal: int | None) -> None:
        """The shell's process is gone and all it wrote is logged: end the command, make ready for another shell."""
        self._log(self._held)
        self._held = b""
        active, self.terminal = self.active, None
        if self._commands >= 0:
            self.loop.forget(self._commands)
            os.close(self._commands)
            self._commands = -1
        how = f"was killed by signal {signal}" if signal else f"ended with status {code}"
        if active is not None and active.request.hidden and active.request.text == self.dialect.start_up:
            self._rc = False
            self.notice = f"the start-up file ended the shell ({how}): it runs without it".encode()
        elif not self.notice:
            what = "the program that replaced the shell" if self.replaced else "the shell"
            where = os.fsdecode(self.cwd)
            kept = f"it was restarted in {where} with its exported environment"
            self.notice = os.fsencode(f"{what} {how}; {kept}, but lost its {self.dialect.lost}")
        self.waiting = [one for one in self.waiting if not one.hidden]
        if active is None:
            return
        begin = self.log.end if active.begin is None else active.begin
        finished = Finished(active.cell.number, begin, self.log.end if active.end is None else active.end)
        finished.status = -signal if signal else code or 0
        finished.state = "replaced" if self.replaced else "exited"
        finished.cwd, finished.duration = self.cwd, time.monotonic() - active.started
        self._conclude(active, finished)

    def abandon(self) -> None:
        """No shell will come any more: end what still waits."""
        waiting, self.waiting = self.waiting, []
        for request in waiting:
            finished = Finished(self._number, self.log.end, self.log.end)
            finished.status, finished.state, finished.cwd = 127, "exited", self.cwd
            request.done(finished)

    # ---- interrupt

    def interrupt(self) -> None:
        """Interrupt the command that runs; again within two seconds is more insistent. Nothing to do: harmless."""
        active = self.active
        if active is None or self.terminal is None:
            return
        if active.begin is None:
            active.interrupt_at_begin = True
            return
        active.interrupted = True
        self.escalation.interrupt(self.terminal)
        self._check_taken(active, TAKEN_CHECK[0])

    def _check_taken(self, active: Active, seconds: float) -> None:
        """Send the line that reports the end again whenever the shell has emptied its pipe and not reported."""

        def look() -> None:
            if self.active is not active or self._commands < 0:
                return
            if not self._unsent and not _waiting_bytes(self._commands):
                self._send(active.recovery)
            self._check_taken(active, min(TAKEN_CHECK[1], seconds * 2))

        self.loop.cancel(active.check)
        active.check = self.loop.later(seconds, look)

    def close(self) -> None:
        """Give up descriptors and the FIFO; the shell's terminal belongs to the caller."""
        self.loop.forget(self._fifo)
        os.close(self._fifo)
        if self._commands >= 0:
            self.loop.forget(self._commands)
            os.close(self._commands)
            self._commands = -1
