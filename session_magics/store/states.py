"""Reading one session's directory: its spec, its run record, and the state that follows from them.

The state is read, never remembered, and no pid decides it: a lock says that the holder lives, the exit record
how the program ended. Nothing here writes.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from session_magics.durable import read_bounded
from session_magics.errors import StoreError
from session_magics.holder.record import EXIT_BYTES, parse_exit
from session_magics.log import log_end
from session_magics.model import (
    BackingOff,
    Exited,
    FailedToStart,
    Lifetime,
    Lost,
    RestartPolicy,
    Running,
    SessionInfo,
    Spec,
    State,
    Unknown,
    check_size,
)

SCHEMA = 1
RECORD_LIMIT = 4 * 1024 * 1024
"""Most bytes of a JSON record: an argv may have 2 MB on Linux, and escapes double it."""
START_GRACE = 5.0
"""Seconds that a holder has to come up, as long as a starter waits; before, no lock means "not yet"."""
STARTING = Unknown("the holder is starting")
"""The state between the creation of a session and the start of its program."""
SETTLE_TRIES = 5
"""Looks at a session that changes while it is looked at; two were enough in every test."""

Identity = Callable[[], tuple[str, str]]
"""Returns (boot id, host) of this machine; called only when it matters."""

Value = TypeVar("Value")


@dataclass(frozen=True)
class RunRecord:
    """What the holder wrote about the newest generation of the program (``run.json``)."""

    boot: str
    host: str
    holder: int
    holder_tick: int
    pid: int
    tick: int
    generation: int
    since: float
    protocol: int
    until: float | None
    """Unix time of the next start while the program is backing off."""
    size: tuple[int, int] | None = None
    """(rows, columns) of the terminal, where the holder says so; it may differ from what was asked for at the start."""
    lost: str = ""
    """Why the holder has recorded no end, where it has seen that coming."""


@dataclass(frozen=True)
class ExitRecord:
    """The parsed exit record; ``value`` is the code or signal as digits, or the reason of a failed start."""

    generation: int
    kind: str
    value: str
    at: float

    def state(self, *, held: bool) -> State:
        """What it says about the program; ``held``: the holder is still there."""
        match self.kind:
            case "code":
                return Exited(int(self.value), None, self.at, background=held)
            case "signal":
                return Exited(None, int(self.value), self.at, background=held)
        return FailedToStart(self.value)


def spec_bytes(spec: Spec) -> bytes:
    """Return the content of ``spec.json``."""
    return json.dumps({"schema": SCHEMA, **spec.__dict__, "labels": dict(spec.labels)}).encode("ascii")


def read_spec(directory: str) -> Spec:
    """Return the spec; StoreError if it is missing or damaged."""
    path = f"{directory}/spec.json"
    data = _read_json(path)
    if data is None:
        raise StoreError(path, "is missing")
    try:
        spec = Spec(
            id=_text(data["id"]),
            name=_text(data["name"]),
            argv=_texts(data["argv"]),
            cwd=_text(data["cwd"]),
            env_names=_texts(data.get("env_names", [])),
            labels={_text(key): _text(value) for key, value in data.get("labels", {}).items()},
            size=_size(data["size"]),
            lifetime=_lifetime(data["lifetime"]),
            restart=_policy(data.get("restart", "no")),
            shell=_optional(_text, data.get("shell")),
            owner=_optional(_text, data.get("owner")),
            created=_number(data.get("created", 0.0)),
            backend=_text(data.get("backend", "native")),
        )
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise StoreError(path, f"is damaged ({error})") from error
    if spec.id != os.path.basename(directory):
        raise StoreError(path, "is damaged (it names another session)")
    return spec


def read_run(directory: str) -> RunRecord | None:
    """Return the run record, None if the holder never wrote one; StoreError if it is damaged."""
    path = f"{directory}/run.json"
    data = _read_json(path)
    if data is None:
        return None
    try:
        return RunRecord(
            boot=_text(data["boot"]),
            host=_text(data["host"]),
            holder=_whole(data["holder"]),
            holder_tick=_whole(data["holder_tick"]),
            pid=_whole(data["pid"]),
            tick=_whole(data["tick"]),
            generation=_whole(data["generation"]),
            since=_number(data["since"]),
            protocol=_whole(data["protocol"]),
            until=_optional(_number, data.get("until")),
            size=_optional(_size, data.get("size")),
            lost=_text(data.get("lost", "")),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise StoreError(path, f"is damaged ({error})") from error


def read_exit(directory: str) -> ExitRecord | None:
    """Return the exit record, None if there is none yet; ValueError if it is damaged."""
    try:
        parsed = parse_exit(read_bounded(f"{directory}/exit", EXIT_BYTES))
    except FileNotFoundError:
        return None
    return ExitRecord(*parsed) if parsed else None


def held(directory: str) -> bool:
    """Whether a holder lives: it has ``alive`` locked. OSError if that cannot be told."""
    try:
        fd = os.open(f"{directory}/alive", os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        # Given back by hand: a child that is being forked by another thread may have a copy of the descriptor.
        fcntl.flock(fd, fcntl.LOCK_UN)
        return False
    finally:
        os.close(fd)


def observe(directory: str, identity: Identity) -> tuple[State, RunRecord | None]:
    """Return the state of a session, and its run record where there is a readable one. Never raises."""
    try:
        for _ in range(SETTLE_TRIES):
            # The probe comes first: with the lock free nothing is written any more, so what is read then is final.
            alive = held(directory)
            seen = _read(directory, identity, alive=alive)
            if alive or not isinstance(seen[0], Lost | FailedToStart) or not held(directory):
                return seen
            # A new holder came up between the probe and the reading: what was read says nothing about it.
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
    if alive:
        return _state_of_held(run, ended), run
    if ended is not None:
        return ended.state(held=False), run
    if damaged:
        return Lost("exit record damaged"), run
    return (_never_ran(directory) if run is None else Lost(_loss(run, identity))), run


def _state_of_held(run: RunRecord | None, ended: ExitRecord | None) -> State:
    if run is not None and run.until is not None:
        code = int(ended.value) if ended is not None and ended.kind == "code" else None
        signal = int(ended.value) if ended is not None and ended.kind == "signal" else None
        return BackingOff(run.until, code, signal)
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
    boot, host = identity()
    if run.host != host:
        return f"on host {run.host}"
    if run.lost:
        return run.lost
    return "holder killed" if run.boot == boot else "reboot"


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
        shell=spec.shell,
        backend=spec.backend,
        size=run.size if run is not None and run.size else spec.size,
        generation=run.generation if run else 0,
        pid=state.pid if isinstance(state, Running) else None,
        created=spec.created,
        directory=Path(directory),
        log_bytes=log_bytes,
    )


def _read_json(path: str) -> Mapping[str, Any] | None:
    """Return the object in a file, None if the file is missing; StoreError if it is damaged or too new."""
    try:
        data = json.loads(read_bounded(path, RECORD_LIMIT))
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise StoreError(path, "is damaged (no JSON)") from error
    if not isinstance(data, dict) or type(data.get("schema")) is not int:
        raise StoreError(path, "is damaged (no record)")
    if data["schema"] > SCHEMA:
        raise StoreError(path, f"was written by a newer session-magics (schema {data['schema']}): update this one")
    return data


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} is no text")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r:.40} is no list")
    return tuple(map(_text, value))


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r:.40} is no whole number")
    return value


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"{value!r:.40} is no number")
    return value


def _size(value: object) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise TypeError(f"{value!r:.40} is no size")
    return check_size((_whole(value[0]), _whole(value[1])))


def _optional(check: Callable[[object], Value], value: object) -> Value | None:
    return None if value is None else check(value)


def _lifetime(value: object) -> Lifetime:
    if value not in ("detached", "kernel"):
        raise ValueError(f"lifetime {value!r:.40}")
    return value


def _policy(value: object) -> RestartPolicy:
    if value not in ("no", "on-failure", "always"):
        raise ValueError(f"restart {value!r:.40}")
    return value
