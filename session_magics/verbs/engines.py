"""The verbs for sessions of engines: carried there as they were typed, and waited for here."""

from __future__ import annotations

import contextlib
import sys
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from session_magics import engines
from session_magics.cluster import Cluster
from session_magics.engines import EngineSession
from session_magics.errors import SessionError, UsageMistake
from session_magics.listing import Listing, Row
from session_magics.model import SessionInfo
from session_magics.session import GRACE
from session_magics.store.names import engine_address
from session_magics.text.amounts import short_time
from session_magics.verbs.lifecycleoptions import ENGINE_PLACE
from session_magics.verbs.progress import Progress, Show
from session_magics.verbs.waiting import Waiting

CARRIED = frozenset(
    ("history", "info", "interrupt", "remove", "resize", "restart", "send", "show", "snapshot", "stop", "tail")
)
"""Verbs that need nothing of this side but their words."""


class EngineListing(Listing):
    """What ``list --engines`` returns: sessions of here and of engines, under the names by which they are reached."""

    fixed = True


class _WaitingThere(Waiting[EngineSession]):
    def _port(self, session: EngineSession, port: int | None, timeout: float | None) -> int:
        return session.wait_port(port, timeout)

    def _silence(self, session: EngineSession, seconds: float, timeout: float | None) -> None:
        session.wait_silence(seconds, timeout)


class EngineVerbs:
    """The verbs of which at least one session is an engine's.

    ``here`` carries out a call for sessions of this machine, ``there`` is the function that does it on an engine, and
    ``follow`` shows what a session prints until its end. ``line``: see Verbs.
    """

    def __init__(
        self,
        here: Callable[[Namespace], object],
        there: Callable[[Namespace], object],
        follow: Callable[[Any, int], None],
        line: Show | None,
    ) -> None:
        self._here, self._there, self._follow, self._line = here, there, follow, line
        self._waiting = _WaitingThere(line)

    def value(self, words: Namespace) -> object:
        """What the verb gives."""
        if words.verb == "list":
            return self._list(words)
        if words.verb == "start":
            return self._start(words)
        if words.verb in ("stop", "remove"):
            return self._each(words)
        session = _session(words)
        if words.verb == "wait":
            return self._waiting.until(
                session, words.timeout, pattern=words.pattern, port=words.port, silence=words.silence
            )
        if words.verb == "tail" and words.follow:
            with contextlib.suppress(KeyboardInterrupt):
                self._follow(session, words.lines)
            return None
        if words.verb == "snapshot" and words.html:
            raise UsageMistake(f"--html is for sessions of this machine: leave it out for {session.name}")
        if words.verb == "restart":
            self._carried(session, words, takes=engines.RESTART_TAKES)
            return session
        value = self._carried(session, words)
        return engines.renamed(value, session.engine) if isinstance(value, SessionInfo) else value

    def _carried(self, session: EngineSession, words: Namespace, *, takes: float = 0.0) -> object:
        with Cluster() as cluster:
            return cluster.ask(session.engine, self._there, _plain(words, name=session.plain), takes=takes)

    def _start(self, words: Namespace) -> EngineSession:
        engine = _engine(words.on)
        labels = {engines.ENGINE_LABEL: str(engine), **words.labels}
        calm = {"on": None, "wait_for": None, "wait_port": None, "timeout": None}
        with Cluster() as cluster:
            cluster.ask(engine, self._there, _plain(words, labels=labels, **calm))
        session = EngineSession(engine, words.name)
        self._waiting.ready(session, words)
        return session

    def _each(self, words: Namespace) -> list[str]:
        """Stop or remove sessions of several places at once; where some fail, the others are done."""
        names = dict.fromkeys(words.names)
        places: dict[int, list[str]] = {}
        local = []
        for name in names:
            if (address := engine_address(name)) is None:
                local.append(name)
            else:
                places.setdefault(address[1], []).append(address[0])
        grace = 0.0 if getattr(words, "now", False) else getattr(words, "grace", None)
        takes = GRACE if grace is None else grace
        requests: dict[int, tuple[Callable[..., object], tuple[object, ...]]] = {
            engine: (self._there, (_plain(words, names=tuple(plain)),)) for engine, plain in places.items()
        }
        with Progress(self._line, lambda seconds, over: f"{words.verb} {' '.join(names)} · {short_time(seconds)}"):
            with Cluster() as cluster:
                answers = list(cluster.ask_each(requests, takes=takes).values())
            if local:
                try:
                    self._here(_plain(words, names=tuple(local)))
                except SessionError as error:
                    answers.append(error)
        _raise(answers)
        return list(names)

    def _list(self, words: Namespace) -> EngineListing:
        found = self._here(_plain(words, engines=False))
        there: dict[int, list[Row]] = {}
        for engine, answer in engines.rows(words.labels).items():
            if isinstance(answer, list):
                there[engine] = answer
            else:
                sys.stderr.write(f"session-magics: {answer}\n")
        here = list(found.rows) if isinstance(found, Listing) else []
        return EngineListing(engines.merged(here, there), words.labels)


def _plain(words: Namespace, **changed: object) -> Namespace:
    return Namespace(**{**vars(words), **changed})


def _session(words: Namespace) -> EngineSession:
    address = engine_address(words.name)
    if address is None or words.verb not in (*CARRIED, "wait"):
        raise UsageMistake(
            f"{words.verb} is for sessions of this machine: for {words.name}, %px %session {words.verb} …"
        )
    return EngineSession(address[1], address[0])


def _engine(on: str) -> int:
    number = on.removeprefix(ENGINE_PLACE)
    if not (number.isascii() and number.isdigit() and len(number) < 7):
        raise UsageMistake(f"{on[:80]!r} is no engine: {ENGINE_PLACE}N, such as {ENGINE_PLACE}2")
    return int(number)


def _raise(answers: list[object]) -> None:
    errors = [answer for answer in answers if isinstance(answer, SessionError)]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise SessionError("; ".join(map(str, errors)))
