"""Sessions on the engines of an IPython Parallel cluster, as a program here sees them.

An engine's sessions are those of its own machine and user: what is asked here is done by the registry there. They are
called ``NAME@engine:N``; a session outlives its engine as one of here outlives its kernel, and engines on one machine
have the same sessions. ``session_magics.cluster`` says which cluster is meant.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from session_magics.cluster import Cluster, NoAnswer
from session_magics.errors import SessionError, SessionNotRunning, WaitTimeout
from session_magics.listing import Observer, Row
from session_magics.log import LogReader
from session_magics.model import Command, Exited, Running, SessionInfo, State, describe
from session_magics.news import News
from session_magics.readiness import wait_port
from session_magics.registry import Registry
from session_magics.session import GRACE
from session_magics.store.names import at_engine
from session_magics.text.window import Window, compiled

ENGINE_LABEL = "engine"
"""Label of what was started from here: the number of the engine."""
PIECE = 256 * 1024
"""Bytes of output that an engine gives at a time: some milliseconds of its time."""
FIRST_PAUSE, LONGEST_PAUSE, SLOWER = 0.05, 0.5, 1.5
"""Seconds between two looks at a session, and by what they grow while nothing comes. A look takes the engine 5 ms."""
RESTART_TAKES = 2 * GRACE
"""Seconds that a restart may take: the end of the old program and the beginning of the new one."""

Found = TypeVar("Found")


@dataclass(frozen=True)
class Piece:
    """Output of a session from an offset on."""

    data: bytes
    position: int
    """The offset behind it."""
    end: int
    """The offset of the log's end."""
    running: bool
    """False once the program had ended before this was read."""
    state: State


class EngineSession:
    """A session on an engine. As ``Session``, and each method makes the connection that it needs.

    What waits does so here, by short questions: meanwhile the engine is free for other work, and may do it.
    """

    def __init__(self, engine: int, name: str, cluster: str | None = None) -> None:
        """``name``: as the engine knows it; ``cluster``: see ``Cluster``."""
        self.engine, self.plain, self._cluster = engine, name, cluster

    @property
    def name(self) -> str:
        """How it is addressed from here."""
        return at_engine(self.plain, self.engine)

    def __repr__(self) -> str:
        try:
            state = self.state()
        except SessionError as error:  # it is shown all the same
            return f"<Session {self.name}: {error}>"
        pid = f" pid={state.pid}" if isinstance(state, Running) else ""
        return f"<Session {self.name} {describe(state)}{pid}>"

    def _ask(self, method: str, *arguments: object, takes: float = 0.0, **options: object) -> Any:
        with Cluster(self._cluster) as cluster:
            return cluster.ask(self.engine, _of_session, self.plain, method, arguments, options, takes=takes)

    def info(self) -> SessionInfo:
        """All that is known about it, paths and pids being those of its machine."""
        return renamed(self._ask("info"), self.engine)

    def state(self) -> State:
        """See Session."""
        state: State = self._ask("state")
        return state

    def tail(self, lines: int = 20, *, end: int | None = None) -> str:
        """See Session."""
        return str(self._ask("tail", lines, end=end))

    def snapshot(self, *, styled: bool = False) -> str:
        """See Session."""
        return str(self._ask("snapshot", styled=styled))

    def send(self, data: str | bytes) -> None:
        """See Session."""
        self._ask("send", data)

    def interrupt(self) -> None:
        """See Session."""
        self._ask("interrupt")

    def resize(self, rows: int, columns: int) -> None:
        """See Session."""
        self._ask("resize", rows, columns)

    def stop(self, grace: float = GRACE, *, now: bool = False) -> State:
        """See Session. The engine does nothing else meanwhile."""
        state: State = self._ask("stop", grace, now=now, takes=grace)
        return state

    def restart(self, *, env: Mapping[str, str | None] | None = None) -> EngineSession:
        """Stop its program if it runs and start it again; see Registry."""
        with Cluster(self._cluster) as cluster:
            cluster.ask(self.engine, _restart, self.plain, env, takes=RESTART_TAKES)
        return self

    def remove(self, *, force: bool = False, keep_log: bool = False) -> None:
        """Forget it; see Registry."""
        with Cluster(self._cluster) as cluster:
            takes = GRACE if force else 0.0
            cluster.ask(self.engine, _remove, self.plain, force, keep_log, takes=takes)

    # ---------------------------------------------------------------- waiting

    def follow(self, begin: int | None = None) -> Iterator[bytes]:
        """Yield output as it comes, from an offset (default: from now on), until the program has ended."""
        pause = FIRST_PAUSE
        with Cluster(self._cluster) as cluster:
            position = begin
            while True:
                piece = self._piece(cluster, position)
                position = piece.position
                if piece.data:
                    pause = FIRST_PAUSE
                    yield piece.data
                elif not piece.running:
                    return
                if position >= piece.end and piece.running:
                    time.sleep(pause)
                    pause = min(SLOWER * pause, LONGEST_PAUSE)

    def _piece(self, cluster: Cluster, position: int | None, patient_until: float = math.inf) -> Piece:
        piece: Piece = cluster.ask(self.engine, _output_after, self.plain, position, patient_until=patient_until)
        return piece

    def wait(self, timeout: float | None = None) -> int:
        """See Session."""

        def ended(cluster: Cluster, until: float) -> tuple[State] | None:
            state: State | None = cluster.ask(self.engine, _ended, self.plain, patient_until=until)
            return None if state is None else (state,)

        (state,) = self._until(ended, "the end", timeout)
        if isinstance(state, Exited):
            return state.status
        raise SessionNotRunning(self.name, describe(state))

    def wait_for(self, pattern: str, timeout: float | None = None, *, begin: int = 0) -> str:
        """See Session."""
        window = Window(compiled(pattern))
        position = begin

        def appeared(cluster: Cluster, until: float) -> str | None:
            nonlocal position
            while True:
                piece = self._piece(cluster, position, until)
                position = piece.position
                if piece.data and (found := window.feed(piece.data)) is not None:
                    return found
                if not piece.running and not piece.data:
                    raise SessionNotRunning(self.name, f"{describe(piece.state)} before {pattern!r} appeared")
                if position >= piece.end and piece.running:
                    return None

        return self._until(appeared, f"{pattern!r}", timeout)

    def wait_port(self, port: int | None = None, timeout: float | None = None) -> int:
        """Wait until it listens on a TCP port of its machine (None: on any); the port."""

        def listens(cluster: Cluster, until: float) -> int | None:
            found: int | None = cluster.ask(self.engine, _listening, self.plain, port, patient_until=until)
            return found

        return self._until(listens, f"port {port}" if port else "a port", timeout)

    def wait_silence(self, seconds: float, timeout: float | None = None) -> None:
        """Wait until it has printed nothing for so many seconds; its end is silence too."""
        end, since = -1, time.monotonic()

        def silent(cluster: Cluster, until: float) -> bool | None:
            nonlocal end, since
            piece = self._piece(cluster, None, until)
            if piece.end != end:
                end, since = piece.end, time.monotonic()
            return not piece.running or time.monotonic() - since >= seconds or None

        self._until(silent, f"{seconds:g} s of silence", timeout)

    def _until(self, look: Callable[[Cluster, float], Found | None], what: str, timeout: float | None) -> Found:
        """What ``look`` finds in the end; it is given the moment up to which it may wait for the engine."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        pause = FIRST_PAUSE
        with Cluster(self._cluster) as cluster:
            while True:
                try:
                    if (found := look(cluster, deadline)) is not None:
                        return found
                except NoAnswer:
                    pass  # the deadline is over
                if (left := deadline - time.monotonic()) <= 0:
                    raise WaitTimeout(self.name, what, timeout or 0.0)
                time.sleep(min(pause, left))
                pause = min(SLOWER * pause, LONGEST_PAUSE)


def start(engine: int, name: str, command: Command, *, cluster: str | None = None, **options: Any) -> EngineSession:
    """Start a program on an engine; the options are those of ``Registry.start``."""
    options["labels"] = {ENGINE_LABEL: str(engine), **(options.get("labels") or {})}
    with Cluster(cluster) as connection:
        connection.ask(engine, _start, name, command, options)
    return EngineSession(engine, name, cluster)


def rows(labels: Mapping[str, str], cluster: str | None = None) -> dict[int, object]:
    """The rows of the sessions of each engine, a list, or the SessionError that says why there are none."""
    with Cluster(cluster) as connection:
        return connection.ask_each(dict.fromkeys(connection.ids, (_rows, (dict(labels),))))


def merged(here: list[Row], there: Mapping[int, list[Row]]) -> list[Row]:
    """Each session once, under the name by which it is reached: first those of this machine.

    Engines of one machine and user know the same sessions, by the same ids; so may this process. Which engine is told
    is the one whose own the session is, or that was told to start it, or the first that knows it; of sessions that
    are known here, those alone that belong to an engine have one.
    """
    seen: dict[str, dict[int, Row]] = {}
    for engine, found in there.items():
        for row in found:
            seen.setdefault(_key(row), {})[engine] = row
    known = {_key(row): row for row in here}
    shown = []
    for key, row in known.items():
        home = _home(seen.get(key, {}))
        shown.append(row if home is None else _named(seen[key][home], home))
    for key, by_engine in seen.items():
        if key not in known:
            home = _home(by_engine)
            first = min(by_engine) if home is None else home
            shown.append(_named(by_engine[first], first))
    return shown


def _home(by_engine: Mapping[int, Row]) -> int | None:
    for engine, row in by_engine.items():
        own = row.info.lifetime == "kernel" and "@" not in row.info.name
        if own or row.info.labels.get(ENGINE_LABEL) == str(engine):
            return engine
    return None


def _named(row: Row, engine: int) -> Row:
    return replace(row, info=renamed(row.info, engine))


def renamed(info: SessionInfo, engine: int) -> SessionInfo:
    """What an engine knows of a session, under the name by which it is reached from here."""
    return replace(info, name=at_engine(info.name, engine))


def _key(row: Row) -> str:
    return row.info.id or str(row.info.directory)  # a damaged name has no id


# ------------------------------------------------------------------ what an engine is asked


def _of_session(name: str, method: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> object:
    return getattr(Registry().get(name), method)(*arguments, **options)


def _start(name: str, command: Command, options: Mapping[str, Any]) -> None:
    Registry().start(name, command, **options)


def _restart(name: str, env: Mapping[str, str | None] | None) -> None:
    Registry().restart(name, env=env)


def _remove(name: str, force: bool, keep_log: bool) -> None:
    Registry().remove(name, force=force, keep_log=keep_log)


def _rows(labels: Mapping[str, str]) -> list[Row]:
    return Observer().rows(Registry().infos(labels))


def _ended(name: str) -> State | None:
    session = Registry().get(name)
    with session.news() as news:
        return None if _runs(news) else session.state()


def _runs(news: News) -> bool:
    with contextlib.suppress(SessionError):
        news.link()  # connected, it can tell a restart from an end
    return news.running()


def _listening(name: str, port: int | None) -> int | None:
    try:
        return wait_port(Registry().get(name), port, 0.0)
    except WaitTimeout:
        return None


def _output_after(name: str, position: int | None) -> Piece:
    session = Registry().get(name)
    with session.news() as news, LogReader(session.directory) as log:
        running = _runs(news)  # first, so that what was written before the end is read below
        end = log.end()
        position = end if position is None else position
        data = bytearray()
        for offset, chunk in log.read(position, end):
            data += chunk
            position = offset + len(chunk)
            if len(data) >= PIECE:
                break
        else:
            position = end  # a gap behind the last chunk is passed over too
        return Piece(bytes(data), position, end, running, session.state())
