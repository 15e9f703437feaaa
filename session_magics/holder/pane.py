"""A program on the terminal of a tmux pane, for a holder that keeps all but the terminal itself.

tmux copies what the program writes into a pipe to us, byte for byte, and what we write into the pipe to the terminal.
How the program ended is told by its parent, a process of ours in the pane (see ``gate``).
"""

from __future__ import annotations

import _signal
import _socket
import fcntl
import os
import select
import struct
import termios
import time

from session_magics.holder import gate, processes, tmux
from session_magics.holder.child import SpawnError, Terminal
from session_magics.holder.tmux import END_LIMIT, PANE, Call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from session_magics.holder.loop import Loop, Timer

    class Ends(Protocol):
        """Who is told of the end."""

        def ended(self, code: int | None, signal: int | None) -> None: ...

        def lose(self, reason: str) -> None: ...

        def hear_again(self) -> None: ...


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
MARK_LIMIT = 1.0
"""Seconds for the mark behind the program's last byte; it takes 0.001, unless the terminal is stopped (Ctrl-S)."""
GONE_PAUSE = 0.1
"""Seconds between the end of the pane's process and that of its server, if both were killed."""
REOPEN_PAUSE = 0.05
"""Seconds until a pipe that was closed is opened again, if the server is still there then."""


class Pane(Terminal):
    """See Terminal. ``pty_fd`` is our end of the pane's pipe; the terminal's other end is with tmux alone."""

    piece = BURST[1]
    answers = True

    def __init__(self, loop: Loop, program: bytes, started: tmux.Started, ends: Ends) -> None:
        super().__init__(started.pid, started.pipe, started.tty_path, started.tty_fd)
        self._loop, self._program, self._ends = loop, program, ends
        self._server = started.server
        self._server_tick = processes.start_tick(started.server)
        self._server_fd = -1
        self._calls: set[Call] = set()
        self._waiter, self._mark = started.waiter, started.mark
        self._decoder = started.decoder
        self._status: int | None = None  # known, while the mark is awaited
        self._held = b""  # may be the beginning of the mark
        self._marked: Timer | None = None
        self._over = False  # its end was told
        self._burst, self._settled = BURST[0], 0.0
        self._size: tuple[int, int] | None = None
        self._resizing = False
        loop.watch(self._waiter.fileno(), self._hear)
        loop.later(0.0, lambda: self._hear(0))  # the end of a short program came with its start
        self._watch_server()

    def is_end(self, pid: int) -> bool:
        """Never: it is no child of ours, or has become one only because its terminal was taken away."""
        return False

    def read(self) -> bytes | None:
        """See Terminal; the mark of the end is taken out."""
        data = super().read()
        if data is None:
            self._pipe_closed()
            return self._take_held() or None
        seen = self._take_held() + data
        if (at := seen.find(self._mark)) >= 0:
            self.at_end = True
            self._loop.later(0.0, self._end)  # when this is in the log
            return seen[:at] + seen[at + len(self._mark) :]
        begin = seen.rfind(self._mark[:1], max(0, len(seen) - len(self._mark)))
        if begin >= 0 and self._mark.startswith(seen[begin:]) and self._has_ended():
            self._held = seen[begin:]
            return seen[:begin]
        return seen

    def mark_end(self) -> None:
        """See Terminal; asks for another mark, as what the program left behind may have written after the first."""
        try:
            self._waiter.send(b"m")
            self.at_end = False
        except OSError:
            pass  # it has gone, and the terminal with it

    def _has_ended(self) -> bool:
        """Whether the status is here, as it is before the first byte of the mark."""
        if self._status is None and not self._over:
            self._hear(0)
        return self._status is not None

    def _take_held(self) -> bytes:
        held, self._held = self._held, b""
        return held

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

    def _hear(self, _events: int) -> None:
        """What the pane's own process says: the status of the program, or, by going, that nobody will ever tell."""
        data, gone = b"", False
        try:
            data = self._waiter.recv(4096)
            gone = not data
        except BlockingIOError:
            pass
        except OSError:
            gone = True
        for kind, fields in self._decoder.feed(data):
            if kind == gate.ENDED:
                self._status = int(fields[0])
                self._marked = self._loop.later(MARK_LIMIT, self._end)
        if gone:
            self._loop.forget(self._waiter.fileno())
            if self._status is None:  # and if it went with the server, that is told in a moment
                self._loop.later(GONE_PAUSE, lambda: self._lose("what waited for its program in tmux was killed"))

    def _end(self) -> None:
        """Tell the end; the output is whole if the mark has come."""
        if self._over:
            return
        if self._has_ended() and self._status is not None:
            self._finish()
            code = os.waitstatus_to_exitcode(self._status)
            self._ends.ended(code if code >= 0 else None, -code if code < 0 else None)

    def _watch_server(self) -> None:
        try:
            fd = processes.watch_exit(self._server, self._server_tick)
        except ProcessLookupError:
            self._loop.later(0.0, self._server_gone)
            return
        self._server_fd = fd
        self._loop.watch(fd, lambda _events: self._server_gone())

    def _server_gone(self) -> None:
        self._loop.forget(self._server_fd)
        self._server = 0
        self._lose("its tmux server has ended")

    def _lose(self, reason: str) -> None:
        if not self._over:
            self._finish()
            self.release()
            self._ends.lose(reason)

    def _finish(self) -> None:
        self._over = True
        self._loop.cancel(self._marked)

    def _pipe_closed(self) -> None:
        if not self._over:
            self._loop.later(REOPEN_PAUSE, self._reopen)

    def _reopen(self) -> None:
        """The server lives and the pipe is closed: whoever is attached has done that. Open it again."""
        if self._over or not self._server:
            return
        if self._status is not None:
            self._end()
            return
        try:
            pipe = tmux.reopen(self._program)
        except (SpawnError, OSError):
            self._pipe_closed()
            return
        os.dup2(pipe, self.pty_fd, inheritable=False)
        os.close(pipe)
        os.set_blocking(self.pty_fd, False)
        self._ends.hear_again()

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
        self._loop.forget(self._waiter.fileno())
        self._dismiss_waiter()
        super().close()
        if self._server_fd >= 0:
            self._loop.forget(self._server_fd)
            self._end_server()
            os.close(self._server_fd)
            self._server_fd, self._server = -1, 0
        try:
            os.unlink(tmux.SOCKET)
        except OSError:
            pass

    def _dismiss_waiter(self) -> None:
        """Let the pane's process end, and tmux reap it: where pid 1 reaps nobody, orphans stay for ever."""
        if self._status is not None:
            poll = select.poll()
            poll.register(self._waiter.fileno(), select.POLLIN)
            try:
                self._waiter.shutdown(_socket.SHUT_WR)
                poll.poll(END_LIMIT * 1000)
            except OSError:
                pass
        self._waiter.close()

    def _end_server(self) -> None:
        """Ask it, so that its clients get their terminals back in order; force it if that takes long."""
        poll = select.poll()
        poll.register(self._server_fd, select.POLLIN)
        for number in (_signal.SIGTERM, _signal.SIGKILL):
            if self._server and processes.send(self._server, self._server_tick, number):
                poll.poll(END_LIMIT * 1000)
        if self._server:
            try:
                os.waitpid(self._server, os.WNOHANG)
            except OSError:
                pass  # reaped already


def _count(fd: int, request: int) -> int:
    """A number of bytes that a descriptor tells; 0 where it does not."""
    try:
        return int(struct.unpack("i", fcntl.ioctl(fd, request, b"\0\0\0\0"))[0])
    except OSError:
        return 0
