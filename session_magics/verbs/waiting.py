"""Waiting for what a session does, and telling meanwhile for how long."""

from __future__ import annotations

from abc import ABC, abstractmethod
from argparse import Namespace
from typing import Generic, Protocol, TypeVar

from session_magics.errors import SessionError, SessionNotRunning, WaitTimeout
from session_magics.listing import last_line
from session_magics.readiness import wait_port, wait_silence
from session_magics.session import Session
from session_magics.text.amounts import short_time
from session_magics.verbs.lifecycleoptions import ANY_PORT
from session_magics.verbs.progress import Progress, Show

READY_LIMIT = 60.0
"""Seconds that ``start --wait-for`` waits when not told."""
LAST_LINE = 60
"""Characters of what a program prints in a line that tells how long it takes."""


class Waitable(Protocol):
    """What sessions of here and of engines have in common."""

    @property
    def name(self) -> str: ...
    def tail(self, lines: int = 20, *, end: int | None = None) -> str: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def wait_for(self, pattern: str, timeout: float | None = None) -> str: ...


AnySession = TypeVar("AnySession", bound=Waitable)


class Waiting(ABC, Generic[AnySession]):
    """Waits for sessions of one kind. ``line``: see Verbs."""

    def __init__(self, line: Show | None) -> None:
        self._line = line

    def ready(self, session: AnySession, words: Namespace) -> None:
        """Wait for what ``start`` was told to wait for, if anything."""
        if words.wait_for is None and words.wait_port is None:
            return
        try:
            self.until(session, words.timeout or READY_LIMIT, pattern=words.wait_for, port=words.wait_port)
        except (WaitTimeout, SessionNotRunning) as error:
            raise SessionError(f"{error}; last output: {session.tail(1)!r}") from None

    def until(
        self,
        session: AnySession,
        timeout: float | None,
        *,
        pattern: str | None = None,
        port: int | None = None,
        silence: float | None = None,
    ) -> int | str | None:
        """Wait for the one that is given, else for the end: the matched text, the port, nothing, or the status."""
        if pattern is not None:
            with self._told(session, f"{pattern!r} of"):
                return session.wait_for(pattern, timeout)
        if port is not None:
            with self._told(session, f"{f'port {port}' if port != ANY_PORT else 'a port'} of"):
                return self._port(session, port if port != ANY_PORT else None, timeout)
        if silence is not None:
            with self._told(session, f"{silence:g} s of silence of"):
                self._silence(session, silence, timeout)
            return None
        with self._told(session, "the end of"):
            return session.wait(timeout)

    def _told(self, session: AnySession, what: str) -> Progress:
        def text(seconds: float, over: bool) -> str:
            if over:
                return f"waited {short_time(seconds)} for {what} {session.name}"
            doing = self._doing(session)
            return f"waiting for {what} {session.name} · {short_time(seconds)}" + (f" · {doing}" if doing else "")

        return Progress(self._line, text)

    @abstractmethod
    def _port(self, session: AnySession, port: int | None, timeout: float | None) -> int: ...

    @abstractmethod
    def _silence(self, session: AnySession, seconds: float, timeout: float | None) -> None: ...

    def _doing(self, _session: AnySession) -> str:
        """What the program is at; "" if that takes too much to be known."""
        return ""


class WaitingHere(Waiting[Session]):
    """Waits for sessions of this machine."""

    def _port(self, session: Session, port: int | None, timeout: float | None) -> int:
        return wait_port(session, port, timeout)

    def _silence(self, session: Session, seconds: float, timeout: float | None) -> None:
        wait_silence(session, seconds, timeout)

    def _doing(self, session: Session) -> str:
        return last_line(session.info())[:LAST_LINE]
