"""What a holder is told of a place without Python: two commands of this side that run our scripts there."""

from __future__ import annotations

import os
from collections.abc import Mapping

from session_magics.errors import UsageMistake
from session_magics.holder import wire
from session_magics.holder.farscript import CONTROL, TERMINAL
from session_magics.model import Command
from session_magics.sandbox import Sandbox


def launch_fields(place: Sandbox, env: Mapping[str, str], unset: tuple[str, ...] = ()) -> Mapping[str, bytes]:
    """The fields of a launch that make its holder run the program at ``place``; ``env`` is what is added there.

    UsageMistake for a name that a shell cannot give to a variable.
    """
    for name in (*env, *unset):
        if not (name.isascii() and name.isidentifier()):
            raise UsageMistake(f"{place.place}: no shell can set the variable {name!r}, and there is no Python there")
    control = place.wrap(Command(("sh", "-c", CONTROL)))
    client = place.wrap(Command(("sh", "-c", TERMINAL)), terminal=True)
    added = [part for name, value in client.env.items() if value is not None for part in (name, value)]
    return {
        "place": place.place.encode(),
        "control": _packed(*control.argv),
        "client": _packed(*client.argv),
        "near_env": _packed(*added),
        "near_unset": _packed(*(name for name, value in client.env.items() if value is None)),
        "near_cwd": os.fsencode(client.cwd or ""),
        "unset": _packed(*unset),
    }


def _packed(*words: str) -> bytes:
    return wire.pack(*map(os.fsencode, words))
