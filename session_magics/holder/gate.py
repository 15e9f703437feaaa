"""What tmux starts for a holder: ``python -I -S <this file> program|pipe`` in the session's directory.

As ``program`` it is the pane's own process. It starts the session's program when the holder says so, so that nothing
is printed before the pipe of the pane's output is in place; it tells the holder how that ended, puts a mark behind its
last byte, and ends likewise when the holder has all. tmux alone would not do: at the end of a pane's process it closes
the terminal while output is on its way through the kernel (tmux 3.3: of 70 kB the last ones in 1 of 25 runs).

As ``pipe`` it hands the holder its standard input, which is that pipe, and goes: from then on tmux and the holder
share a socket, with no process and no copy between them.
"""

from __future__ import annotations

import _signal
import _socket
import os
import struct
import sys

if __name__ == "__main__":
    _package = type(sys)("session_magics")  # without its __init__, as in __main__.py
    _package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    sys.modules["session_magics"] = _package

from session_magics.holder import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

GATE = "gate"
"""Name of the socket on which the holder listens while a program starts."""
PROGRAM, PIPE = b"program", b"pipe"
STARTED, ENDED = b"s", b"e"
"""Frames from the program's side: its pid and why it failed, if it did; its wait status."""
KEPT_FROM_US = (_signal.SIGTSTP, _signal.SIGTTIN, _signal.SIGTTOU, _signal.SIGINT, _signal.SIGQUIT, _signal.SIGTERM)
"""Signals for the program alone. A hang-up ends this process, and that hangs up the program."""
LENGTH_BYTES = 4
"""Before the message for the program, big endian."""


def _connect() -> _socket.socket:
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(GATE)
    except OSError:
        _give_up()
    return connection


def _give_up() -> NoReturn:
    """The holder was killed while it started the program: leave no server behind that nobody knows."""
    if os.getppid() > 1:
        os.kill(os.getppid(), _signal.SIGTERM)
    os._exit(127)


def _receive(connection: _socket.socket, count: int) -> bytes:
    parts = []
    while count and (data := connection.recv(min(count, 1 << 20))):
        parts.append(data)
        count -= len(data)
    if count:
        _give_up()
    return b"".join(parts)


def _run_program() -> None:
    connection = _connect()
    connection.sendall(wire.pack(PROGRAM, b"%d" % os.getppid(), os.fsencode(os.ttyname(0))))
    (length,) = struct.unpack(">I", _receive(connection, LENGTH_BYTES))
    cwd, rows, columns, umask, mark, argv, env = wire.unpack(_receive(connection, length))
    flat = wire.unpack(env)
    place = {name: os.environb[name] for name in (b"TMUX", b"TMUX_PANE") if name in os.environb}
    variables = dict(zip(flat[::2], flat[1::2], strict=True)) | place
    for number in KEPT_FROM_US:
        _signal.signal(number, _signal.SIG_IGN)
    heard, report = os.pipe()
    child = os.fork()
    if child == 0:
        from session_magics.holder.child import become  # here alone, as the parent lives as long as the program

        _take_foreground(os.getpid())
        become(report, wire.unpack(argv), variables, cwd, (int(rows), int(columns)), umask=int(umask))
    os.close(report)
    failure = _read_all(heard).partition(b"\0")[2]
    connection.sendall(wire.frame(STARTED, b"%d" % child, failure))
    if failure:
        os._exit(127)
    status = _wait(child)
    try:
        connection.sendall(wire.frame(ENDED, b"%d" % status))
        os.write(1, mark)
        while connection.recv(1):  # what the program left behind has ended too; nothing comes when the holder goes
            os.write(1, mark)
    except OSError:
        pass
    _end_like(status)


def _wait(child: int) -> int:
    """The status at the end of the program. What stops it as a terminal does is undone: nobody could ever go on with
    it here, and of a program that leads its session the system would not have stopped it."""
    while True:
        _, status = os.waitpid(child, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            return status
        if os.WSTOPSIG(status) in KEPT_FROM_US:
            _take_foreground(child)
            os.killpg(child, _signal.SIGCONT)


def _take_foreground(child: int) -> None:
    try:
        os.setpgid(child, child)
    except OSError:
        pass  # it is so already, or has become a program meanwhile
    try:
        os.tcsetpgrp(0, child)
    except OSError:
        pass  # the terminal is gone


def _end_like(status: int) -> None:
    """End as the program did, so that tmux shows the same status."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        import resource  # only here, as it is for seldom used limits

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one dump is enough
        if -code != _signal.SIGKILL:
            _signal.signal(-code, _signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 255)


def _read_all(fd: int) -> bytes:
    parts = []
    while data := os.read(fd, 65536):
        parts.append(data)
    os.close(fd)
    return b"".join(parts)


def _hand_over_pipe() -> None:
    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", 0))
    _connect().sendmsg([wire.pack(PIPE)], [rights])


if __name__ == "__main__":
    _run_program() if sys.argv[1] == "program" else _hand_over_pipe()
