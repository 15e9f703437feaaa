"""Reading and writing the records of one session's directory: ``spec.json``, ``run.json`` and the exit record."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from session_magics.durable import read_bounded
from session_magics.errors import StoreError
from session_magics.holder.record import EXIT_BYTES, parse_exit
from session_magics.model import (
    Exited,
    FailedToStart,
    GaveUp,
    Lifetime,
    RestartLimit,
    RestartPolicy,
    Spec,
    State,
    check_limit,
    check_size,
)

SCHEMA = 1
RECORD_LIMIT = 4 * 1024 * 1024
"""Most bytes of a JSON record: an argv may have 2 MB on Linux, and escapes double it."""

Value = TypeVar("Value")


@dataclass(frozen=True)
class ExitRecord:
    """How a generation ended; ``value`` is the code or signal as digits, or the reason of a failed start."""

    generation: int
    kind: str
    value: str
    at: float
    gave_up: int = 0
    """Restarts by policy after which there was none any more, as the run record tells; else 0."""

    @property
    def status(self) -> tuple[int | None, int | None]:
        """(code, signal); of a failed start, neither."""
        number = int(self.value) if self.kind != "failed" else None
        return (number, None) if self.kind == "code" else (None, number)

    def state(self, *, held: bool) -> State:
        """What it says about the program; ``held``: the holder is still there."""
        if self.kind == "failed":
            return FailedToStart(self.value)
        if self.gave_up:
            return GaveUp(*self.status, self.at, background=held, restarts=self.gave_up)
        return Exited(*self.status, self.at, background=held)


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
    end: ExitRecord | None = None
    """How the program ended, where that was by itself and a policy has decided what comes after it."""
    size: tuple[int, int] | None = None
    """(rows, columns) of the terminal, where the holder says so; it may differ from what was asked for at the start."""
    pid_namespace: int = 0
    """Where its pids mean something; 0 if the holder does not say."""
    lost: str = ""
    """Why the holder has recorded no end, where it has seen that coming."""


def spec_bytes(spec: Spec) -> bytes:
    """Return the content of ``spec.json``."""
    limit = asdict(spec.max_restarts) if spec.max_restarts else None
    known = {**spec.__dict__, "labels": dict(spec.labels), "max_restarts": limit}
    return json.dumps({"schema": SCHEMA, **known}).encode("ascii")


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
            max_restarts=_optional(_limit, data.get("max_restarts")),
            tool=_optional(_text, data.get("tool")),
            tool_args=_texts(data.get("tool_args", [])),
            parent=_optional(_text, data.get("parent")),
            on=_optional(_text, data.get("on")),
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
            end=_end(data) if "ended" in data else None,
            size=_optional(_size, data.get("size")),
            pid_namespace=_whole(data.get("pid_namespace", 0)),
            lost=_text(data.get("lost", "")),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise StoreError(path, f"is damaged ({error})") from error


def _end(run: Mapping[str, Any]) -> ExitRecord:
    kind = "code" if run.get("signal") is None else "signal"
    status = str(_whole(run[kind]))
    return ExitRecord(_whole(run["generation"]), kind, status, _number(run["ended"]), _whole(run.get("gave_up", 0)))


def read_exit(directory: str) -> ExitRecord | None:
    """Return the exit record, None if there is none yet; ValueError if it is damaged."""
    try:
        parsed = parse_exit(read_bounded(f"{directory}/exit", EXIT_BYTES))
    except FileNotFoundError:
        return None
    return ExitRecord(*parsed) if parsed else None


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


def _limit(value: object) -> RestartLimit:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r:.40} is no limit of restarts")
    return check_limit(RestartLimit(_whole(value["count"]), _optional(_number, value.get("window"))))
