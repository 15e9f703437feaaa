"""The same for several sessions at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TypeVar

from session_magics.errors import SessionError
from session_magics.session import GRACE, Session

CALLS_AT_ONCE = 32
"""Threads of ``all_at_once``: each only waits for its holder."""

Value = TypeVar("Value")


def stop_each(
    sessions: Sequence[Session],
    *,
    grace: float = GRACE,
    now: bool = False,
    left: Callable[[Sequence[str]], None] = lambda names: None,
) -> None:
    """Stop these sessions, all at once, with ``grace`` in seconds; for the rest see ``all_at_once``."""
    all_at_once({session.name: partial(session.stop, grace, now=now) for session in sessions}, left=left)


def all_at_once(
    calls: Mapping[str, Callable[[], Value]],
    *,
    left: Callable[[Sequence[str]], None] = lambda names: None,
    after: Mapping[str, str] = MappingProxyType({}),
) -> list[Value]:
    """Make these calls, one for each session, in threads; what they gave.

    ``left`` is told the names of those that are not over yet: of all at first, and then from several threads.
    ``after``: name of one that waits for another's end, which comes earlier in ``calls``.
    Raises what the one that failed raised, or SessionError for several.
    """
    from concurrent.futures import Future, ThreadPoolExecutor, wait

    if not calls:
        return []
    names = list(calls)
    left(tuple(names))
    made: dict[str, Future[Value]] = {}

    def make(name: str) -> Value:
        if name in after:
            wait([made[after[name]]])
        value = calls[name]()
        names.remove(name)
        left(tuple(names))
        return value

    with ThreadPoolExecutor(min(CALLS_AT_ONCE, len(calls))) as pool:
        for name in calls:
            made[name] = pool.submit(make, name)
    errors = [error for outcome in made.values() if (error := outcome.exception())]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise SessionError("; ".join(map(str, errors)))
    return [outcome.result() for outcome in made.values()]
