"""What a holder is told of a place without Python: commands of this side that run our scripts there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from session_magics.backends import Start
from session_magics.backends.native import packed
from session_magics.environment import COOKIE
from session_magics.errors import SandboxError, UsageMistake
from session_magics.holder import wire
from session_magics.holder.farscript import CONTROL, TAG, TERMINAL
from session_magics.holder.relaylink import container_gone
from session_magics.model import Command

FORCE_LIMIT = 20.0
"""Seconds for a place to be reached and all to be ended there."""


def launch_fields(start: Start) -> Mapping[str, bytes]:
    """The fields, beside those of every launch, that have a holder run the program at ``start.place``.

    UsageMistake for a name that a shell cannot give to a variable. SandboxError: the place cannot be reached.
    """
    place = start.place
    if place is None:
        return {}
    for name in (*start.env, *start.unset):
        if not (name.isascii() and name.isidentifier()):
            raise UsageMistake(f"{place.place}: no shell can set the variable {name!r}, and there is no Python there")
    control = place.wrap(Command(("sh", "-c", CONTROL)))
    client = place.wrap(Command(("sh", "-c", TERMINAL)), terminal=True)
    env = {**control.env, **client.env}
    return {
        "place": os.fsencode(place.place),
        "control": packed(control.argv),
        "client": packed(client.argv),
        "near_env": packed(part for name, value in env.items() if value is not None for part in (name, value)),
        "near_unset": packed(name for name, value in env.items() if value is None),
        "near_cwd": os.fsencode(client.cwd or ""),
        "unset": packed(start.unset),
        "cleanup": packed(place.cleanup()),
    }


def end_there(fields: Mapping[str, bytes], id: str) -> tuple[int, ...]:
    """End what carries a session's cookie at the place that these fields lead to, by force; the pids that survived.

    SandboxError: the place cannot be reached.
    """
    flat = wire.unpack(fields["near_env"])
    env = {**os.environb, **dict(zip(flat[::2], flat[1::2], strict=True))}
    for name in wire.unpack(fields["near_unset"]):
        env.pop(name, None)
    place, words = os.fsdecode(fields["place"]), f"end {COOKIE}={id}\n".encode()
    try:
        called = subprocess.run(
            wire.unpack(fields["control"]),
            input=words, capture_output=True, env=env, cwd=fields["near_cwd"] or None, timeout=FORCE_LIMIT, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SandboxError(place, f"{error}; what the session left there may still run") from None
    for line in called.stderr.splitlines():
        if line.startswith(TAG):
            return tuple(map(int, line[len(TAG) :].split()[1:]))
    if container_gone(called.stderr):
        return ()
    said = called.stderr.decode(errors="replace").strip() or f"status {called.returncode}"
    raise SandboxError(place, f"{said}; what the session left there may still run")
