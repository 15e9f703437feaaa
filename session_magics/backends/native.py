"""Sessions held by our own holder process, one each."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from session_magics.backends import Start, Waiting
from session_magics.environment import COOKIE
from session_magics.errors import (
    SessionBusy,
    SessionError,
    SessionNotRunning,
    SessionUnresponsive,
    StartFailed,
    StopIncomplete,
    StoreError,
    UsageMistake,
)
from session_magics.holder import launch, processes, trees, wire
from session_magics.holder.stop import NOBODY, end_tree
from session_magics.model import LOGIN_SHELL
from session_magics.programs import has_prompt
from session_magics.showing import given_functions
from session_magics.store.records import read_run
from session_magics.store.states import held

START_LIMIT = 5.0
"""Seconds for a holder to come up; it takes about 0.04."""
ANSWER_LIMIT = 1.0
"""Seconds for a holder to answer; it takes well under a millisecond unless it is stopped."""
LATE = 0.5
"""Seconds more once that time is over: a machine that stood still has used up the holder's time as well as ours."""
STOP_SLACK = 5.0
"""Seconds beyond the grace that a stop may take: forcing, draining, recording."""
ADDRESS_BYTES = 100
"""Longest path that is connected to as it is; the system's limit is 107 on Linux and 103 on macOS."""
HOLDER = Path(launch.__file__).with_name("__main__.py")


class NativeBackend:
    """Starts holders and connects to them. Holds nothing itself; any number may exist."""

    name = "native"
    start_limit = START_LIMIT

    def start(self, start: Start) -> None:
        """See Backend. A small process is started (never forked from this one), which detaches the holder."""
        spec = start.spec
        answer = self.launch(spec.id, spec.name, launch_message(start, self.extra(start)))
        if answer != b"ok":
            raise StartFailed(spec.name, answer.decode("utf-8", "replace"))

    def launch(self, id: str, name: str, message: bytes) -> bytes:
        """Start a holder with what it is told; its answer, or the last words of one that could not even give that."""
        starter = subprocess.Popen(
            [sys.executable, "-I", "-S", str(HOLDER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            cwd="/",
            env=_holder_environment(id),
        )
        try:
            answer, complaint = starter.communicate(message, timeout=self.start_limit)
        except subprocess.TimeoutExpired:
            starter.kill()
            starter.communicate()
            raise StartFailed(name, f"no holder came up within {self.start_limit:g} s") from None
        return answer or complaint.strip().rpartition(b"\n")[2] or b"the holder ended at once"

    def extra(self, start: Start) -> Mapping[str, bytes]:
        """What else a holder of this kind is told."""
        return {}

    def connect(self, directory: Path, name: str) -> NativeLink:
        """See Backend."""
        return NativeLink(directory, name)

    def force(self, directory: Path, id: str) -> tuple[int, ...]:
        """See Backend."""
        cookie = f"{COOKIE}={id}".encode()  # what carries it is found without a holder, and with a damaged record
        return end_tree(living_holder(directory) or NOBODY, cookie)


def living_holder(directory: Path) -> int:
    """The pid of a session's holder, where it lives and its pid means the same process here; else 0."""
    try:
        run = read_run(str(directory))
        here = run is not None and run.pid_namespace in (0, processes.pid_namespace())
        same = run is not None and processes.start_tick(run.holder) == run.holder_tick
        return run.holder if run is not None and here and same and held(str(directory)) else 0
    except (StoreError, OSError):
        return 0


def launch_message(start: Start, extra: Mapping[str, bytes]) -> bytes:
    """What the holder of a session is told."""
    spec, nobody = start.spec, (0, 0)
    (rows, columns), limit = spec.size, spec.max_restarts
    env = [part for key, value in start.env.items() for part in (os.fsencode(key), os.fsencode(value))]
    return launch.encode(
        directory=os.fsencode(start.directory),
        argv=packed((start.program,) if start.program else spec.argv),
        env=wire.pack(*env),
        cwd=os.fsencode(spec.cwd),
        rows=b"%d" % rows,
        columns=b"%d" % columns,
        generation=b"%d" % start.generation,
        restart=spec.restart.encode(),
        max_restarts=b"%d" % (limit.count if limit else 0),
        restart_window=b"%r" % ((limit.window if limit else None) or 0.0),
        shell=(spec.shell or "").encode(),
        rc=b"%d" % start.rc,
        functions=given_functions(start.directory) if spec.shell else b"",
        owner_pid=b"%d" % (start.owner or nobody)[0],
        owner_tick=b"%d" % (start.owner or nobody)[1],
        parent_pid=b"%d" % (start.parent or nobody)[0],
        parent_tick=b"%d" % (start.parent or nobody)[1],
        again=packed(start.again),
        hangup=b"%d" % (spec.tool == LOGIN_SHELL or has_prompt(spec.argv)),
        name_file=os.fsencode(start.name_file or ""),
        **extra,
    )


def packed(words: Iterable[str]) -> bytes:
    """Words as one field of a launch or a request."""
    return wire.pack(*map(os.fsencode, words))


def _holder_environment(id: str) -> dict[str, str]:
    """This process's environment with the mark of a holder, and without that of a session we may be part of."""
    env = {key: value for key, value in os.environ.items() if key not in (COOKIE, trees.RUN)}
    return env | {trees.HOLDER_MARK.decode().rstrip("="): id}


def _connect(directory: Path) -> socket.socket:
    """A connected socket; an address that is too long is reached through a shorter name of the directory."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    seconds = struct.pack("ll", int(ANSWER_LIMIT), int(ANSWER_LIMIT % 1 * 1e6))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, seconds)  # or a full backlog refuses at once
    try:
        path = directory / "sock"
        if len(os.fsencode(path)) <= ADDRESS_BYTES:
            connection.connect(str(path))
        else:
            with tempfile.TemporaryDirectory(prefix="sm", dir="/tmp") as short:
                link = Path(short) / "d"
                link.symlink_to(directory)
                connection.connect(str(link / "sock"))
        connection.settimeout(ANSWER_LIMIT)
    except BaseException:
        connection.close()
        raise
    return connection


class NativeLink:
    """See Link. Owns one socket."""

    answer_limit = ANSWER_LIMIT
    """Seconds for an answer that takes no time of its own."""

    def __init__(self, directory: Path, name: str) -> None:
        self._name = name
        self._decoder = wire.Decoder()
        self._tickets = 0
        self._answers: dict[int, tuple[bytes, list[bytes]]] = {}
        self._begun: dict[int, tuple[int, str]] = {}
        self._hello: list[bytes] | None = None
        self._watched: tuple[int, int] | None = None  # what the holder is to ring for, until it does
        self.log_end = self.index_size = 0
        try:
            self._socket = _connect(directory)
        except (TimeoutError, BlockingIOError):
            raise SessionUnresponsive(name, ANSWER_LIMIT) from None
        except OSError as error:
            raise SessionNotRunning(name, f"no holder answers: {error.strerror or error}") from None
        try:
            deadline = time.monotonic() + ANSWER_LIMIT
            while self._hello is None:
                self._wait(deadline, ANSWER_LIMIT)
        except BaseException:
            self.close()
            raise

    def fileno(self) -> int:
        """See Link."""
        return self._socket.fileno()

    def receive(self, timeout: float | None) -> bool:
        """See Link."""
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        if not poll.poll(None if timeout is None else max(0.0, timeout) * 1000):
            return False
        try:
            data = self._socket.recv(1 << 20)
        except ConnectionError:
            data = b""
        if not data:
            raise SessionNotRunning(self._name, "its holder has gone")
        for kind, fields in self._decoder.feed(data):
            if kind == wire.HELLO:
                self._hello = fields
            elif kind == wire.BELL:
                self._watched = None
                self.log_end, self.index_size = int(fields[0]), int(fields[1])
            elif kind == wire.BEGUN:
                ticket, _, begin, *notice = fields  # the first holders had nothing to tell
                self._begun[int(ticket)] = (int(begin), b"".join(notice).decode("utf-8", "replace"))
            elif kind in (wire.OK, wire.ERROR, wire.DONE):
                self._answers[int(fields[0])] = (kind, fields[1:])
        return True

    def _wait(self, deadline: float, limit: float) -> None:
        if not self.receive(deadline - time.monotonic()) and time.monotonic() >= deadline and not self.receive(LATE):
            raise SessionUnresponsive(self._name, limit)

    def _post(self, kind: bytes, *fields: bytes) -> int:
        self._tickets += 1
        self._transmit(wire.frame(kind, b"%d" % self._tickets, *fields))
        return self._tickets

    def _transmit(self, data: bytes) -> None:
        try:
            self._socket.sendall(data)
        except TimeoutError:
            raise SessionUnresponsive(self._name, ANSWER_LIMIT) from None
        except OSError:
            raise SessionNotRunning(self._name, "its holder has gone") from None

    def _ask(self, kind: bytes, *fields: bytes, limit: float | None = None) -> list[bytes]:
        limit = self.answer_limit if limit is None else limit
        ticket = self._post(kind, *fields)
        deadline = time.monotonic() + limit
        while ticket not in self._answers:
            self._wait(deadline, limit)
        answer, result = self._answers.pop(ticket)
        if answer == wire.ERROR:
            raise self._error(result[0].decode(), result[1].decode("utf-8", "replace"))
        return result

    def _error(self, code: str, text: str) -> SessionError:
        match code:
            case "busy":
                return SessionBusy(self._name, text)
            case "not-running":
                return SessionNotRunning(self._name, "it has ended")
            case "survivors":
                return StopIncomplete(self._name, map(int, text.split()))
            case "start-failed":
                return StartFailed(self._name, text)
            case "not-masked":
                return SessionError(f"session {self._name!r} shows what is typed now: the secret was not sent")
            case "bad-text" | "no-shell":
                return UsageMistake(f"session {self._name!r}: {text or 'its program is no shell of ours'}")
            case _:
                return SessionError(f"session {self._name!r}: {text or code}")

    def watch(self, log_end: int, index_size: int) -> None:
        """See Link."""
        if self._watched != (log_end, index_size):
            self._transmit(wire.frame(wire.WATCH, b"%d" % log_end, b"%d" % index_size))
            self._watched = (log_end, index_size)

    def begun(self, ticket: int) -> tuple[int, str] | None:
        """See Link."""
        return self._begun.get(ticket)

    def run(self, text: str, *, hidden: bool = False) -> int:
        """See Link."""
        return self._post(wire.RUN, text.encode("utf-8", "surrogateescape"), b"%d" % hidden)

    def finished(self, ticket: int) -> Sequence[bytes] | None:
        """See Link."""
        if ticket not in self._answers:
            return None
        self._begun.pop(ticket, None)
        answer, fields = self._answers.pop(ticket)
        if answer == wire.ERROR:
            raise self._error(fields[0].decode(), fields[1].decode("utf-8", "replace"))
        return fields

    def send(self, data: bytes, *, secret: bool = False) -> None:
        """See Link."""
        self._ask(wire.INPUT, data, b"%d" % secret)

    def probe(self) -> Waiting:
        """See Link."""
        kind, echo, canonical = self._ask(wire.PROBE)
        return Waiting(kind.decode(), echo == b"1", canonical == b"1")

    def resize(self, rows: int, columns: int) -> None:
        """See Link."""
        self._ask(wire.RESIZE, b"%d" % rows, b"%d" % columns)

    def interrupt(self) -> None:
        """See Link."""
        self._ask(wire.INTERRUPT)

    def stop(self, grace: float, *, hurry: bool = False) -> tuple[int, ...]:
        """See Link. A holder that goes as its last act before answering has stopped all the same."""
        with contextlib.suppress(SessionNotRunning):
            return self.stopped(grace, hurry=hurry)
        return ()

    def stopped(self, grace: float, *, hurry: bool) -> tuple[int, ...]:
        """The same, but SessionNotRunning for a holder that goes without an answer."""
        answer = self._ask(wire.STOP, b"%g" % grace, b"%d" % hurry, limit=grace + STOP_SLACK)
        return tuple(map(int, answer))

    def restart(self, grace: float, argv: Sequence[str] = ()) -> int:
        """See Link."""
        return int(self._ask(wire.RESTART, b"%g" % grace, packed(argv), limit=grace + STOP_SLACK)[0])

    def close(self) -> None:
        """See Link."""
        if hasattr(self, "_socket"):
            self._socket.close()
