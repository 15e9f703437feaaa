"""What a holder is told of a place without Python: commands of this side that run our scripts there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from session_magics.backends import Start
from session_magics.errors import UsageMistake
from session_magics.holder import wire
from session_magics.holder.farscript import CONTROL, TERMINAL
from session_magics.model import Command


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
        "control": _packed(control.argv),
        "client": _packed(client.argv),
        "near_env": _packed(part for name, value in env.items() if value is not None for part in (name, value)),
        "near_unset": _packed(name for name, value in env.items() if value is None),
        "near_cwd": os.fsencode(client.cwd or ""),
        "unset": _packed(start.unset),
        "cleanup": _packed(place.cleanup()),
    }


def _packed(words: Iterable[str]) -> bytes:
    return wire.pack(*map(os.fsencode, words))
