"""The verb ``copy``: which place is meant, and how far it is."""

from __future__ import annotations

import contextlib
import os
from argparse import Namespace
from typing import TYPE_CHECKING

from session_magics.errors import SessionNotFound, UsageMistake
from session_magics.model import NAME_PATTERN, SessionInfo
from session_magics.registry import Registry
from session_magics.text.amounts import short_bytes, short_time
from session_magics.verbs.progress import Progress, Show, bar

if TYPE_CHECKING:  # most verbs need none of it
    from session_magics.sandbox import Sandbox
    from session_magics.sandbox.copying import Copied

KINDS = ("docker", "container", "ssh")
LOCAL_BEGINS = ("/", "./", "../", "~")
"""What begins with one of these is a path here, whatever colons it has."""


class CopyVerb:
    """One method a verb; ``Verbs`` has the others."""

    _registry: Registry
    _line: Show | None

    def _copy(self, words: Namespace) -> Copied:
        from session_magics.sandbox.copying import copy_in, copy_out

        (from_place, source), (to_place, target) = parted(words.source), parted(words.target)
        if (from_place is None) == (to_place is None):
            what = "two places" if from_place is not None else "two paths on this machine"
            hint = "copy it here first" if from_place is not None else "cp does that; a path elsewhere is PLACE:PATH"
            raise UsageMistake(f"{words.source!r} and {words.target!r} are {what}: {hint}")
        far = _Amount()
        show = Progress(self._line, lambda seconds, over: far.text(words.source, seconds, over))
        if from_place is not None:
            with contextlib.closing(self._opened(from_place, source, into=False)) as sandbox, show:
                return copy_out(sandbox, source, os.path.expanduser(target), far.take)
        assert to_place is not None
        with contextlib.closing(self._opened(to_place, target, into=True)) as sandbox, show:
            return copy_in(sandbox, os.path.expanduser(source), target, far.take)

    def _opened(self, place: str, path: str, *, into: bool) -> Sandbox:
        """The sandbox for a place or a session's name, in which that path is not out of bounds."""
        from session_magics.sandbox.places import open_place, read_place

        root = "/" if path.startswith("/") else None
        written = place.partition(":")[0] in KINDS
        if written and ":" not in place:
            raise UsageMistake(f"'{place}:{path}' names a place and no path: {place}:{path}:PATH")
        if not written and NAME_PATTERN.fullmatch(place.partition("@")[0]) and (found := self._registry.find(place)):
            return self._of_session(found.info(), root)
        try:
            there = read_place(place, self._registry.store.root)
        except UsageMistake:
            if written:
                raise
            raise SessionNotFound(place, [info.name for info in self._registry.infos()]) from None
        if into and there.kind == "docker":
            raise UsageMistake(
                f"{place!r} is a container for this copy alone, gone with what it got: name a session or container:NAME"
            )
        return open_place(there, root=root)

    def _of_session(self, info: SessionInfo, root: str | None) -> Sandbox:
        from session_magics.sandbox.places import open_place, read_place, session_place

        if info.on is None:
            raise UsageMistake(f"session {info.name!r} runs on this machine: cp does that")
        begin = info.cwd if info.cwd.startswith("/") else None
        return open_place(session_place(read_place(info.on, self._registry.store.root), info.id), root=root or begin)


class _Amount:
    """How much of it is done."""

    def __init__(self) -> None:
        self._done = 0
        self._total: int | None = None

    def take(self, done: int, total: int | None) -> None:
        """So much is done."""
        self._done, self._total = done, total

    def text(self, what: str, seconds: float, over: bool) -> str:
        """The line to show."""
        done = short_bytes(self._done)
        if over:
            return f"copied {done} of {what} in {short_time(seconds)}"
        if not self._total:
            return f"copying {what} · {done} · {short_time(seconds)}"
        part = f"{bar(self._done, self._total)} {done} of {short_bytes(self._total)}"
        return f"copying {what} {part} · {short_time(seconds)}"


def parted(word: str) -> tuple[str | None, str]:
    """The place and the path of ``PLACE:PATH``, parted at the last colon; no place: a path on this machine."""
    place, colon, path = word.rpartition(":")
    if not colon or not place or word.startswith(LOCAL_BEGINS):
        return None, word
    return place, path
