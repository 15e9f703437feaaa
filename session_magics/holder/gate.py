"""What tmux starts for a holder: ``python -I -S <this file> program|pipe`` in the session's directory.

As ``program`` it waits for the holder's word and then becomes the session's program, so that nothing is printed before
the pipe of the pane's output is in place. As ``pipe`` it hands the holder its standard input, which is that pipe, and
goes: from then on tmux and the holder share a socket, with no process and no copy between them.
"""

from __future__ import annotations

import _socket
import os
import struct
import sys

if __name__ == "__main__":
    _package = type(sys)("session_magics")  # without its __init__, as in __main__.py
    _package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
    sys.modules["session_magics"] = _package

from session_magics.holder import wire
from session_magics.holder.child import become

GATE = "gate"
"""Name of the socket on which the holder listens while a program starts."""
PROGRAM, PIPE = b"program", b"pipe"
LENGTH_BYTES = 4
"""Before the message for the program, big endian."""


def _connect() -> _socket.socket:
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(GATE)
    return connection


def _receive(connection: _socket.socket, count: int) -> bytes:
    parts = []
    while count and (data := connection.recv(min(count, 1 << 20))):
        parts.append(data)
        count -= len(data)
    if count:
        os._exit(127)  # the holder has gone
    return b"".join(parts)


def _run_program() -> None:
    connection = _connect()
    place = {name: os.environb[name] for name in (b"TMUX", b"TMUX_PANE") if name in os.environb}
    connection.sendall(wire.pack(PROGRAM, b"%d" % os.getpid(), b"%d" % os.getppid(), os.fsencode(os.ttyname(0))))
    (length,) = struct.unpack(">I", _receive(connection, LENGTH_BYTES))
    cwd, rows, columns, umask, argv, env = wire.unpack(_receive(connection, length))
    flat = wire.unpack(env)
    become(
        connection.fileno(),
        wire.unpack(argv),
        dict(zip(flat[::2], flat[1::2], strict=True)) | place,
        cwd,
        (int(rows), int(columns)),
        umask=int(umask),
    )


def _hand_over_pipe() -> None:
    rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, struct.pack("i", 0))
    _connect().sendmsg([wire.pack(PIPE)], [rights])


if __name__ == "__main__":
    _run_program() if sys.argv[1] == "program" else _hand_over_pipe()
