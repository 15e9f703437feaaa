"""One named session, as a program sees it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from session_magics import text
from session_magics.backends import Backend, Link
from session_magics.backends.choice import abandoned
from session_magics.backends.native import living_holder
from session_magics.errors import (
    SessionNotRunning,
    SessionUnresponsive,
    StopIncomplete,
    UsageMistake,
    WaitTimeout,
)
from session_magics.holder import trees
from session_magics.holder.stop import NOBODY
from session_magics.log import Event, EventReader, LogReader
from session_magics.model import BackingOff, Exited, Running, SessionInfo, State, Unknown, check_size, describe
from session_magics.news import NO_OFFSET, News
from session_magics.shell import Attachment, Cell
from session_magics.store import Store
from session_magics.text.window import Window, compiled

if TYPE_CHECKING:
    from session_magics.exits import ExitWatch

GRACE = 5.0
"""Seconds between asking a session's processes to end and forcing them."""
LEAVING = 0.25
"""Seconds for a holder to go after its last answer; it takes 2 ms, unless something of the program lives on."""
GOING = 5.0
"""The same where nothing lives that it could wait for: it may only be short of processor time."""
LEAVING_STEP = 0.001


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
        state = self.state()
        pid = f" pid={state.pid}" if isinstance(state, Running) else ""
        return f"<Session {self.name} {describe(state)}{pid}>"

    def info(self) -> SessionInfo:
        """All that is known about the session now."""
        return self._store.info(self.id, self.name)

    def state(self) -> State:
        """Whether the program runs, and how it ended."""
        return self._store.state(self.id)

    def first_size(self) -> tuple[int, int]:
        """Rows and columns that the terminal had when the session was made."""
        return self._store.spec(self.id).size

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

    def tail(self, lines: int = 20, *, end: int | None = None) -> str:
        """The last lines of the output as plain text, or of what comes before a log offset."""
        if lines <= 0:
            return ""
        with LogReader(self.directory) as log:
            shown = text.plain(log.tail_bytes(lines + 1, end=end)).removesuffix("\n").split("\n")
        return "\n".join(shown[-lines:])

    def output(self, begin: int = 0, end: int | None = None) -> bytes:
        """The bytes of the log between two offsets, as far as they are kept."""
        with LogReader(self.directory) as log:
            return log.bytes(begin, log.end() if end is None else end)

    def follow(self, begin: int | None = None) -> Iterator[bytes]:
        """Yield output as it comes, from an offset (default: from now on), until the program has ended.

        Every byte that the log keeps comes once and in order, through restarts of the program too; what the cap has
        dropped before it was read is left out. The generator belongs to one thread; it sleeps until something comes,
        and a slow reader holds nobody up. Leaving the loop (or ``close``) gives everything back.
        """
        with LogReader(self.directory) as log, self.news() as news:
            position = log.end() if begin is None else begin
            while True:
                running = news.running()  # first, so that what was written before the end is read below
                for offset, data in log.read(position, log.end()):
                    position = offset + len(data)
                    yield data
                if not running:
                    return
                news.wait(position, None)

    def news(self) -> News:
        """Something to wait on for output, events and the end; the caller's to close."""
        return News(self.connect, self.state)

    def snapshot(self, *, styled: bool = False) -> str:
        """What the terminal's screen shows now, as plain text, or with the SGR sequences of its colours."""
        from session_magics.text import screen  # the emulator is slow to import

        info = self.info()
        with LogReader(self.directory) as log:
            end = log.end()
            data = log.bytes(max(0, end - screen.SNAPSHOT_BYTES), end)
        return (screen.styled if styled else screen.snapshot)(data, info.size)

    # ---------------------------------------------------------------- input

    def command(self) -> str | None:
        """The first line of the cell command that runs in a shell session now; None if none does."""
        event = self.begun()
        return None if event is None else str(event.data.get("text", ""))

    def begun(self) -> Event | None:
        """The begin of the cell command that runs in a shell session now; None if none does."""
        last = EventReader(self.directory).newest(("begin", "end"))
        return last[0] if last and last[0].kind == "begin" else None

    def send(self, data: str | bytes) -> None:
        """Type into the program exactly this: no Enter is added (it is ``"\\r"``), text is sent as UTF-8.

        Raises:
            SessionBusy: the program does not read its input; nothing was sent.
            SessionNotRunning: it has ended.
            UsageMistake: a shell session in which no command runs; the shell itself reads no typed text.
        """
        info = self.info()
        if info.shell is not None and info.running and self.command() is None:
            raise UsageMistake(
                f"no command runs in session {self.name!r}, and its shell takes commands from cells alone: "
                f"%%sh_session {self.name}"
            )
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
        """Wait for the end of the program; its code, or minus the signal. Restarts are waited through.

        Args:
            timeout: seconds; None: as long as it takes.

        Raises:
            WaitTimeout: it has not ended in time, and goes on.
            SessionNotRunning: the outcome is unknown (the holder was killed), or the program never ran.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self.news() as news:
            while news.running():
                if not news.wait(NO_OFFSET, deadline):
                    raise WaitTimeout(self.name, "the end", timeout or 0.0)
        state = self.state()
        if isinstance(state, Exited):
            return state.status
        raise SessionNotRunning(self.name, describe(state))

    def wait_for(self, pattern: str, timeout: float | None = None, *, begin: int = 0) -> str:
        """Wait until the output, as plain text, matches; the matching text.

        Args:
            pattern: a regular expression; ``^`` and ``$`` stand for the ends of lines, and a match may span lines.
                What has come so far counts, so that prompts match: a number may still lack its last digits.
            timeout: seconds; None: as long as the program runs.
            begin: log offset to look from; default: all that is kept.

        Raises:
            WaitTimeout: it did not appear in time; the session goes on.
            SessionNotRunning: the program ended without it.
            UsageMistake: the pattern is no regular expression, or matches any output.
        """
        window = Window(compiled(pattern))
        deadline = None if timeout is None else time.monotonic() + timeout
        position = begin
        with LogReader(self.directory) as log, self.news() as news:
            while True:
                running = news.running()
                for offset, data in log.read(position, log.end()):
                    position = offset + len(data)
                    if (found := window.feed(data)) is not None:
                        return found
                if not running:
                    raise SessionNotRunning(self.name, f"{describe(self.state())} before {pattern!r} appeared")
                if not news.wait(position, deadline):
                    raise WaitTimeout(self.name, f"{pattern!r}", timeout or 0.0)

    # ---------------------------------------------------------------- the end

    def on_exit(self, call: Callable[[Session], object]) -> ExitWatch:
        """Have a function called with this session once its program has ended for good; ``cancel`` takes that back.

        It is called in a thread of its own; at once if the program has ended already.
        """
        from session_magics.exits import ExitWatch

        if not callable(call):
            raise UsageMistake(f"on_exit takes a function of one argument, the session: {call!r} cannot be called")

        def ended() -> None:
            self.settled()
            call(self)

        return ExitWatch(self.news, self.name, ended)

    def stop(self, grace: float = GRACE, *, now: bool = False) -> State:
        """End the program and everything it started; returns when all are gone.

        TERM and CONT first, KILL after ``grace`` seconds; ``now`` forces at once, also where another stop waits, and
        does without a holder that hangs. What has ended already is left as it is; a damaged record is no obstacle.

        Raises:
            StopIncomplete: with the pids that survived even KILL.
            SessionUnresponsive: the holder hangs, and ``now`` was not said.
        """
        grace, unheard = 0.0 if now else grace, False
        try:
            with contextlib.closing(self._backend.connect(self.directory, self.name)) as link:
                survivors = link.stop(grace, hurry=now)
        except SessionUnresponsive:
            if not now:
                raise
            survivors = self._backend.force(self.directory, self.id)
        except SessionNotRunning:  # a holder that has lost its socket lives, and has yet to record the end
            survivors, unheard = () if self._over() else self._backend.force(self.directory, self.id), True
        if survivors:
            raise StopIncomplete(self.name, survivors)
        return self.settled(GOING, ended=unheard)

    def settled(self, limit: float = LEAVING, *, ended: bool = False) -> State:
        """The state, once a holder that is only about to go has gone: it answers a moment before that.

        ``ended``: the program has, whether or not that is on record yet.
        """
        began = time.monotonic()
        while True:
            state = self.state()
            behind = isinstance(state, Exited) and state.background
            if not (behind or isinstance(state, Unknown) or (ended and isinstance(state, Running))):
                return state
            if time.monotonic() > began + limit:
                if limit >= GOING or not behind or self._holds_others():
                    return state
                limit = GOING
            time.sleep(LEAVING_STEP)

    def _holds_others(self) -> bool:
        """Whether anything lives that the holder could wait for."""
        return bool(trees.descendants(living_holder(self.directory) or NOBODY))

    def _over(self) -> bool:
        """Whether nothing of this session can live any more: the end of all is on record."""
        state = self.settled()
        return isinstance(state, Exited) and not state.background and not abandoned(self.directory)

    def cell(self, cell_text: str, *, hidden: bool = False) -> Cell:
        """Run shell text in a shell session; see ``session_magics.shell.Cell``.

        ``hidden`` is for commands of ours: they leave no trace in ``$?`` and in the index.

        Raises:
            SessionBusy: another command runs; nothing was sent.
            UsageMistake: the session runs a program and no shell of ours.
        """
        return Cell(self.attach(), cell_text, hidden=hidden, owned=True)

    def attach(self) -> Attachment:
        """Connect for many cells; the caller's to close. Raises UsageMistake for a session without our shell."""
        info = self.info()
        if info.shell is None:
            raise UsageMistake(
                f"session {self.name!r} runs {info.argv[0]} and no shell of ours: %session send {self.name} TEXT"
            )
        return Attachment(self.connect(), self.directory, self.name, info.shell)
