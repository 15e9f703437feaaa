"""The holder's socket: who may connect, frames in, answers and doorbells out."""

from __future__ import annotations

import _socket
import os
import select
import struct

from session_magics.holder import wire
from session_magics.holder.loop import GONE, READ, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from session_magics.holder.loop import Loop

BACKLOG = 512
"""Connections that wait to be accepted: beyond it Linux refuses one at once, which looks like a dead holder."""
SOCKET_CHECK = 20.0
"""Seconds between looks whether the socket's file is still there; a cleaner of temporary files may remove it."""
CLIENT_LIMIT = 250
"""Connections at once; a further one takes the place of the oldest that has never asked for anything. A process may
have 256 descriptors by default on macOS and 1024 on Linux."""
OUT_LIMIT = 4 * 1024 * 1024
"""Bytes a client may leave unread; answers are small, so a slower one is gone or hostile."""


def _peer_uid(connection: _socket.socket) -> int:
    """The user at the other end."""
    credentials = getattr(_socket, "SO_PEERCRED", None)
    if credentials is not None:
        return int(struct.unpack("3i", connection.getsockopt(_socket.SOL_SOCKET, credentials, 12))[1])
    return int(struct.unpack_from("II", connection.getsockopt(0, 1, 76))[1])  # macOS: SOL_LOCAL, LOCAL_PEERCRED


class Client:
    """One connection. ``watch`` is what it wants to be woken for: (log offset, index size), or None."""

    def __init__(self, server: Server, connection: _socket.socket) -> None:
        self._server, self._connection = server, connection
        self.fd = connection.fileno()
        self.watch: tuple[int, int] | None = None
        self.asked = False
        """Whether a whole frame has ever come."""
        self._decoder = wire.Decoder()
        self._out = bytearray()

    def send(self, kind: bytes, *fields: bytes) -> None:
        """Send a frame; what does not fit now follows when the client reads. Dropped if it has gone."""
        if self.fd < 0:
            return
        self._out += wire.frame(kind, *fields)
        self._flush()

    def hung_up(self) -> bool:
        """Whether nobody is there any more, though not all that was said may have been heard."""
        poll = select.poll()
        poll.register(self.fd, 0)
        return bool(poll.poll(0))

    def _flush(self) -> None:
        try:
            while self._out:
                del self._out[: self._connection.send(self._out)]
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        if len(self._out) > OUT_LIMIT:
            self.close()
            return
        self._server.loop.watch(self.fd, self.event, READ | WRITE if self._out else READ)

    def event(self, events: int) -> None:
        """What poll has to say about the connection."""
        if events & WRITE:
            self._flush()
        if self.fd < 0 or not events & (READ | GONE):
            return
        try:
            data = self._connection.recv(1 << 20)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        try:
            for kind, fields in self._decoder.feed(data):
                self.asked = True
                self._server.handle(self, kind, fields)
        except (wire.BadFrame, IndexError) as error:
            self.send(wire.ERROR, b"0", b"bad-frame", str(error).encode())
            self.close()

    def close(self) -> None:
        """Hang up; idempotent."""
        if self.fd >= 0:
            self._server.loop.forget(self.fd)
            self._server.clients.pop(self, None)
            self._connection.close()
            self.fd = -1


class Server:
    """Listens on ``sock`` in the working directory, which is the session's."""

    def __init__(self, loop: Loop, handle: Callable[[Client, bytes, list[bytes]], None]) -> None:
        self.loop, self.handle = loop, handle
        self.clients: dict[Client, None] = {}  # in the order in which they came
        self._listen()
        loop.later(SOCKET_CHECK, self._check)

    def _listen(self) -> None:
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._socket.setblocking(False)
        try:
            os.unlink("sock")
        except FileNotFoundError:
            pass
        umask = os.umask(0o177)
        try:
            self._socket.bind("sock")  # relative, since an absolute path may be longer than an address can be
        finally:
            os.umask(umask)
        self._socket.listen(BACKLOG)
        self._inode = os.stat("sock").st_ino
        self.loop.watch(self._socket.fileno(), self._accept)

    def _check(self) -> None:
        try:
            there = os.stat("sock").st_ino == self._inode
        except OSError:
            there = False
        if not there:
            self.loop.forget(self._socket.fileno())
            self._socket.close()
            try:
                self._listen()
            except OSError:  # the directory is gone or not writable: try again later
                self._inode = -1
        self.loop.later(SOCKET_CHECK, self._check)

    def _accept(self, _events: int) -> None:
        for _ in range(BACKLOG):
            try:
                fd, _ = self._socket._accept()  # type: ignore[attr-defined]
            except OSError:
                return
            self._admit(_socket.socket(fileno=fd))

    def _admit(self, connection: _socket.socket) -> None:
        connection.setblocking(False)
        if _peer_uid(connection) != os.geteuid():
            connection.close()
            return
        if not self._make_room():
            connection.close()
            return
        client = Client(self, connection)
        self.clients[client] = None
        self.loop.watch(client.fd, client.event)
        client.send(wire.HELLO, str(wire.VERSION).encode(), str(os.getpid()).encode(), *wire.FEATURES)

    def _make_room(self) -> bool:
        if len(self.clients) < CLIENT_LIMIT:
            return True
        silent = next((one for one in self.clients if not one.asked), None)
        if silent is not None:
            silent.close()
        return silent is not None

    def ring(self, log_end: int, index_size: int) -> None:
        """Wake every client that waits for less than what there is now."""
        for client in list(self.clients):
            if client.watch and (log_end > client.watch[0] or index_size > client.watch[1]):
                client.watch = None
                client.send(wire.BELL, str(log_end).encode(), str(index_size).encode())

    def hang_up(self) -> None:
        """Hang up everywhere."""
        for client in list(self.clients):
            client.close()

    def close(self) -> None:
        """Hang up everywhere and remove the socket."""
        self.hang_up()
        self.loop.forget(self._socket.fileno())
        self._socket.close()
        try:
            os.unlink("sock")
        except OSError:
            pass
