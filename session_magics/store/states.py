"""The state of one session, as it follows from its directory.

The state is read, never remembered, and no pid decides it: a lock says that the holder lives, the exit record
how the program ended. Nothing here writes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

from session_magics.durable import locked
from session_magics.errors import StoreError
from session_magics.log import log_end
from session_magics.model import BackingOff, FailedToStart, Lost, Running, SessionInfo, Spec, State, Unknown
from session_magics.store.records import ExitRecord, RunRecord, read_exit, read_run, read_spec

START_GRACE = 5.0
"""Seconds that a holder has to come up, as long as a starter waits; before, no lock means "not yet"."""
STARTING = Unknown("the holder is starting")
"""The state between the creation of a session and the start of its program."""
SETTLE_TRIES = 5
"""Looks at a session that changes while it is looked at; two were enough in every test."""

Identity = Callable[[], tuple[str, str, int]]
"""Returns (boot id, host, PID namespace) of this process; called only when it matters."""


def held(directory: str) -> bool:
    """Whether a holder lives: it has ``alive`` locked. OSError if that cannot be told."""
    return locked(f"{directory}/alive")


def observe(directory: str, identity: Identity) -> tuple[State, RunRecord | None]:
    """Return the state of a session, and its run record where there is a readable one. Never raises."""
    try:
        before = None
        for _ in range(SETTLE_TRIES):
            # The probe comes first: with the lock free nothing is written any more, so what is read then is final.
            alive = held(directory)
            seen = _read(directory, identity, alive=alive)
            if alive or not isinstance(seen[0], Lost | FailedToStart) or seen == before:
                return seen
            # Unless a new holder came up in between, and has perhaps gone again: so it must be the same twice.
            before = seen
    except OSError as error:
        return Unknown(error.strerror or str(error)), None
    return Unknown("it keeps changing"), seen[1]


def _read(directory: str, identity: Identity, *, alive: bool) -> tuple[State, RunRecord | None]:
    damaged = False
    ended: ExitRecord | None = None
    try:
        ended = read_exit(directory)
    except ValueError:
        damaged = True
    try:
        run = read_run(directory)
    except StoreError as error:
        reason = "run record damaged" if error.reason.startswith("is damaged") else f"run record {error.reason}"
        return (Unknown(reason) if alive else Lost(reason)), None
    # A record of a later generation than run.json's comes from a holder that a full disk kept from rewriting that.
    if ended is not None and run is not None and ended.generation < run.generation:
        ended = None
    if run is not None and run.end is not None and (ended is None or ended.generation == run.generation):
        ended = run.end
    if alive:
        return _state_of_held(run, ended), run
    if ended is not None:
        return ended.state(held=False), run
    if damaged:
        return Lost("exit record damaged"), run
    return (_never_ran(directory) if run is None else Lost(_loss(run, identity))), run


def _state_of_held(run: RunRecord | None, ended: ExitRecord | None) -> State:
    if run is not None and run.until is not None:
        return BackingOff(run.until, *(ended.status if ended is not None else (None, None)))
    if ended is not None:
        return ended.state(held=True)
    if run is not None:
        return Running(run.pid, run.since)
    return STARTING


def _never_ran(directory: str) -> State:
    """The state where nobody holds the lock, and neither a run nor an exit was ever recorded."""
    try:
        born = os.stat(f"{directory}/exit").st_mtime
    except FileNotFoundError:
        try:
            born = os.stat(directory).st_mtime
        except FileNotFoundError:
            return Lost("its directory is gone")
    if 0 <= time.time() - born < START_GRACE:
        return STARTING
    return FailedToStart("holder never came up")


def _loss(run: RunRecord, identity: Identity) -> str:
    boot, host, namespace = identity()
    if run.host != host:
        return f"on host {run.host}"
    if run.lost:
        return run.lost
    if run.boot != boot:
        return "reboot"
    return "in another PID namespace" if run.pid_namespace not in (0, namespace) else "holder killed"


def session_info(directory: str, name: str, identity: Identity) -> SessionInfo:
    """Return all that a list shows about a session; a part that cannot be read is shown as what it is, Unknown."""
    state, run = observe(directory, identity)
    try:
        spec = read_spec(directory)
    except (StoreError, OSError) as error:
        spec = Spec(os.path.basename(directory), name, (), "", created=0.0)
        if not isinstance(state, Lost):  # a session without a directory is gone, not unreadable
            reason = error.reason if isinstance(error, StoreError) else error.strerror or str(error)
            state = Unknown(f"spec.json {reason}")
    try:
        log_bytes = log_end(directory)
    except OSError:
        log_bytes = 0
    return SessionInfo(
        name=name,
        id=spec.id,
        state=state,
        argv=spec.argv,
        cwd=spec.cwd,
        labels=spec.labels,
        lifetime=spec.lifetime,
        restart=spec.restart,
        max_restarts=spec.max_restarts,
        shell=spec.shell,
        backend=spec.backend,
        size=run.size if run is not None and run.size else spec.size,
        generation=run.generation if run else 0,
        pid=state.pid if isinstance(state, Running) else None,
        created=spec.created,
        directory=Path(directory),
        log_bytes=log_bytes,
        since=run.since if run else 0.0,
        tool=spec.tool,
        tool_args=spec.tool_args,
        parent=spec.parent,
        on=spec.on,
    )
