"""What the conformance checks stand on: sessions with a known behaviour, and comparisons that say what was wrong."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from session_magics.backends import Link
from session_magics.errors import SessionError, SessionNotRunning
from session_magics.holder.escalation import AGAIN_WITHIN
from session_magics.model import Command, Exited
from session_magics.registry import Registry
from session_magics.session import Session
from session_magics.testing.behaviour import BEHAVIOURS

LIMIT = 20.0
"""Seconds for anything that a check waits for; all of it takes milliseconds."""


class Rig:
    """A registry over the backend to be checked, and how it is given programs.

    Args:
        registry: one with a root of its own.
        argv: makes the argv of a behaviour (the first word of ``BEHAVIOURS``) and its words; default: a real program.
        shell: a shell for cells, as ``Registry.shell`` takes it; None where the backend has no shell sessions.
    """

    def __init__(
        self,
        registry: Registry,
        *,
        argv: Callable[..., tuple[str, ...]] | None = None,
        shell: str | None = "bash",
    ) -> None:
        self.registry, self.shell = registry, shell
        self._argv = argv or real_argv

    def argv(self, behaviour: str, *words: object) -> tuple[str, ...]:
        """What runs a program with that behaviour."""
        return self._argv(behaviour, *map(str, words))

    @contextlib.contextmanager
    def started(self, behaviour: str, *words: object, ready: bool = True, **options: Any) -> Iterator[Session]:
        """A session with a behaviour, which is ended with the block; ``ready``: wait until it says so."""
        session = self.registry.start(f"check-{behaviour}", Command(self.argv(behaviour, *words)), **options)
        try:
            if ready:
                session.wait_for("ready\n", LIMIT)
            yield session
        finally:
            session.stop(now=True)

    @contextlib.contextmanager
    def cells(self) -> Iterator[Link]:
        """A link to a fresh shell session, which is ended with the block."""
        session = self.registry.shell("check-cells", shell=self.shell, lifetime="detached", rc=False)
        try:
            with session.link() as link:
                yield link
        finally:
            session.stop(now=True)


def real_argv(behaviour: str, *words: str) -> tuple[str, ...]:
    """A Python program with that behaviour."""
    return (sys.executable, "-I", "-S", "-u", "-c", BEHAVIOURS, behaviour, *words)


def same(found: object, wanted: object, what: str) -> None:
    if found != wanted:
        raise AssertionError(f"{what}: {found!r:.400}, wanted {wanted!r:.400}")


def raises(kind: type[SessionError], call: Callable[[], object], what: str) -> None:
    try:
        found = call()
    except kind:
        return
    raise AssertionError(f"{what}: {found!r:.100}, wanted {kind.__name__}")


def insist(interrupt: Callable[[], None]) -> None:
    """Interrupt three times so soon after each other that they get harder; anew where the machine was busy."""
    in_time = False
    while not in_time:
        began = time.monotonic()
        with contextlib.suppress(SessionNotRunning):
            for _ in range(3):
                interrupt()
        in_time = time.monotonic() - began < AGAIN_WITHIN


def receive_until(link: Link, ready: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + LIMIT
    while not ready():
        if not link.receive(deadline - time.monotonic()) and time.monotonic() >= deadline:
            raise AssertionError(f"{what} did not come within {LIMIT:g} s")


def ended(session: Session) -> Exited:
    with contextlib.suppress(SessionNotRunning):
        session.wait(LIMIT)
    state = session.state()
    if not isinstance(state, Exited):
        raise AssertionError(f"state after the end: {state}")
    return state


def outcome(link: Link, ticket: int) -> Sequence[bytes]:
    found: list[Sequence[bytes]] = []

    def take() -> bool:
        fields = link.finished(ticket)
        if fields is not None:
            found.append(list(fields))
        return bool(found)

    receive_until(link, take, "the outcome of a cell")
    return found[0]
