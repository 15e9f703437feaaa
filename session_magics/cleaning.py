"""Forgetting sessions that have ended, by age, number and size."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from session_magics.errors import SessionExists, SessionNotFound
from session_magics.holder.processes import start_tick
from session_magics.model import Exited, FailedToStart, SessionInfo
from session_magics.registry import Registry
from session_magics.starting import owner_process

JUST_ENDED = 5.0
"""Seconds after a program's end in which its holder may only be about to go; it takes some 0.005."""


def clean(
    registry: Registry,
    *,
    older: float | None = None,
    keep: int | None = None,
    total: int | None = None,
    labels: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> list[str]:
    """Remove sessions that have ended, with their logs, and return their names, the newest first.

    Only an end that is on record counts: a session that is lost or whose state is not known may have living
    processes, and stays until it is removed by name. Shells of other kernels are theirs, as long as
    these live. Without a limit all go.

    Args:
        older: seconds since the end; those that ended longer ago go.
        keep: so many of the newest stay.
        total: bytes that the kept ones may have on disk together; the oldest go first.
        labels: only sessions that carry them are looked at.
        dry_run: remove nothing, and return the same names.
    """
    gone, now = set(), time.time()
    infos = [_settled(registry, info, now) for info in registry.infos(labels)]
    going = cleanable(infos, now, older=older, keep=keep, total=total, size=disk_bytes)
    for info in sorted(going, key=lambda info: info.id, reverse=True):  # a parent, which is older, takes children along
        with contextlib.suppress(SessionExists, SessionNotFound):  # started again, or removed, meanwhile
            if registry.removable(info.name)[1] != info.id:
                continue
            if not dry_run:
                registry.remove(info.name)
            gone.add(info.name)
    return [info.name for info in going if info.name in gone]


def cleanable(
    infos: Sequence[SessionInfo],
    now: float,
    *,
    older: float | None,
    keep: int | None,
    total: int | None,
    size: Callable[[SessionInfo], int],
) -> list[SessionInfo]:
    """Return those of the sessions that ``clean`` removes at a time, the newest first; ``size`` gives bytes."""
    ended = sorted((info for info in infos if _ended(info)), key=_end, reverse=True)
    if older is None and keep is None and total is None:
        return ended
    kept, room, going = 0, total, []
    for info in ended:
        used = size(info) if room is not None else 0
        too_old = older is not None and now - _end(info) > older
        too_many = keep is not None and kept >= keep
        if too_old or too_many or (room is not None and used > room):
            going.append(info)
            continue
        kept += 1
        room = room - used if room is not None else None
    return going


def _settled(registry: Registry, info: SessionInfo, now: float) -> SessionInfo:
    """The session, if it has just ended, once its holder has gone: a moment later there is no more to wait for."""
    if isinstance(info.state, Exited) and info.state.background and 0 <= now - info.state.at < JUST_ENDED:
        with contextlib.suppress(SessionNotFound):
            return replace(info, state=registry.get(info.name).settled())
    return info


def _ended(info: SessionInfo) -> bool:
    over = isinstance(info.state, FailedToStart) or (isinstance(info.state, Exited) and not info.state.background)
    return over and bool(info.id) and not _anothers(info.name)


def _anothers(name: str) -> bool:
    """Whether it is a session of another kernel that is not known to have ended."""
    kernel = owner_process(name.partition("@")[2])
    return "@" in name and (kernel is None or start_tick(kernel[0]) == kernel[1])


def _end(info: SessionInfo) -> float:
    return info.state.at if isinstance(info.state, Exited) else info.created


def disk_bytes(info: SessionInfo) -> int:
    """Bytes that a session's directory takes."""
    with contextlib.suppress(OSError), os.scandir(info.directory) as entries:
        return sum(entry.stat(follow_symlinks=False).st_size for entry in entries)
    return 0
