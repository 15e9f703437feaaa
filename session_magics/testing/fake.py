"""Sessions whose programs are Python functions in this process, for tests: no process is started.

Directory, lock, log and exit record are real, in the formats of real ones, so Session, Registry and all that is built
on them work unchanged. Public through ``session_magics.testing``.
"""

from __future__ import annotations

import os
import select
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from session_magics.backends import Start, Waiting
from session_magics.errors import SessionBusy, SessionError, SessionNotRunning, StartFailed, StopIncomplete
from session_magics.testing.held import Held, Request
from session_magics.testing.scripted import CellProgram, Program

NO_INDEX = 1 << 62
"""An index size that is never passed."""


class FakeBackend:
    """Holds sessions whose programs are functions. Close it, or use it in a ``with`` statement, to end them all.

    Args:
        programs: what to run, by the last part of ``argv[0]``; anything else fails to start as a missing file does.
        cells: runs the cells of shell sessions; without it they fail to start.

    Example::

        def server(terminal):
            terminal.write("Serving on 8000\\n")
            terminal.pause()

        with FakeBackend({"server": server, "true": script()}) as backend:
            registry = Registry(tmp_path, backend=backend)
            session = registry.start("web", Command(("server",)))
            session.wait_for("Serving")
            session.stop()

    The sessions end with this process and are out of reach for others, who see them running all the same. No echo, no
    line editing, no process tree: what depends on those needs the real thing.
    """

    name = "fake"

    def __init__(self, programs: Mapping[str, Program] | None = None, *, cells: CellProgram | None = None) -> None:
        self._programs, self._cells = dict(programs or {}), cells
        self._held: dict[str, Held] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self, start: Start) -> None:
        """See Backend."""
        spec = start.spec
        program = self._programs.get(os.path.basename(spec.argv[0]))
        runs = self._cells if spec.shell else program
        if runs is None:
            raise StartFailed(spec.name, f"no such file or directory: {spec.argv[0]}")
        if not os.path.isdir(spec.cwd):
            raise StartFailed(spec.name, f"no such file or directory: {spec.cwd}")
        self._held[spec.id] = Held(start, program if spec.shell is None else None, self._cells)

    def connect(self, directory: Path, name: str) -> FakeLink:
        """See Backend."""
        held = self._held.get(directory.name)
        if held is None:
            raise SessionNotRunning(name, "no holder in this process")
        return FakeLink(held, name)

    def force(self, directory: Path, id: str) -> tuple[int, ...]:
        """See Backend."""
        held = self._held.get(id)
        return () if held is None else held.stop(0.0, hurry=True)

    def lose(self, id: str) -> None:
        """Take a session's holder away as a SIGKILL would: no end is recorded, and its state is Lost."""
        self._held[id].lose()

    def close(self) -> None:
        """End every session by force."""
        for held in self._held.values():
            held.stop(0.0, hurry=True)


class FakeLink:
    """See Link. Owns a pipe whose bytes say that the inbox has something."""

    def __init__(self, held: Held, name: str) -> None:
        self._held, self._name = held, name
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._inbox: deque[tuple[str, int, object]] = deque()
        self._watch: tuple[int, int] | None = None
        self._begun: dict[int, tuple[int, str]] = {}
        self._finished: dict[int, Sequence[bytes] | SessionError] = {}
        self._tickets = 0
        self.log_end = self.index_size = 0
        with held.lock:
            if held.over:
                self.close()
                raise SessionNotRunning(name, "its holder has gone")
            held.links.add(self)

    def fileno(self) -> int:
        """See Link."""
        return self._read

    # Called by the holder's side, under its lock.

    def ring(self, log_end: int, index_size: int) -> None:
        """Give the bell that is asked for, if it is due."""
        if self._watch is not None and (log_end > self._watch[0] or index_size > self._watch[1]):
            self._watch = None
            self.post("bell", log_end, index_size)

    def post(self, kind: str, number: int, value: object) -> None:
        """Put something into the inbox; dropped once the link is closed."""
        if self._write >= 0:
            self._inbox.append((kind, number, value))
            if len(self._inbox) == 1:
                os.write(self._write, b"!")

    def hang_up(self) -> None:
        """The holder goes."""
        write, self._write = self._write, -1
        if write >= 0:
            os.close(write)

    # Called by the link's owner.

    def receive(self, timeout: float | None) -> bool:
        """See Link."""
        if self._read < 0:
            raise SessionNotRunning(self._name, "this link is closed")
        poll = select.poll()
        poll.register(self._read, select.POLLIN)
        if not poll.poll(None if timeout is None else max(0.0, timeout) * 1000):
            return False
        with self._held.lock:
            if not os.read(self._read, 1):
                raise SessionNotRunning(self._name, "its holder has gone")
            items = list(self._inbox)
            self._inbox.clear()
        for kind, number, value in items:
            if kind == "bell":
                assert isinstance(value, int)
                self.log_end, self.index_size = number, value
            elif kind == "begun":
                assert isinstance(value, tuple)
                self._begun[number] = value
            else:
                assert isinstance(value, SessionError | list)
                self._finished[number] = value
        return True

    def _live(self) -> Held:
        if self._held.over or self._read < 0:
            raise SessionNotRunning(self._name, "its holder has gone")
        return self._held

    def watch(self, log_end: int, index_size: int) -> None:
        """See Link."""
        held = self._live()
        with held.lock:
            self._watch = (log_end, index_size)
            self.ring(held.log.end, held.log.index_size)

    def run(self, text: str, *, hidden: bool = False) -> int:
        """See Link."""
        held = self._live()
        self._tickets += 1
        ticket = self._tickets
        with held.lock:
            self._watch = (held.log.end, NO_INDEX)
            if refusal := held.run(Request(self, ticket, text, hidden)):
                busy = SessionBusy(self._name, refusal)
                self.post("finished", ticket, busy)
        return ticket

    def begun(self, ticket: int) -> tuple[int, str] | None:
        """See Link."""
        return self._begun.get(ticket)

    def finished(self, ticket: int) -> Sequence[bytes] | None:
        """See Link."""
        outcome = self._finished.pop(ticket, None)
        if isinstance(outcome, SessionError):
            raise outcome
        if outcome is not None:
            self._begun.pop(ticket, None)
        return outcome

    def send(self, data: bytes, *, secret: bool = False) -> None:
        """See Link."""
        terminal = self._live().terminal
        if secret and terminal.echo:
            raise SessionError(f"session {self._name!r} shows what is typed now: the secret was not sent")
        if not terminal.type(data):
            raise SessionBusy(self._name, "its program does not read its input")

    def probe(self) -> Waiting:
        """See Link."""
        terminal = self._live().terminal
        return Waiting("read" if terminal.reading else "no", terminal.echo, canonical=False)

    def resize(self, rows: int, columns: int) -> None:
        """See Link."""
        self._live().resize((rows, columns))

    def interrupt(self) -> None:
        """See Link."""
        self._live().interrupt()

    def stop(self, grace: float, *, hurry: bool = False) -> tuple[int, ...]:
        """See Link."""
        return self._held.stop(grace, hurry=hurry)

    def restart(self, grace: float, argv: Sequence[str] = ()) -> int:
        """See Link."""
        held = self._live()
        survivors = held.restart(grace, tuple(argv))
        if survivors:
            raise StopIncomplete(self._name, survivors)
        return held.generation

    def close(self) -> None:
        """See Link."""
        with self._held.lock:
            self._held.links.discard(self)
            self.hang_up()
            read, self._read = self._read, -1
        if read >= 0:
            os.close(read)
