"""Cell commands in a shell session: when each begins and ends, its output's place in the log, and its status."""

from __future__ import annotations

import binascii
import os
import time

from session_magics.holder.attendant import Attendant
from session_magics.holder.command import Active, Finished, Notice, Request
from session_magics.holder.dialects import Cell, dialect, mark
from session_magics.holder.keys import press
from session_magics.holder.marks import BEGIN, END, Cutter
from session_magics.holder.pipe import Pipe, Reader, make_fifo, open_fifo
from session_magics.holder.processes import entry
from session_magics.holder.records import Records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from session_magics.holder.child import Terminal
    from session_magics.holder.farpipe import FarPipe
    from session_magics.holder.logfile import LogWriter
    from session_magics.holder.loop import Loop

__all__ = ["Finished", "Request", "Shell"]

ANNOUNCE_DELAY = 0.005
"""Seconds after which the begin of a silent command is told; what ends sooner costs nobody a wake-up before."""
EXEC_CHECK = 0.05
"""Seconds after which a process that closed its commands without ending counts as replaced."""
START_LIMIT = 10.0
"""Seconds a start-up file may take before it is interrupted."""


class Shell:
    """The parent side of the protocol for one shell process after another on one log.

    ``terminal`` is the live shell, or None between two. Calls come from the loop's thread only.
    """

    def __init__(
        self, loop: Loop, log: LogWriter, name: str, program: bytes, *, rc: bool, changed: Callable[[], None]
    ) -> None:
        self.loop, self.log, self._changed = loop, log, changed
        self.dialect = dialect(name, program, os.getcwdb(), rc=rc)
        self.terminal: Terminal | None = None
        self.active: Active | None = None
        self.waiting: list[Request] = []
        self.environment = b""
        self.cwd = b""
        self.replaced = False
        self._notice = Notice()
        self.ready = False
        self._number = 0
        self._last = 0
        self._rc = rc
        self._cutter = Cutter()
        self._records = Records()
        self._flags = self._traps = b""
        self._pipe: Pipe | FarPipe | None = None
        self._attendant: Attendant | None = None
        self._at_prompt = False  # of a shell that has to be asked by a key: that it reads keys
        self._fifo = Reader(loop, "records", self._take_records)
        if self.dialect.keys:
            make_fifo("lines")  # before the shell that is going to read it

    def adopt(self, terminal: Terminal, commands: int, *, cwd: bytes) -> None:
        """Take a shell that was just started with ``commands`` as the writing end of its standard input."""
        initial = self._prepare(terminal)
        if self.dialect.keys:
            os.close(commands)
            commands = open_fifo("lines")
        pipe = Pipe(self.loop, commands, lambda: self._pipe_gone(terminal))
        keys = self.dialect.keys
        self._begin(pipe, Attendant(self.loop, terminal, pipe, keys, lambda: self._deaf(terminal)), initial, cwd)

    def _prepare(self, terminal: Terminal) -> bytes:
        """Forget the shell before; the first words for this one."""
        self.terminal = terminal
        self.replaced = self.ready = self._at_prompt = False
        self._flags = self._traps = b""
        initial = self.dialect.init(terminal.tty_path)
        for name, text in self.dialect.files().items():
            terminal.put(name, text)
        return initial

    def _begin(self, pipe: Pipe | FarPipe, attendant: Attendant, initial: bytes, cwd: bytes) -> None:
        terminal, self._pipe, self._attendant = self.terminal, pipe, attendant
        pipe.send(initial)
        first = self.dialect.start_up if self._rc else b":"
        restore = self.dialect.restore(self.environment, self.cwd or cwd)
        self.waiting[:0] = [Request(text, hidden=True, done=self._started) for text in (first, restore)]
        self.loop.later(START_LIMIT, lambda: self._start_limit(terminal))
        self._next()

    def _started(self, finished: Finished) -> None:
        """A command of ours is over: after the second the shell is the user's."""
        self.ready = finished.state == "done" and not any(one.hidden for one in self.waiting)

    def _start_limit(self, terminal: Terminal | None) -> None:
        if self.terminal is not terminal or self.ready:
            return
        if self.active is None and self._attendant is not None:
            self._attendant.interrupt(None)  # a start-up file that the shell reads before it asks for commands
        elif self.active is not None and self.active.request.hidden:
            self.interrupt()

    def run(self, request: Request) -> None:
        """Run the text when the shell is free; only commands of ours are ever queued behind another."""
        self.waiting.append(request)
        self._next()

    @property
    def busy(self) -> bytes:
        """The first line of the user's command that runs or waits; empty if there is none."""
        queue = ([self.active.request] if self.active else []) + self.waiting
        return next((one.title or b"#" for one in queue if not one.hidden), b"")

    @property
    def visible_end(self) -> int:
        """How far the log may be read now: not beyond the end of a command whose status is still to come."""
        active = self.active
        return self.log.end if active is None or active.end is None else active.end

    def _next(self) -> None:
        terminal, pipe, attendant = self.terminal, self._pipe, self._attendant
        if self.active or not self.waiting or not terminal or not pipe or not attendant:
            return
        if self.dialect.keys and not self._at_prompt:
            return
        request = self.waiting.pop(0)
        self._number += 1
        nonces = binascii.hexlify(os.urandom(24))
        begin, end = nonces[:24], nonces[24:]
        cell = Cell(self._number, request.text, begin, end)
        cell.flags, cell.traps, cell.last, cell.hidden = self._flags, self._traps, self._last, request.hidden
        first, second = self.dialect.command(cell)
        self.active = Active(request, cell, second)
        self._cutter.expect(mark(begin), mark(end))
        if self.dialect.keys:
            press(terminal, first)
            attendant.attend(self.active)
        else:
            terminal.reset()
            pipe.send(first)

    def _pipe_gone(self, terminal: Terminal) -> None:
        """No reader is left: if the process still lives, ``exec`` has put another program into its place."""

        def look() -> None:
            self.replaced = terminal is self.terminal and entry(terminal.pid) is not None

        self.loop.later(EXEC_CHECK, look)

    # ---- what comes from the terminal

    def output(self, data: bytes) -> None:
        """Take bytes of the terminal: log them without the marks, and note where the command begins and ends."""
        for text, behind in self._cutter.feed(data):
            active = self.active
            if text and active is not None and active.begin is not None:
                self._announce(active)
            self._log(text)  # outside the marks it is idle output: background jobs, prompts' hooks
            if behind == BEGIN and active is not None:
                self._begins(active)
            elif behind == END and active is not None:
                active.end = self.log.end
                self._finish_if_whole()
        if self.active is not None and self.active.body is not None:
            self._await_mark(self.active)

    def _begins(self, active: Active) -> None:
        active.begin = self.log.end
        active.news = self.loop.later(ANNOUNCE_DELAY, lambda: self._announce(active))
        if active.interrupt_at_begin:
            self.interrupt()

    def _announce(self, active: Active) -> None:
        """Tell that the command has begun, once: with its first output, or when it has run for a moment."""
        if active.announced or active.request.hidden or active.begin is None:
            return
        self._log_begin(active)
        active.request.begun(active.cell.number, active.begin, self._notice.take())

    def _log_begin(self, active: Active) -> None:
        self.loop.cancel(active.news)
        self.log.event("begin", active.begin or 0, **active.announce())

    def _log(self, data: bytes) -> None:
        if data:
            self.log.append(data)

    # ---- what comes from the FIFO

    def _take_records(self, data: bytes) -> None:
        for kind, body in self._records.feed(data, self._number):
            active = self.active
            if kind == b"V":
                self.environment = body
            elif kind == b"X":
                self.cwd = body
                if active is not None:
                    active.leaves = True
            elif kind == b"R":
                self._prompts()
            elif kind == b"B" and (active is None or active.told):
                if self._pipe is not None:
                    self._pipe.send(self.dialect.nothing)
            elif active is not None:
                self._record(active, kind, body)

    def _prompts(self) -> None:
        """The shell is about to read keys: a command that has begun was given up."""
        self._at_prompt = True
        if self.active is None:
            self._next()
        elif self.active.begin is not None and self.terminal is not None and self.dialect.keys:
            press(self.terminal, self.dialect.keys[1])

    def _record(self, active: Active, kind: bytes, body: bytes) -> None:
        if kind == b"B":
            active.told = True
            if self.dialect.keys and self.terminal:
                self.terminal.reset()  # which drops a key that was pressed twice
            if self._pipe and self._attendant:
                self._pipe.send(active.second)
                self._attendant.attend(active)
        elif kind == b"E" and active.body is None:
            active.body, active.ended = body, time.monotonic()
            self._await_mark(active)
            self._finish_if_whole()
        else:
            active.hear(kind, body)

    def _await_mark(self, active: Active) -> None:
        """Give up on the mark of a command whose end is on record after a while without output."""
        if active.end is None and self.terminal is not None:
            self.loop.cancel(active.timer)
            active.timer = self.loop.later(self.terminal.mark_patience, self._mark_missing)

    def _mark_missing(self) -> None:
        active = self.active
        if active is None or active.body is None or self.terminal is None:
            return
        self.output(self.terminal.read() or b"")
        if self.active is active:
            self._log(self._cutter.release())
            active.exact = False
            active.begin = self.log.end if active.begin is None else active.begin
            active.end = self.log.end
            self._finish_if_whole()

    # ---- the end

    def _finish_if_whole(self) -> None:
        active = self.active
        finished = active.outcome() if active is not None else None
        if active is None or finished is None:
            return
        self.cwd = finished.cwd
        self._flags, self._traps = active.flags, active.traps
        self._conclude(active, finished)

    def _conclude(self, active: Active, finished: Finished) -> None:
        self._over(active)
        if not active.request.hidden:
            self._last = finished.status if finished.status >= 0 else 128 - finished.status
            finished.restarted = self._notice.take()
            # on record first: whoever hears of the end may look there
            if active.begin is not None and not active.announced:
                self._log_begin(active)
            self.log.event("end", finished.end, **finished.record())
        active.request.done(finished)
        self._changed()
        self._next()

    def _over(self, active: Active) -> None:
        self.loop.cancel(active.timer)
        self.loop.cancel(active.news)
        if self._attendant is not None:
            self._attendant.over(active)
        self.active = None

    def died(self, code: int | None, signal: int | None, *, again: bool) -> None:
        """The shell's process is gone and all it wrote is logged: end the command, make ready for another shell.

        A command that it had not read yet is run by the next one, if there is one (``again``), but by no third one.
        """
        self._log(self._cutter.release())
        active, self.terminal = self.active, None
        self._close_pipe()
        code = code or (active.exit_status if active else 0)
        self.replaced |= active is not None and not signal and active.replaced_itself
        how = f"was killed by signal {signal}" if signal else f"ended with status {code}"
        starting = active.request if active is not None else next(iter(self.waiting), None)
        if starting is not None and starting.hidden and starting.text == self.dialect.start_up:
            self._rc = False
            self.dialect = self.dialect.without_rc()
            self._notice.without_rc(how)
        else:
            self._notice.ended(how, self.cwd, self.dialect.lost, replaced=self.replaced)
        self.waiting = [one for one in self.waiting if not one.hidden]
        if active is None:
            return
        if again and not (active.told or active.begin is not None or active.request.hidden or active.request.put_back):
            self._over(active)
            active.request.put_back = True
            self.waiting.insert(0, active.request)
            return
        finished = active.cut_short(self.log.end, self.cwd)
        finished.status = -signal if signal else code
        finished.state = "replaced" if self.replaced else "exited"
        self._conclude(active, finished)

    def abandon(self) -> None:
        """No shell will come any more: end what still waits."""
        waiting, self.waiting = self.waiting, []
        for request in waiting:
            request.done(Finished.of_none(self._number, self.log.end, self.cwd))

    # ---- interrupt

    def interrupt(self) -> None:
        """Interrupt the command that runs; again within two seconds is more insistent. Nothing to do: harmless."""
        active = self.active
        if active is None or self.terminal is None:
            return
        if active.begin is None:
            active.interrupt_at_begin = True
            return
        if self._attendant is not None:
            self._attendant.interrupt(active)

    def _deaf(self, terminal: Terminal) -> None:
        """The shell cannot report any more: another one has to take its place."""
        self._notice.deaf(self.cwd, self.dialect.lost)
        terminal.kill_program()

    def _close_pipe(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None

    def close(self) -> None:
        """Give up descriptors and the FIFO; the shell's terminal belongs to the caller."""
        self._fifo.close()
        self._close_pipe()
