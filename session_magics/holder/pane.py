"""A program on the terminal of a tmux pane, for a holder that keeps all but the terminal itself.

tmux copies what the program writes into a pipe to us, byte for byte, and what we write into the pipe to the terminal.
The program's end is noticed by a pidfd and by the end of the pipe; how it ended is asked of tmux, whose child it is.
"""

from __future__ import annotations

import _signal
import fcntl
import os
import select
import struct
import termios
import time

from session_magics.holder import processes, tmux
from session_magics.holder.child import SpawnError, Terminal
from session_magics.holder.tmux import END_LIMIT, PANE, Call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from session_magics.holder.loop import Loop, Timer

    class Ends(Protocol):
        """Who is told of the end."""

        def ended(self, code: int | None, signal: int | None, *, complete: bool) -> None: ...

        def lose(self, reason: str) -> None: ...

        def hear_again(self) -> None: ...


HOW_IT_ENDED = b"#{pane_dead} #{pane_dead_status} #{pane_dead_signal}"
SOCKET_WAIT = 0.02
"""Seconds for a server to make its socket anew."""
UNREAD_MOST = 2048
"""Bytes that a program has not read from its terminal above which it gets no more. tmux takes whatever it is given and
keeps it in memory; a terminal has room for 4096."""
BURST = (1024, 65536)
"""Bytes given to tmux at once: at first, and while the program reads all it gets."""
SETTLE = 0.0005
"""Seconds from tmux's reading of input until it is certainly in the terminal; it takes 0.05 ms."""
RETRY = (0.002, 0.25)
"""Seconds between tries to give more to a program that does not read: at first, then doubled up to the second."""
ASK_AGAIN = (0.01, 0.5)
"""Seconds between questions how the program ended: at first, then doubled up to the second."""
DRAIN_LIMIT = 1.0
"""Seconds that tmux has to read the rest of the output, where a child of the program keeps the terminal open."""
ANSWER_LIMIT = 3.0
"""Seconds for the answer; it takes 0.005. Beyond it the outcome is given up as unknown."""


class Pane(Terminal):
    """See Terminal. ``pty_fd`` is our end of the pane's pipe; the terminal's other end is with tmux alone."""

    piece = BURST[1]
    answers = True

    def __init__(self, loop: Loop, program: bytes, started: tmux.Started, ends: Ends) -> None:
        super().__init__(started.pid, started.pipe, started.tty_path, started.tty_fd)
        self._loop, self._program, self._ends = loop, program, ends
        self._server = started.server
        self._server_tick = processes.start_tick(started.server)
        self._watches: set[int] = set()
        self._calls: set[Call] = set()
        self._over = self._complete = False  # its end was told, with all output in the pipe
        self._silent = False  # tmux has closed the pipe
        self._burst, self._settled = BURST[0], 0.0
        self._size: tuple[int, int] | None = None
        self._resizing = False
        self._asking: Timer | None = None
        self._ask_until = 0.0
        self._watch_process(self._server, self._server_gone)
        self._watch_process(self.pid, self._program_gone)

    def is_end(self, pid: int) -> bool:
        """Never: the program is a child of tmux, or, with tmux gone, one whose terminal was taken away."""
        return False

    def read(self) -> bytes | None:
        """See Terminal."""
        data = super().read()
        if data is None:
            self._silent = True
            self.ask_end()
        return None if self._complete and not data else data

    # ---- input

    def write(self, data: bytes) -> int:
        """Put bytes into the program's input, as many as it is likely to read soon; 0 if it does not read."""
        if self.tty_fd < 0:
            return len(data)  # nobody will ever read it
        unread = _count(self.tty_fd, termios.FIONREAD)
        waits = time.monotonic() < self._settled or _count(self.pty_fd, termios.TIOCOUTQ)
        if waits or unread >= UNREAD_MOST:
            self.retry = min(RETRY[1], self.retry * 2) if unread >= UNREAD_MOST else RETRY[0]
            return 0
        self._burst = BURST[0] if unread else min(BURST[1], self._burst * 2)
        count = super().write(data[: self._burst])
        self._settled, self.retry = time.monotonic() + SETTLE, RETRY[0]
        return count

    def press(self, key: bytes) -> None:
        """See Terminal."""
        super().write(key)

    def resize(self, rows: int, columns: int) -> None:
        """Have tmux set the size; of several changes at once only the last one is made."""
        self._size = (rows, columns)
        if not self._resizing and not self._over:
            self._resize()

    def _resize(self) -> None:
        size = self._size
        if size is None or self._over:
            self._resizing = False
            return
        self._size, self._resizing = None, True
        words = (b"resize-window", b"-t", PANE.encode(), b"-x", b"%d" % size[1], b"-y", b"%d" % size[0])
        self._call(words, lambda _text: self._resize())

    def foreground(self) -> int | None:
        """See Terminal. Asked of the program, as only tmux could ask the terminal."""
        one = processes.entry(self.pid)
        return one.tpgid if one is not None and not one.gone and one.tpgid > 0 else None

    def signal_foreground(self, number: int) -> None:
        """See Terminal."""
        group = self.foreground()
        if group is not None and group != os.getpgrp():
            try:
                os.killpg(group, number)
            except OSError:
                pass

    # ---- the end

    def _watch_process(self, pid: int, gone: Callable[[], None]) -> None:
        try:
            fd = processes.watch_exit(pid, 0)
        except ProcessLookupError:
            self._loop.later(0.0, gone)
            return
        except OSError:
            return  # a system without pidfds: the end of the pipe tells as well

        def ended(_events: int) -> None:
            self._unwatch(fd)
            gone()

        self._watches.add(fd)
        self._loop.watch(fd, ended)

    def _unwatch(self, fd: int) -> None:
        self._watches.discard(fd)
        self._loop.forget(fd)
        os.close(fd)

    def _server_gone(self) -> None:
        self._server = 0
        self._lose("its tmux server has ended")

    def _program_gone(self) -> None:
        self.release()  # or tmux would never see the end of the output
        self.ask_end()

    def ask_end(self) -> None:
        """Find out how the program ended: its end has been seen, or that of its output."""
        if self._asking is None and not self._over:
            self._ask_until = time.monotonic() + ANSWER_LIMIT
            self._ask(ASK_AGAIN[0])

    def _ask(self, pause: float) -> None:
        if self._over:
            return
        program = processes.entry(self.pid)
        if time.monotonic() > self._ask_until and (program is None or program.gone):
            self._lose("tmux does not tell how it ended")
            return
        # tmux 3.3 can miss the signal and would not reap the program before another child of its ends.
        processes.send(self._server, self._server_tick, _signal.SIGCHLD)
        self._asking = self._loop.later(pause, lambda: self._ask(min(ASK_AGAIN[1], pause * 2)))
        self._call((b"display-message", b"-p", b"-t", PANE.encode(), HOW_IT_ENDED), self._answered)

    def _answered(self, text: bytes) -> None:
        dead, code, signal = [*text.rstrip(b"\n").split(b" "), b"", b""][:3]
        # A pane is dead when tmux has both the status and all of the output, and has put that into the pipe.
        if self._over:
            return
        if not (code.isdigit() or signal.isdigit()):
            if dead == b"0" and self._silent:
                self._reopen()
            return
        if dead != b"1" and time.monotonic() < self._ask_until - ANSWER_LIMIT + DRAIN_LIMIT:
            return
        self._finish()
        self._complete = dead == b"1"
        self._ends.ended(int(code) if code else None, int(signal) if signal else None, complete=self._complete)

    def _reopen(self) -> None:
        """The program lives and the pipe is closed: whoever is attached has done that. Open it again."""
        program = processes.entry(self.pid)
        if program is None or program.gone:
            return
        try:
            pipe = tmux.reopen(self._program)
        except (SpawnError, OSError):
            return  # asked again in a moment
        os.dup2(pipe, self.pty_fd, inheritable=False)
        os.close(pipe)
        os.set_blocking(self.pty_fd, False)
        self._loop.cancel(self._asking)
        self._asking, self._silent = None, False
        self._ends.hear_again()

    def _lose(self, reason: str) -> None:
        if not self._over:
            self._finish()
            self.release()
            self._ends.lose(reason)

    def _finish(self) -> None:
        self._over = True
        self._loop.cancel(self._asking)

    def _call(self, words: tuple[bytes, ...], then: Callable[[bytes], None]) -> None:
        """Run a command of tmux and hand on what it printed; nothing comes of one that cannot be run."""
        if not os.path.exists(tmux.SOCKET) and processes.send(self._server, self._server_tick, _signal.SIGUSR1):
            self._loop.later(SOCKET_WAIT, lambda: self._run(words, then))  # removed by a cleaner: it makes another
        else:
            self._run(words, then)

    def _run(self, words: tuple[bytes, ...], then: Callable[[bytes], None]) -> None:
        if self.pty_fd < 0:
            return
        try:
            call = Call(self._program, *words)
        except OSError:
            return

        def printed(_events: int) -> None:
            if call.read():
                self._drop(call)
                then(call.text)

        self._calls.add(call)
        self._loop.watch(call.fd, printed)

    def _drop(self, call: Call) -> None:
        self._calls.discard(call)
        self._loop.forget(call.fd)
        call.close()

    # ---- giving up

    def close(self) -> None:
        """End the server, with it what is left of the pane. Idempotent."""
        self._finish()
        for call in list(self._calls):
            self._drop(call)
        for fd in list(self._watches):
            self._unwatch(fd)
        super().close()
        if self._server:
            self._end_server(self._server)
            self._server = 0
        try:
            os.unlink(tmux.SOCKET)
        except OSError:
            pass

    def _end_server(self, server: int) -> None:
        """Ask it, so that its clients get their terminals back in order; force it if that takes long."""
        try:
            fd = processes.watch_exit(server, self._server_tick)
        except ProcessLookupError:
            return
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        for number in (_signal.SIGTERM, _signal.SIGKILL):
            processes.send(server, self._server_tick, number)
            if poll.poll(END_LIMIT * 1000):
                break
        os.close(fd)


def _count(fd: int, request: int) -> int:
    """A number of bytes that a descriptor tells; 0 where it does not."""
    try:
        return int(struct.unpack("i", fcntl.ioctl(fd, request, b"\0\0\0\0"))[0])
    except OSError:
        return 0
