"""The streams of a program in a container, over docker's own protocol: a client for one program, and its parts.

Run as a file it needs nothing but the standard library, so it starts at once and without a docker client::

    python -I dockerexec.py exec HOST CONTAINER OPTIONS -- WORDS …     OPTIONS: --terminal, --user=USER, --mark=MARK
    python -I dockerexec.py remove HOST CONTAINER                       quiet, and harmless if it is gone

HOST is ``unix:///path`` or ``tcp://host:port``. The program's variables come as JSON in the variable ADDED, as a
command line is for all to read. With a mark, the words are of dockerscripts.RUN: its signs are taken out of the
streams, and this process ends as the program did, by the same signal if it was one.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Iterator
from typing import Any

ADDED = "SESSION_MAGICS_DOCKER_ENV"
PIECE = 64 * 1024
ANSWER = 4.0
"""Seconds for the engine to answer what it knows without a look at the disk; it takes some milliseconds."""
REMOVAL = 30.0
"""Seconds for the engine to remove a container, which it kills first."""
BEAT, LOOK = 1.5, 2.5
"""Seconds between two looks at the container while a program runs there, and for the answer to one: together they are
within the five in which a pause or the end of the engine is to be known."""
GONE = "the container is gone"
FAILED, FAILURE = 125, b"docker: "
"""Exit status of the client where docker itself failed, as its own client has it, and how its last line then begins."""
RESIZE_TRIES, RESIZE_STEP = 100, 0.02
"""How often, and in which steps in seconds, a size is told to a terminal whose program is about to be started."""
DETACH_KEYS = "ctrl-@,ctrl-^,ctrl-@,ctrl-_"
"""The engine always watches for some keys to leave a terminal, and holds back the first until the next one comes.
Ctrl-@ sets a mark where anything uses it, of which nothing is seen before the next key."""
STDOUT, STDERR = 1, 2


class EngineFailure(Exception):
    """The engine refused or did not answer; the text says what it said."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class Refused(EngineFailure):
    """The directory is none to run in."""


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


# ------------------------------------------------------------------ the client


def create(host: str, container: str, words: list[str], env: list[str], **options: Any) -> str:
    """Have a program be made ready in a container; its id."""
    body = {"Cmd": words, "Env": env, "AttachStdout": True, "AttachStderr": True, "WorkingDir": "/", **options}
    return str(call(host, "POST", f"/containers/{container}/exec", body)["Id"])


def trouble(host: str, container: str) -> str:
    """Why nothing can be expected of the container; empty: nothing is wrong."""
    try:
        state = call(host, "GET", f"/containers/{container}/json", timeout=LOOK)["State"]
    except EngineFailure as failure:
        return f"{GONE}: it was removed" if failure.status == 404 else str(failure)
    if state.get("Paused"):
        return "the container is paused: docker unpause it"
    return "" if state.get("Running") else f"{GONE}: it has {state.get('Status', 'ended')}"


def exit_code(host: str, exec_id: str) -> int:
    """The status that the engine has of a program; 128 and the signal if it was killed."""
    return int(call(host, "GET", f"/exec/{exec_id}/json").get("ExitCode") or 0)


def outcome(host: str, container: str, exec_id: str, streams: Streams | None) -> int:
    """The status of a program whose streams are over, minus a signal's number where that is certain."""
    if streams and streams.code is not None:
        return streams.code
    if streams and streams.refusal:
        raise Refused(streams.refusal)
    if wrong := trouble(host, container):
        raise EngineFailure(f"{wrong}; the program there was running" if wrong.startswith(GONE) else wrong)
    code = exit_code(host, exec_id)
    if streams and not streams.begun:
        raise EngineFailure(f"{streams.before.decode(errors='replace').strip()[-300:]} (status {code})")
    # The script always tells a status, so where there is none it was killed itself.
    return 128 - code if streams and code > 128 else code


def run(host: str, container: str, words: list[str], *, terminal: bool, user: str, mark: str) -> int:
    """Run a program with the streams of this process, and return its status (minus a signal's number)."""
    env = json.loads(os.environ.get(ADDED) or "[]")
    exec_id = create(
        host,
        container,
        words,
        env,
        AttachStdin=True,
        Tty=terminal,
        User=user,
        DetachKeys=DETACH_KEYS if terminal else "",
    )
    line = attach(host, exec_id, terminal=terminal)
    with contextlib.closing(line), _raw_terminal(terminal), _sizes(host, exec_id, terminal):
        streams = Streams(mark) if mark else None
        _carry(line, streams, lambda: trouble(host, container))
    return outcome(host, container, exec_id, streams)


def _carry(line: Line, streams: Streams | None, ask: Any) -> None:
    reading, beat = True, time.monotonic() + BEAT
    while not (streams and streams.over):
        others = (0,) if reading and not line.waiting() else ()
        pieces, readable = line.step(max(0.0, beat - time.monotonic()), *others)
        if pieces is None:
            return
        if readable:
            data = os.read(0, PIECE)
            reading = bool(data)
            line.send(data) if data else line.end()
        for stream, data in pieces:
            _write(stream, streams.feed(stream, data) if streams else data)
        if time.monotonic() >= beat:
            beat = time.monotonic() + BEAT
            if wrong := ask():
                raise EngineFailure(wrong)


def _write(stream: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(stream, rest) :]
        except BlockingIOError:
            select.select([], [stream], [])


@contextlib.contextmanager
def _raw_terminal(terminal: bool) -> Iterator[None]:
    """Keys go through as they are: what they mean is for the terminal there."""
    if not (terminal and os.isatty(0)):
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _sizes(host: str, exec_id: str, terminal: bool) -> Iterator[None]:
    """The terminal there has the size of this one, now and whenever it changes."""
    if not (terminal and os.isatty(0)):
        yield
        return

    def tell(*_: object) -> None:
        size = os.get_terminal_size(0)
        for _try in range(RESIZE_TRIES):
            try:
                call(host, "POST", f"/exec/{exec_id}/resize?h={size.lines}&w={size.columns}")
                return
            except EngineFailure:
                time.sleep(RESIZE_STEP)  # the program is not started yet

    before = signal.signal(signal.SIGWINCH, tell)
    tell()
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)


def remove(host: str, container: str) -> int:
    """Kill and remove a container."""
    try:
        call(host, "DELETE", f"/containers/{container}?force=1&v=1", timeout=REMOVAL)
    except EngineFailure as failure:
        return 0 if failure.status in (404, 409) else 1  # gone, or going
    return 0


def main(words: list[str]) -> int:
    """See the top of the file."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    verb, host, container, *rest = words
    if verb == "remove":
        return remove(host, container)
    at = rest.index("--")
    options = dict(option.removeprefix("--").partition("=")[::2] for option in rest[:at])
    try:
        code = run(
            host,
            container,
            rest[at + 1 :],
            terminal="terminal" in options,
            user=options.get("user", ""),
            mark=options.get("mark", ""),
        )
    except Refused as refusal:
        os.write(STDERR, f"{refusal}\n".encode())
        return 126
    except EngineFailure as failure:
        os.write(STDERR, FAILURE + f"{' '.join(str(failure).split())}\n".encode())
        return FAILED
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if code not in (-signal.SIGKILL, -signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
