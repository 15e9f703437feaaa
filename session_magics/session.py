"""One named session, as a program sees it."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from pathlib import Path

from session_magics import text
from session_magics.backends import Backend, Link
from session_magics.errors import (
    SessionNotRunning,
    SessionUnresponsive,
    StopIncomplete,
    UsageMistake,
    WaitTimeout,
)
from session_magics.log import LogReader
from session_magics.model import BackingOff, Exited, Running, SessionInfo, State, check_size, describe
from session_magics.shell import Cell
from session_magics.store import Store

GRACE = 5.0
"""Seconds between asking a session's processes to end and forcing them."""
FOLLOW_BYTES = 256 * 1024
"""Most bytes of output handed over at once."""
STATE_CHECK = 1.0
"""Seconds between looks at the directory while a holder is silent: it may have been killed."""
MATCH_WINDOW = 64 * 1024
"""Bytes of output kept to look for a pattern in: a match longer than that is not found."""


class Session:
    """A handle on a session; any number of them, in any process, may exist for one session.

    Methods may be called from any thread. Each opens the connection it needs and closes it before it returns;
    nothing is remembered between calls, so what is answered is true at that moment.
    """

    def __init__(self, store: Store, backend: Backend, name: str, id: str) -> None:
        self._store, self._backend = store, backend
        self.name, self.id = name, id
        self.directory: Path = store.directory(id)

    def __repr__(self) -> str:
        return f"<Session {self.name} {describe(self.state())}>"

    def info(self) -> SessionInfo:
        """All that is known about the session now."""
        return self._store.info(self.id, self.name)

    def state(self) -> State:
        """Whether the program runs, and how it ended."""
        return self._store.state(self.id)

    def connect(self) -> Link:
        """A connection to the holder, the caller's to close. Raises SessionNotRunning, SessionUnresponsive."""
        state = self.state()
        if not isinstance(state, Running | BackingOff):
            raise SessionNotRunning(self.name, describe(state))
        return self._backend.connect(self.directory, self.name)

    def link(self) -> contextlib.closing[Link]:
        """The same for a with statement."""
        return contextlib.closing(self.connect())

    # ---------------------------------------------------------------- output

    def tail(self, lines: int = 20) -> str:
        """The last lines of the output as plain text."""
        with LogReader(self.directory) as log:
            shown = text.plain(log.tail_bytes(lines + 1)).splitlines()
        return "\n".join(shown[-lines:]) if lines > 0 else ""

    def output(self, begin: int = 0, end: int | None = None) -> bytes:
        """The bytes of the log between two offsets, as far as they are kept."""
        with LogReader(self.directory) as log:
            return log.bytes(begin, log.end() if end is None else end)

    def follow(self, begin: int | None = None) -> Iterator[bytes]:
        """Yield output as it comes, from an offset (default: from now on), until the program has ended.

        Never sleeps longer than it takes the next byte to come. What the cap has dropped meanwhile is left out.
        """
        with LogReader(self.directory) as log:
            position = log.end() if begin is None else begin
            for end in self._growth(position):
                for offset, data in log.read(position, end):
                    yield data
                    position = offset + len(data)
                position = max(position, end)

    def _growth(self, position: int) -> Iterator[int]:
        """Yield each new end of the log until the program has ended, the last end included."""
        with LogReader(self.directory) as log:
            try:
                with self.link() as link:
                    link.watch(position, 1 << 62)
                    while isinstance(self.state(), Running | BackingOff):
                        if link.receive(STATE_CHECK) and link.log_end > position:
                            position = link.log_end
                            yield position
                            link.watch(position, 1 << 62)
            except (SessionNotRunning, SessionUnresponsive):
                pass  # it has ended, or its holder is gone: what is in the log is all there will be
            yield max(position, log.end())

    def snapshot(self) -> str:
        """What the terminal's screen shows now, as plain text."""
        from session_magics.screen import SNAPSHOT_BYTES, snapshot  # the emulator is slow to import

        info = self.info()
        with LogReader(self.directory) as log:
            end = log.end()
            data = log.bytes(max(0, end - SNAPSHOT_BYTES), end)
        return snapshot(data, info.size)

    # ---------------------------------------------------------------- input

    def send(self, data: str | bytes) -> None:
        """Type into the program exactly this. Raises SessionBusy (nothing sent) if it does not read."""
        with self.link() as link:
            link.send(data.encode() if isinstance(data, str) else data)

    def interrupt(self) -> None:
        """SIGINT to the foreground job; asked again within two seconds it becomes TERM, then KILL."""
        with self.link() as link:
            link.interrupt()

    def resize(self, rows: int, columns: int) -> None:
        """Set the size of the terminal, in characters."""
        check_size((rows, columns))
        with self.link() as link:
            link.resize(rows, columns)

    # ---------------------------------------------------------------- waiting

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the program; its code, or minus the signal. Raises WaitTimeout.

        An outcome that is unknown (the holder was killed) raises SessionNotRunning: it is never 0.
        """
        self._await_end(timeout)
        state = self.state()
        match state:
            case Exited(code=int(code)):
                return code
            case Exited(signal=int(number)):
                return -number
        raise SessionNotRunning(self.name, describe(state))

    def _await_end(self, timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        with contextlib.suppress(SessionNotRunning), self.link() as link:
            index = 0
            while isinstance(self.state(), Running | BackingOff):
                left = STATE_CHECK if deadline is None else min(STATE_CHECK, deadline - time.monotonic())
                if left <= 0:
                    raise WaitTimeout(self.name, "the end", timeout or 0.0)
                link.watch(1 << 62, index)
                if link.receive(left):
                    index = link.index_size

    def wait_for(self, pattern: str, timeout: float | None = None, *, begin: int = 0) -> str:
        """Wait until the output from an offset on (default: all that is kept) matches; the matching text.

        Raises:
            WaitTimeout: it did not appear in time.
            SessionNotRunning: the program ended without it.
            UsageMistake: the pattern is no regular expression.
        """
        try:
            wanted = re.compile(pattern, re.M)
        except re.error as error:
            raise UsageMistake(f"{pattern!r} is no regular expression: {error}") from None
        deadline = None if timeout is None else time.monotonic() + timeout
        position, window = begin, b""
        with LogReader(self.directory) as log:
            while True:
                running = isinstance(self.state(), Running | BackingOff)
                end = log.end()
                for offset, data in log.read(position, end):
                    window = (window + data)[-MATCH_WINDOW - FOLLOW_BYTES :]
                    position = offset + len(data)
                    if found := wanted.search(text.plain(window)):
                        return found[0]
                    window = window[-MATCH_WINDOW:]
                if not running:
                    raise SessionNotRunning(self.name, f"{describe(self.state())} before {pattern!r} appeared")
                self._await_growth(position, deadline, f"{pattern!r}", timeout)

    def _await_growth(self, position: int, deadline: float | None, what: str, timeout: float | None) -> None:
        left = STATE_CHECK if deadline is None else min(STATE_CHECK, deadline - time.monotonic())
        if left <= 0:
            raise WaitTimeout(self.name, what, timeout or 0.0)
        with contextlib.suppress(SessionNotRunning), self.link() as link:
            link.watch(position, 1 << 62)
            link.receive(left)

    # ---------------------------------------------------------------- the end

    def stop(self, grace: float = GRACE, *, now: bool = False) -> State:
        """End the program and everything it started; returns when all are gone.

        TERM and CONT first, KILL after ``grace`` seconds; ``now`` forces at once, also where another stop waits.
        What has ended already is left as it is. Raises StopIncomplete with the pids that survived even KILL.
        """
        grace = 0.0 if now else grace
        try:
            with self._holder() as link:
                survivors = link.stop(grace, hurry=now)
        except SessionUnresponsive:
            if not now:
                raise
            survivors = self._backend.force(self.directory, self.id)
        except SessionNotRunning:
            survivors = self._backend.force(self.directory, self.id) if self._left_behind() else ()
        if survivors:
            raise StopIncomplete(self.name, survivors)
        return self.state()

    def _holder(self) -> contextlib.closing[Link]:
        """Like ``link``, but also for a program that has ended while its children live under the holder."""
        state = self.state()
        if isinstance(state, Exited) and state.background:
            return contextlib.closing(self._backend.connect(self.directory, self.name))
        return self.link()

    def _left_behind(self) -> bool:
        """Whether processes of this session may live without a holder."""
        return not isinstance(self.state(), Exited) or bool(getattr(self.state(), "background", False))

    def cell(self, cell_text: str, *, hidden: bool = False) -> Cell:
        """Run shell text in a shell session; see ``session_magics.shell.Cell``.

        ``hidden`` is for commands of ours: they leave no trace in ``$?`` and in the index.

        Raises:
            SessionBusy: another command runs; nothing was sent.
            UsageMistake: the session runs a program and no shell of ours.
        """
        info = self.info()
        if info.shell is None:
            raise UsageMistake(
                f"session {self.name!r} runs {info.argv[0]} and no shell of ours: %session send {self.name} TEXT"
            )
        return Cell(self.connect(), self.directory, self.name, cell_text, hidden=hidden)
