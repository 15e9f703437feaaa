"""Which processes are a session's: those below its holder, and those that carry its mark."""

from __future__ import annotations

import _signal
import os
import sys

from session_magics.holder.processes import ProcessEntry, ps, read_file, send, start_tick, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

HOLDER_MARK = b"SESSION_MAGICS_HOLDER="
"""Begins a variable in the environment of every holder, and of nothing that a holder starts."""
SEEK_ROUNDS = 20
"""Looks for what carries a cookie, as one may fork and end before its environment is read; 2 where nothing forks."""
RUN = "SESSION_MAGICS_RUN"
"""A variable that marks what one command in a sandbox has started; sessions that it starts do not have it."""


def children(entries: dict[int, ProcessEntry]) -> dict[int, list[int]]:
    """The pids of each parent's children."""
    found: dict[int, list[int]] = {}
    for one in entries.values():
        found.setdefault(one.ppid, []).append(one.pid)
    return found


def descendants(
    root_pid: int,
    entries: dict[int, ProcessEntry] | None = None,
    families: dict[int, list[int]] | None = None,
    strays: Iterable[int] = (),
) -> list[int]:
    """Every living process below ``root_pid``, parents before their children, without ``root_pid`` itself.

    Then come the ``strays`` that are not among them, each with what is below it.

    Left out are the holders of other sessions with all that is theirs: one that was started from inside this session
    ends up below its holder, which is a subreaper, but is none of its business. What carries the mark of the root's own
    session (a tmux server that holds its terminal) is not listed, but what is below it is. Who asks for many roots
    gives ``table()`` and its ``children``.
    """
    if entries is None:
        entries = table()
    if families is None:
        families = children(entries)
    own: bytes | None = None
    below: list[int] = []
    seen = {root_pid}
    environments = Environments()
    todo, unseen = [root_pid], iter(strays)
    while todo:
        for pid in families.get(todo.pop(0), ()):
            if pid in seen:
                continue
            seen.add(pid)
            if not entries[pid].gone and (session := _held(environments.of(entries[pid]))):
                own = held_session(root_pid) if own is None else own
                if session != own:
                    continue
            elif not entries[pid].gone:
                below.append(pid)
            todo.append(pid)
        if not todo and (stray := next((pid for pid in unseen if pid not in seen), 0)):
            seen.add(stray)
            below.append(stray)
            todo.append(stray)
    return below


def freeze(look: Callable[[], dict[int, int]], rounds: int) -> dict[int, int]:
    """Stop all that so many looks find (pid → start tick), so that nobody forks while others die; return them.

    A process with a signal pending cannot fork, so once a look finds nobody new all hold still.
    """
    frozen: dict[int, int] = {}
    for _ in range(rounds):
        fresh = {pid: tick for pid, tick in look().items() if frozen.get(pid) != tick}
        if not fresh:
            break
        for pid, tick in fresh.items():
            send(pid, tick, _signal.SIGSTOP)
        frozen.update(fresh)
    return frozen


class Environments:
    """Reads the environments of many processes, once for all that were forked from each other.

    To read one takes the lock of a process's memory. In a fork bomb of 200 on 2 processors nearly each has that while
    it waits for its turn: with a look at each, one walk over them took 5.7 s.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, int], bytes] = {}

    def of(self, one: ProcessEntry) -> bytes:
        """See ``_environment``."""
        key = (one.image, one.sid)  # where addresses are not random, other sessions may have the same
        known = self._known.get(key, b"") if one.image else b""
        if not known:  # one that is about to end says nothing any more, and its child may have begun
            known = self._known[key] = _environment(one.pid)
        return known


def held_session(pid: int) -> bytes:
    """The id of the session that the process holds; empty for none, and where the environment may not be read."""
    return _held(_environment(pid))


def _held(environment: bytes) -> bytes:
    words = environment.split(b"\0")
    return next((word[len(HOLDER_MARK) :] for word in words if word.startswith(HOLDER_MARK)), b"")


def carrying(cookie: bytes) -> dict[int, int]:
    """Pid → start tick of what was started with ``cookie`` (``NAME=value``, whole) in its environment, but for us.

    Those whose environment may not be read are left out, and those that have wiped or overwritten it.
    """
    own = os.getpid()
    if sys.platform != "linux":
        lines = [line.split(None, 1) for line in ps("-A", "-E", "-ww", "-o", "pid=", "-o", "command=").splitlines()]
        pids = [int(words[0]) for words in lines if cookie in words[-1].split() and int(words[0]) != own]
        return {pid: start_tick(pid) for pid in pids}
    else:
        environments = Environments()
        found, seen = {}, {own}
        for _ in range(SEEK_ROUNDS):
            fresh = {pid: one for pid, one in table().items() if pid not in seen}
            if not fresh:
                break
            seen.update(fresh)
            living = (one for one in fresh.values() if not one.gone)
            found.update({one.pid: one.tick for one in living if cookie in environments.of(one).split(b"\0")})
        return found


def _environment(pid: int) -> bytes:
    """Its variables at its start, each with a NUL behind it; empty where they may not be read, or no more."""
    if sys.platform != "linux":
        return ps("-E", "-ww", "-p", str(pid), "-o", "command=").replace(b" ", b"\0")
    try:
        return read_file(f"/proc/{pid}/environ")
    except OSError:
        return b""
