"""What holds a session on this side whose program runs elsewhere: its files here, its clients, and the connection.

The far side has a holder of its own, with all its logic; here its log, index and records are kept byte for byte, and
what clients ask is handed on. A connection that drops is made anew, and everything goes on at the offset reached. If
that cannot be done soon the session is lost, with a reason that says what may still run there.
"""

from __future__ import annotations

import _signal
import os
import time

from session_magics.holder import agentwire, statefiles, wire
from session_magics.holder.child import SpawnError
from session_magics.holder.holder import DEFAULT_GRACE, OWNER_GRACE
from session_magics.holder.logfile import LOG_CAP, LogWriter
from session_magics.holder.loop import Loop
from session_magics.holder.relaylink import RelayLink, Road
from session_magics.holder.relayrequests import RelayRequests
from session_magics.holder.server import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from session_magics.holder.launch import Launch
    from session_magics.holder.loop import Timer

RECONNECT_LIMIT = 4.0
"""Seconds in which a connection that has dropped has to be there again: whoever waits is told within five."""
RECONNECT_PAUSE = 0.4
"""Seconds between two tries."""
START_LIMIT = 25.0
"""Seconds for the first connection and the start of the far holder: less than a starter waits for the answer."""
BEATS = (1.0, 10.0)
"""Seconds between two looks at the connection: while an answer is awaited, and else."""
SILENCE_LIMIT = 2.5
"""Seconds for the agent to answer a ping, after which the connection counts as dropped."""
BYE_LIMIT = 2.0
"""Seconds for the agent to remove what the session had there."""
CLEANUP_LIMIT = 20.0
"""Seconds for the command that gives up the place itself; removing a container takes about one."""
NO_TICK = -1
"""Stands for the start tick of a far process: its pid means nothing here, and no process has this tick."""


class Relay:
    """Serves one session in the working directory. Everything runs in the loop's thread."""

    terminal = None
    """There is none here."""

    def __init__(self, launch: Launch) -> None:
        self.launch, self.loop = launch, Loop()
        self.log = LogWriter(".", cap=launch.cap or LOG_CAP)
        self.loop.on_fault = lambda what: self.log.event("fault", what=what)
        far = launch.far
        self.place = far[b"place"].decode("utf-8", "replace")
        self._id, self._message, self._cleanup = far[b"id"], far[b"message"], wire.unpack(far[b"cleanup"])
        self._detached = far[b"detached"] == b"1"
        self._mode = agentwire.START
        self.generation = launch.generation
        self.requests = RelayRequests(self)
        self.link = RelayLink(self.loop, Road(far), up=self._up, take=self._take, down=self._down)
        self.connected = False
        """Whether the far holder can be asked."""
        self.over = False
        """Whether it has gone, and all that it left is here."""
        self._server: Server | None = None
        self._running = self._finished = False
        self._failure = ""
        self._directory, self._index = b"", 0  # the far ones; bytes of the index that are here
        self._run: list[bytes] = []
        self._limit: Timer | None = None
        self._beat: Timer | None = None
        self._pinged = 0.0
        self._cut_off = ""  # why the newest connection was over
        self.orphaned = self._vanishing = False
        """Whether what the session ends with has ended: nothing starts it again here, where nobody would end it."""
        self._going = self._something_lives = False
        self._loss = ""

    # ---- start

    def start(self) -> None:
        """Have the program started there; raises SpawnError. From here on the session runs."""
        self.loop.on_signal(_signal.SIGTERM, lambda: self._stop(DEFAULT_GRACE))
        for name in ("SIGHUP", "SIGINT", "SIGPIPE"):
            _signal.signal(getattr(_signal, name), _signal.SIG_IGN)
        self._limit = self.loop.later(START_LIMIT, lambda: self._not_started_at("it takes too long"))
        self._open()
        if not self._failure:
            self.loop.run()
        if self._failure:
            self.link.close()
            raise SpawnError(self._failure)
        self._message = b""
        self._server = Server(self.loop, self.requests.handle)
        if not self._finished:
            self.loop.go_on()
        self.loop.on_end(self.launch.owner, self._owner_gone)
        self.loop.on_end(self.launch.parent, self._parent_gone)

    def _not_started(self, reason: str) -> None:
        self._failure = self._failure or reason
        self.loop.stop()

    def _refused(self, reason: str) -> None:
        """The agent could not do what it is there for."""
        if self._running:
            self.link.close()
            self._down(reason)
        else:
            self._not_started(reason)

    def _started(self) -> None:
        if not self._running:
            self._running = True
            self.loop.cancel(self._limit)
            self._limit = None
            self.loop.stop()

    # ---- the connection

    def _open(self) -> None:
        try:
            self.link.open()
        except OSError as error:
            self._down(error.strerror or str(error))

    def _up(self) -> None:
        self.link.send(
            agentwire.OPEN, self._mode, self._id, self._directory, b"%d" % self.log.end, b"%d" % self._index,
            self._message,
        )  # fmt: skip
        if self._mode == agentwire.START:  # should this connection break, something may run all the same
            self._mode = agentwire.FORCE

    def _ready(self, directory: bytes, generation: int) -> None:
        self._directory, self.generation = directory, max(self.generation, generation)
        self._mode = agentwire.ATTACH
        self.connected, self._pinged = True, 0.0
        self.loop.cancel(self._limit)
        self._limit = None
        self.requests.again()
        self.watch_over()

    def _down(self, reason: str) -> None:
        """The connection has ended, or could not be made."""
        was, self.connected = self.connected, False
        if self._going and self._mode != agentwire.FORCE:
            self._mode = agentwire.FORCE  # once more, to leave nothing on disk there
            self._open()
        elif self._going:
            self._finish()
        elif not self._running:
            again = self._mode == agentwire.FORCE and not self._failure
            self._not_started_at(reason)
            if again:
                self.loop.go_on()
                self._open()
        elif self.link.container_gone:
            self._lose(f"the container of {self.place} has ended: {reason}", lives=False)
        else:
            self._cut_off = reason
            if was or self._limit is None:
                self.requests.dropped()
                self._limit = self.loop.later(RECONNECT_LIMIT, self._give_up)
            self.loop.later(0.0 if was else RECONNECT_PAUSE, self._reopen)

    def _not_started_at(self, reason: str) -> None:
        self._not_started(f"{self.place} cannot be reached: {reason}")

    def _reopen(self) -> None:
        if self._limit is not None and not self.link.pid:
            self._open()

    def _give_up(self) -> None:
        self._limit = None
        reason = self.link.complaint or self._cut_off  # one that is just being made has not said anything yet
        self.link.close()
        what = "it may still run there" if self._detached else "what it runs there ends by itself soon"
        self._lose(f"no connection to {self.place} any more ({reason}): {what}", lives=True)

    def absence(self) -> str:
        """Why nothing can be asked now."""
        return f"the connection to {self.place} has dropped"

    def watch_over(self) -> None:
        """Look after the connection from now on, often while an answer is awaited."""
        if self._beat is None or self._beat.when > time.monotonic() + BEATS[0]:
            self.loop.cancel(self._beat)
            self._beat = self.loop.later(BEATS[not self.requests.pending], self._look)

    def _look(self) -> None:
        self._beat = None
        now = time.monotonic()
        if not self.connected:
            return
        if self.link.heard:
            self._pinged, self.link.heard = 0.0, False
        if self._pinged and now - self._pinged > SILENCE_LIMIT:
            self.link.close()
            self._down("it does not answer")
            return
        if not self._pinged:
            self._pinged = now
            self.link.send(agentwire.PING)
        self._beat = self.loop.later(BEATS[0], self._look) if self.requests.pending else None
        self.watch_over()

    # ---- what comes

    def _take(self, kind: bytes, fields: list[bytes]) -> None:
        if kind == agentwire.LOG:
            self._take_log(int(fields[0]), fields[1])
        elif kind == agentwire.INDEX:
            self._index += len(fields[0])
            self.log.copy_events(fields[0])
            self.ring()
        elif kind == agentwire.RUN_RECORD:
            self._run, self.generation = fields, int(fields[1])
            self._write_run()
            self._started()
        elif kind == agentwire.EXIT_RECORD:
            statefiles.copy_exit(fields[0])
        elif kind == agentwire.READY:
            self._ready(fields[0], int(fields[1]))
        elif kind == agentwire.GONE:
            self._gone(fields[0], survivors=bool(fields[1:]))
        elif kind == agentwire.FAILED:
            self._refused(fields[0].decode("utf-8", "surrogateescape"))
        elif kind == agentwire.BYE or (kind == agentwire.FORCED and self._going):
            self._finish()
        elif kind == agentwire.FORCED:
            self.loop.stop()
        elif kind == agentwire.FAULT:
            self.log.event("fault", what=f"{self.place}: {fields[0].decode('utf-8', 'replace')}")
        elif kind != agentwire.PONG:
            self.requests.answered(kind, fields)

    def _take_log(self, at: int, data: bytes) -> None:
        if at > self.log.end:
            self.log.skip(at - self.log.end)
        self.log.append(data[self.log.end - at :])
        self.ring()

    def _write_run(self, **more: object) -> None:
        pid, generation, since, rows, columns, *rest = self._run
        known = {name.decode(): _value(text) for name, text in wire.pairs(rest).items()}
        place = {"tick": NO_TICK, "far": int(pid)}
        size = (int(rows), int(columns))
        try:
            statefiles.write_run(int(pid), int(generation), float(since), size, place | known | more)
        except OSError:
            if not self._running:
                raise

    def ring(self) -> None:
        """Tell the clients that wait for news."""
        if self._server is not None:
            self._server.ring(self.log.end, self.log.index_size)

    # ---- the end

    def _gone(self, how: bytes, *, survivors: bool) -> None:
        self.connected = False
        if how == agentwire.ENDED:
            self.over = True
            self.requests.conclude()
            self.ring()
        else:
            what = "its holder was killed" if how == agentwire.KILLED else "nothing is left of it"
            self._loss, self._something_lives = f"{what} on {self.place}", survivors
        self._going, self._mode = True, agentwire.ATTACH
        self.link.send(agentwire.BYE)
        self.loop.later(BYE_LIMIT, self._finish)

    def _finish(self) -> None:
        """All is over and told: give up the place itself, where it was made for this session."""
        if self._finished:
            return
        self.link.close()
        if self._loss:
            self._lose(self._loss, lives=self._something_lives)
            return
        self._finished = True
        run_to_end(self._cleanup, CLEANUP_LIMIT)
        self._leave()

    def _lose(self, reason: str, *, lives: bool) -> None:
        """How the program ends will not be known."""
        self._finished, self._something_lives = True, lives
        if self._run:
            self._write_run(lost=reason)
        if not lives:
            run_to_end(self._cleanup, CLEANUP_LIMIT)
        self._leave()

    def _leave(self) -> None:
        self.connected = False
        if self._vanishing:
            statefiles.erase(self.launch.directory, self.launch.name_file)
        self.loop.stop()

    def _stop(self, grace: float) -> None:
        self.requests.ask(None, wire.STOP, [b"0", b"%g" % grace])

    def _owner_gone(self) -> None:
        """The kernel that owns the session has ended: leave nothing behind, not even the record."""
        self.orphaned = self._vanishing = True
        self._stop(OWNER_GRACE)

    def _parent_gone(self) -> None:
        self.orphaned = True
        self._stop(OWNER_GRACE)

    def close(self) -> None:
        """Give everything back; the last act of the process. A socket that stays says that something may still live."""
        if self._server is not None:
            if self._something_lives and not self._vanishing:
                self._server.hang_up()
            else:
                self._server.close()
        self.link.close()
        self.log.close()


def _value(text: bytes) -> object:
    """A number or nothing, as JSON has it."""
    if text == b"null":
        return None
    return float(text) if b"." in text or b"e" in text else int(text)


def run_to_end(argv: list[bytes], limit: float) -> None:
    """Run a command that nobody hears, and wait for its end, so long at most."""
    if not argv:
        return
    null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in (0, 1, 2)]
    try:
        pid = os.posix_spawnp(argv[0], argv, os.environb, file_actions=null)
    except OSError:
        return
    deadline = time.monotonic() + limit
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(pid, _signal.SIGKILL)
            os.waitpid(pid, 0)
            return
        time.sleep(0.01)
