"""Starting a program in a tmux server of its own, and asking that server. Loaded for sessions held by tmux alone."""

from __future__ import annotations

import _signal
import _socket
import binascii
import errno
import os
import select
import struct
import sys
import time

from session_magics.holder import gate, processes, wire
from session_magics.holder.child import RESET_SIGNALS, USED_UP, SpawnError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SOCKET = "tmux"
"""Name of the server's socket in the session's directory."""
PANE = "%0"
"""The pane: a new server counts from 0, and an id can mean no other, as a name can."""
HISTORY_LINES = 2000
"""Lines that tmux keeps for scrolling back: about 1 MB of memory when full. All output is in the session's log."""
SPAWN_LIMIT = 4.0
"""Seconds for tmux to start the program; it takes 0.05. Less than a starter waits for the holder."""
REOPEN_LIMIT = 1.0
"""Seconds for tmux to open a pipe again."""
END_LIMIT = 0.5
"""Seconds for a server to end when asked; it takes a few milliseconds."""
MARK_BYTES = 16
"""Random bytes in the mark of the output's end."""
ADDRESS_BYTES = 100
"""Longest path that is given to tmux; a longer one is replaced by one relative to the session's directory."""


class Call:
    """One run of the tmux command. ``fd`` reads what it prints, errors included, to its end; ``close`` gives it up."""

    def __init__(self, program: bytes, *arguments: bytes) -> None:
        self.fd, writing = os.pipe()
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, writing, 1),
            (os.POSIX_SPAWN_DUP2, writing, 2),
        ]
        argv = [program, b"-S", address(), b"-f", os.devnull.encode(), *arguments]
        try:
            self.pid = os.posix_spawn(
                program, argv, os.environb, file_actions=actions, setsigdef=RESET_SIGNALS, setsigmask=()
            )
        except OSError:
            os.close(self.fd)
            raise
        finally:
            os.close(writing)
        os.set_blocking(self.fd, False)
        self.text = b""

    def read(self) -> bool:
        """Take in what was printed; True when that was all."""
        try:
            while data := os.read(self.fd, 65536):
                self.text += data
        except BlockingIOError:
            return False
        return True

    def failed(self) -> bool:
        """Whether it ended with an error, once all was read; waits for its end."""
        try:
            return os.waitpid(self.pid, 0)[1] != 0
        except ChildProcessError:
            return False

    def close(self) -> None:
        """Give the descriptor up, and the process if it hangs; idempotent."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1
            processes.send(self.pid, processes.start_tick(self.pid), _signal.SIGKILL)


def address() -> bytes:
    """The path of the server's socket, for a process in the present directory, which is the session's."""
    path = os.path.join(os.getcwdb(), SOCKET.encode())
    return path if len(path) <= ADDRESS_BYTES else SOCKET.encode()


class Started:
    """A program that runs in a new server: pids, our end of the pane's pipe, its terminal, the pane's own process.

    ``mark`` comes in the output behind the program's last byte; ``waiter`` tells how the program has ended.
    """

    def __init__(self, meeting: _Meeting, pid: int, waiter: _socket.socket, mark: bytes) -> None:
        self.pid, self.server, self.tty_path = pid, meeting.server, meeting.tty_path
        self.waiter, self.mark, self.decoder = waiter, mark, meeting.decoder
        self.pipe, meeting.pipe = meeting.pipe, -1
        self.tty_fd, meeting.tty_fd = meeting.tty_fd, -1


def start(
    program: bytes,
    argv: list[bytes],
    env: Mapping[bytes, bytes],
    cwd: bytes,
    size: tuple[int, int],
    *,
    name: bytes,
    umask: int,
) -> Started:
    """Start a server with one pane, and in it the program; SpawnError if that does not come to an exec.

    Everything that tmux is told is told in one call: that a dead pane remains (with its status), and what it runs.
    """
    for left in (SOCKET, gate.GATE):  # of a holder that was killed; its server is found by other means
        try:
            os.unlink(left)
        except FileNotFoundError:
            pass
    meeting = _Meeting()
    call = None
    try:
        call = Call(program, *_commands(size, name))
        meeting.wait(call)
        flat = [part for pair in env.items() for part in pair]
        numbers = [b"%d" % one for one in (*size, umask)]
        mark = b"\033]%b\007" % binascii.hexlify(os.urandom(MARK_BYTES))  # which no terminal shows
        pid, waiter = meeting.run(wire.pack(cwd, *numbers, mark, wire.pack(*argv), wire.pack(*flat)))
        return Started(meeting, pid, waiter, mark)
    except BaseException as error:
        _end_server(program, meeting.server)
        if isinstance(error, OSError):
            raise SpawnError(f"tmux: {error.strerror or error}") from None
        raise
    finally:
        if call is not None:
            call.close()
        meeting.close()


def reopen(program: bytes) -> int:
    """Have tmux open the pane's pipe anew, in place of the one it has; our end. Raises SpawnError, OSError."""
    meeting = _Meeting(REOPEN_LIMIT)
    call = None
    try:
        call = Call(program, *_hand_over())
        meeting.wait(call, program=False)
        pipe, meeting.pipe = meeting.pipe, -1
        return pipe
    finally:
        if call is not None:
            call.close()
        meeting.close()


def _end_server(program: bytes, server: int) -> None:
    if server:
        processes.send(server, processes.start_tick(server), _signal.SIGKILL)
        return
    try:
        call = Call(program, b"kill-server")
    except OSError:
        return  # then there is no server either
    poll = select.poll()
    poll.register(call.fd, select.POLLIN)
    poll.poll(END_LIMIT * 1000)
    call.close()


def _commands(size: tuple[int, int], name: bytes) -> list[bytes]:
    rows, columns = size
    python, script = _helper()
    commands: list[tuple[bytes, ...]] = [
        (b"start-server",),
        (b"set", b"-g", b"remain-on-exit", b"on"),
        (b"set", b"-g", b"history-limit", b"%d" % HISTORY_LINES),
        (b"set", b"-g", b"status", b"off"),  # the program has the whole window
        (
            b"new-session", b"-d", b"-s", name, b"-x", b"%d" % columns, b"-y", b"%d" % rows,
            b"--", python, b"-I", b"-S", script, gate.PROGRAM,
        ),
        (b"set", b"-p", b"-t", PANE.encode(), b"remain-on-exit", b"on"),  # and no pane that somebody opens beside it
        (b"set", b"-g", b"remain-on-exit", b"off"),
        # Whoever attaches. Where no window has that size, or a new one is opened with it, tmux 3.3 crashes on it.
        (b"set", b"-w", b"-t", PANE.encode(), b"window-size", b"manual"),
        _hand_over(),
    ]  # fmt: skip
    words: list[bytes] = []
    for command in commands:
        words += [*command, b";"]
    return words[:-1]


def _helper() -> tuple[bytes, bytes]:
    return os.fsencode(sys.executable), os.fsencode(os.path.abspath(gate.__file__))


def _hand_over() -> tuple[bytes, ...]:
    command = b"exec %b -I -S %b pipe" % tuple(map(_quoted, _helper()))
    return (b"pipe-pane", b"-IO", b"-t", PANE.encode(), command)


def _quoted(word: bytes) -> bytes:
    """For a shell, by way of tmux, which expands formats and times."""
    return b"'" + word.replace(b"'", b"'\\''").replace(b"#", b"##").replace(b"%", b"%%") + b"'"


class _Meeting:
    """Where the two processes that tmux starts come to the holder."""

    def __init__(self, limit: float = SPAWN_LIMIT) -> None:
        self._until = time.monotonic() + limit
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._socket.bind(gate.GATE)
        self._socket.listen(2)
        self._program: _socket.socket | None = None
        self.pipe = self.tty_fd = -1
        self.decoder = wire.Decoder()
        self.server = 0
        self.tty_path = b""

    def wait(self, call: Call, *, program: bool = True) -> None:
        """Wait until the pipe, and the program, are here; SpawnError says what tmux said instead."""
        poll = select.poll()
        poll.register(self._socket.fileno(), select.POLLIN)
        poll.register(call.fd, select.POLLIN)
        while (program and self._program is None) or self.pipe < 0:
            ready = poll.poll(self._left() * 1000)
            if not ready:
                raise SpawnError("tmux does not answer")
            for fd, _ in ready:
                if fd != call.fd:
                    self._admit()
                elif call.read():
                    poll.unregister(fd)
                    if call.failed():
                        raise SpawnError(_complaint(call.text.decode("utf-8", "replace").strip()))

    def _admit(self) -> None:
        fd, _ = self._socket._accept()  # type: ignore[attr-defined]
        connection = _socket.socket(fileno=fd)
        connection.settimeout(self._left())
        message, rights, _, _ = connection.recvmsg(4096, _socket.CMSG_SPACE(4))
        kind, *fields = wire.unpack(message) or [b""]
        if kind == gate.PROGRAM:
            self._program, self.server, self.tty_path = connection, int(fields[0]), fields[1]
            self.tty_fd = os.open(self.tty_path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
            return
        connection.close()
        for _, _, data in rights:
            (self.pipe,) = struct.unpack("i", data)
            os.set_inheritable(self.pipe, False)

    def _left(self) -> float:
        return max(0.001, self._until - time.monotonic())

    def run(self, message: bytes) -> tuple[int, _socket.socket]:
        """Have the program start; its pid, and the connection that tells its end. SpawnError says why it failed."""
        assert self._program is not None
        self._program.settimeout(self._left())
        self._program.sendall(struct.pack(">I", len(message)) + message)
        while piece := self._program.recv(4096):
            for _, (pid, failure) in self.decoder.feed(piece):
                if failure:
                    raise SpawnError(failure.decode("utf-8", "surrogateescape"))
                waiter, self._program = self._program, None
                waiter.setblocking(False)
                return int(pid), waiter
        raise SpawnError("the terminal could not be set up")

    def close(self) -> None:
        """Give everything up that was not taken."""
        self._socket.close()
        if self._program is not None:
            self._program.close()
        for fd in (self.pipe, self.tty_fd):
            if fd >= 0:
                os.close(fd)
        try:
            os.unlink(gate.GATE)
        except OSError:
            pass


def _complaint(text: str) -> str:
    """What tmux says of a start, and what is meant by it."""
    if text.endswith(os.strerror(errno.ENOSPC)):
        return f"tmux has no terminal to be had: {USED_UP}"
    return f"tmux: {text or 'it failed'}"
