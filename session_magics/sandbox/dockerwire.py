"""Docker's own protocol: requests to an engine, and the connection that carries a program's streams.

Needs nothing but the standard library. An engine's address is ``unix:///path`` or ``tcp://host:port``.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import struct
from collections.abc import Iterator
from typing import Any

PIECE = 64 * 1024
ANSWER = 4.0
"""Seconds for the engine to answer what it knows without a look at the disk; it takes some milliseconds."""
STDOUT, STDERR = 1, 2


class EngineFailure(Exception):
    """The engine refused or did not answer; the text says what it said."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


def connect(host: str, timeout: float = ANSWER) -> socket.socket:
    """A connection to the engine."""
    scheme, _, rest = host.partition("://")
    line = socket.socket(socket.AF_UNIX if scheme == "unix" else socket.AF_INET)
    line.settimeout(timeout)
    try:
        if scheme == "unix":
            line.connect(rest)
        else:
            name, _, port = rest.rstrip("/").rpartition(":")
            line.close()
            line = socket.create_connection((name.strip("[]"), int(port)), timeout)
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        line.close()
        raise EngineFailure(f"no docker engine at {host}: {error.strerror or error}") from None
    return line


def call(host: str, method: str, path: str, body: Any = None, timeout: float = ANSWER) -> Any:
    """One request; what its JSON says, or None. EngineFailure carries the status of a refusal."""
    with connect(host, timeout) as line:
        status, rest = request(line, method, path, body, upgrade=False)
        try:
            while piece := line.recv(PIECE):
                rest += piece
        except OSError as error:
            raise EngineFailure(f"the docker engine does not answer: {error}") from None
    try:
        told = json.loads(rest) if rest.strip() else None
    except ValueError:
        told = None
    if status >= 400:
        raise EngineFailure(told["message"] if told and "message" in told else f"the engine says {status}", status)
    return told


def request(line: socket.socket, method: str, path: str, body: Any, *, upgrade: bool) -> tuple[int, bytes]:
    """Send a request and read the head of the answer: its status, and what came behind the head."""
    data = b"" if body is None else json.dumps(body).encode()
    # HTTP/1.0 asks for an answer without chunks; only 1.1 may upgrade.
    head = f"{method} {path} HTTP/{'1.1' if upgrade else '1.0'}\r\nHost: docker\r\nContent-Type: application/json\r\n"
    head += "Connection: Upgrade\r\nUpgrade: tcp\r\n" if upgrade else ""
    received = b""
    try:
        line.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        while b"\r\n\r\n" not in received:
            piece = line.recv(PIECE)
            if not piece:
                raise EngineFailure("the docker engine hung up")
            received += piece
    except OSError as error:
        raise EngineFailure(f"the docker engine does not answer: {error}") from None
    text, _, rest = received.partition(b"\r\n\r\n")
    return int(text.split(None, 2)[1]), rest


def attach(host: str, exec_id: str, *, terminal: bool = False) -> Line:
    """Start a program that was created there, with its streams on this connection."""
    line = connect(host)
    try:
        body = {"Detach": False, "Tty": terminal}
        status, rest = request(line, "POST", f"/exec/{exec_id}/start", body, upgrade=True)
        if status not in (101, 200):
            with contextlib.suppress(OSError):
                rest += line.recv(PIECE)
            raise EngineFailure(rest.decode(errors="replace").strip()[-300:] or f"the engine says {status}", status)
    except BaseException:
        line.close()
        raise
    return Line(line, rest, terminal=terminal)


class Line:
    """The connection that carries a program's streams."""

    def __init__(self, line: socket.socket, received: bytes, *, terminal: bool) -> None:
        self._line, self._received, self._terminal = line, bytearray(received), terminal
        self._unsent, self._ends = memoryview(b""), False
        self._fresh = bool(received)
        line.setblocking(False)

    def send(self, data: bytes) -> None:
        """Have these be sent next; only when nothing is waiting."""
        self._unsent = memoryview(data)

    def end(self) -> None:
        """No input comes any more."""
        self._ends = True

    def waiting(self) -> bool:
        """Whether something is not sent yet."""
        return bool(self._unsent)

    def step(self, timeout: float, *others: int) -> tuple[list[tuple[int, bytes]] | None, bool]:
        """Wait until something moves: the output that came (None: it is over), and whether another can be read."""
        if self._ends and not self._unsent:
            self._ends = False
            with contextlib.suppress(OSError):
                self._line.shutdown(socket.SHUT_WR)
        poll = select.poll()
        poll.register(self._line, select.POLLIN | (select.POLLOUT if self._unsent else 0))
        for other in others:
            poll.register(other, select.POLLIN)
        found = dict(poll.poll(0 if self._fresh else max(0.0, timeout) * 1000))
        self._fresh = False
        events = found.get(self._line.fileno(), 0)
        if events & select.POLLOUT:
            try:
                self._unsent = self._unsent[self._line.send(self._unsent) :]
            except BlockingIOError:
                pass
            except OSError:
                self._unsent = memoryview(b"")  # the program reads no more
        over = bool(events & ~select.POLLOUT) and self._receive()
        pieces = list(self._pieces())
        return None if over and not pieces else pieces, any(other in found for other in others)

    def _receive(self) -> bool:
        """Whether there is nothing more to come."""
        try:
            data = self._line.recv(PIECE)
        except BlockingIOError:
            return False
        except OSError:
            return True
        self._received += data
        return not data

    def _pieces(self) -> Iterator[tuple[int, bytes]]:
        if self._terminal:
            if self._received:
                yield STDOUT, bytes(self._received)
                self._received.clear()
            return
        while len(self._received) >= 8:
            stream, size = struct.unpack(">BxxxL", self._received[:8])
            data = bytes(self._received[8 : 8 + size])
            if len(data) < size:
                return
            del self._received[: 8 + size]
            yield stream, data

    def close(self) -> None:
        self._line.close()


class Marked:
    """One stream up to the mark, which may come in parts."""

    def __init__(self, mark: bytes) -> None:
        self._mark, self._held = mark, b""
        self.word: bytes | None = None
        """What came behind the mark; None: it has not come."""

    def feed(self, data: bytes) -> bytes:
        """What of it, and of what was held back, belongs to the program."""
        if self.word is not None:
            self.word += data
            return b""
        data, self._held = self._held + data, b""
        before, mark, after = data.partition(self._mark)
        if mark:
            self.word = after
            return before
        keep = next((n for n in range(min(len(self._mark) - 1, len(data)), 0, -1) if data.endswith(self._mark[:n])), 0)
        if keep:
            data, self._held = data[:-keep], data[-keep:]
        return data


class Streams:
    """Both outputs of a program that dockerscripts.RUN runs, and what that says of it."""

    def __init__(self, mark: str) -> None:
        self._mark = mark.encode()
        self._head, self._out, self._err = Marked(self._mark), Marked(self._mark), Marked(self._mark)
        self._begun = False
        self.pid = ""
        self.refusal = ""
        """Why the directory is none to run in; else empty."""
        self.before = b""
        """Error output of before the script's first word: the engine's, if it could not even start that."""

    def feed(self, stream: int, data: bytes) -> bytes:
        """What of it is the program's own."""
        if stream == STDOUT:
            if not self._begun and not self.pid:
                self.before += data  # the engine's own words come this way too; nothing is lost, see `begun`
            return self._out.feed(data)
        if self._begun:
            return self._err.feed(data)
        self.before += self._head.feed(data)
        word, newline, rest = (self._head.word or b"").partition(b"\n")
        if not newline:
            return b""
        self._begun = True
        kind, _, text = word.decode(errors="replace").strip().partition(" ")
        self.pid, self.refusal = (kind, "") if kind.isdigit() else ("", text or kind)
        return self._err.feed(rest)

    @property
    def begun(self) -> bool:
        """Whether the script has said its first word."""
        return self._begun

    @property
    def over(self) -> bool:
        """Whether the program has ended and all that it wrote is here."""
        return bool(self.refusal) or (self._out.word is not None and (self._err.word or b"").endswith(b"\n"))

    @property
    def code(self) -> int | None:
        """The program's status, if the script told it."""
        try:
            return int(self._err.word or b"")
        except ValueError:
            return None
