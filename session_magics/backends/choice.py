"""Which backend holds a session: asked for at its start, and read from its record from then on."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from session_magics.backends import Backend, Link, Start
from session_magics.backends.native import NativeBackend
from session_magics.environment import COOKIE
from session_magics.errors import StoreError, UsageMistake
from session_magics.holder import trees
from session_magics.store.records import read_spec

AUTO = "auto"
KINDS = (AUTO, "native", "tmux")
"""What may be asked for."""


def _far() -> Backend:
    from session_magics.backends.far import FarBackend

    return FarBackend()


def _tmux() -> Backend:
    from session_magics.backends.tmux import TmuxBackend  # most sessions never need it

    return TmuxBackend()


class Backends:
    """All real backends as one: each session is started, reached and ended by its own.

    ``preferred`` holds programs that nobody asked a backend for; "auto" is native.
    """

    name = AUTO

    def __init__(self, preferred: str = AUTO) -> None:
        if preferred not in KINDS:
            raise UsageMistake(f"{preferred!r} is no backend: {', '.join(KINDS)}")
        self.preferred = preferred
        self._makers: Mapping[str, Callable[[], Backend]] = {"native": NativeBackend, "tmux": _tmux, "far": _far}
        self._made: dict[str, Backend] = {}

    def start(self, start: Start) -> None:
        """See Backend."""
        self._named(start.spec.backend).start(start)

    def connect(self, directory: Path, name: str) -> Link:
        """See Backend."""
        return self._of(directory).connect(directory, name)

    def force(self, directory: Path, id: str) -> tuple[int, ...]:
        """See Backend."""
        return self._of(directory).force(directory, id)

    def _of(self, directory: Path) -> Backend:
        kind = "tmux"  # it can end what the native one holds as well
        with contextlib.suppress(StoreError, OSError):
            kind = read_spec(str(directory)).backend
        return self._named(kind)

    def _named(self, kind: str) -> Backend:
        """One of a kind that is not known here was written by a newer version, or by a test's: its files are ours."""
        if kind not in self._makers:
            kind = "native"
        if kind not in self._made:
            self._made[kind] = self._makers[kind]()
        return self._made[kind]


def abandoned(directory: Path) -> bool:
    """Whether the last holder was killed: it removes its sockets when it goes, and then nothing of the program lives.

    An end on record does not tell that: a holder stays for what the program has left behind.
    """
    return any(os.path.lexists(directory / name) for name in ("sock", "tmux"))


def may_live_on(directory: Path, id: str) -> bool:
    """Whether something of a session lives that has lost its holder; with tmux and elsewhere, as far as one can see."""
    if os.path.lexists(directory / "tmux"):
        return True
    elsewhere = os.path.lexists(directory / "road")
    return abandoned(directory) and (elsewhere or bool(trees.carrying(f"{COOKIE}={id}".encode())))


def choose(backend: Backend, asked: str | None, *, shell: bool, far: bool) -> str:
    """The name of the backend for a new session; ``asked`` is what the person said, None for nothing.

    UsageMistake: it is not known or cannot be had. Shells are held by the native one, whatever is preferred; what is
    not on this machine (``far``), by its own.
    """
    if asked is not None and asked not in (*KINDS, backend.name):
        raise UsageMistake(f"{asked!r} is no backend: {', '.join(KINDS)}")
    if not isinstance(backend, Backends):
        if asked not in (None, AUTO, backend.name):
            raise UsageMistake(f"this registry holds its sessions by {backend.name!r} and not by {asked!r}")
        return backend.name
    if far:
        if asked == "tmux":
            raise UsageMistake("tmux holds what runs on this machine: leave out --backend tmux, or --on")
        return "far"
    if shell:
        if asked == "tmux":
            raise UsageMistake("tmux holds no shells for cells: leave out --backend tmux")
        return "native"
    kind = backend.preferred if asked in (None, AUTO) else asked
    if kind == "tmux":
        from session_magics.backends.tmux import find_tmux

        find_tmux()
    return "native" if kind == AUTO or kind is None else kind
