"""The holder with other constants than it has by itself: a program for tests that is started in its place.

Run as the backend runs the real one, without site-packages; nothing else differs.
"""

from __future__ import annotations

from pathlib import Path

from session_magics.backends import native

QUICK = {"restarts.BACK_OFF": (0.001, 0.002), "restarts.STEADY": 0.05}
"""Pauses between restarts for tests that need many; so many seconds of running begin them anew."""
STALL = 60.0
"""Seconds in which a second interrupt is the more insistent one, for tests on a machine that may stall."""
PATIENT = {"escalation.AGAIN_WITHIN": STALL}

PROGRAM = """
import runpy, sys
program = runpy.run_path({holder!r}, run_name="changed")
for place, value in {constants!r}.items():
    module, _, name = place.partition(".")
    module = sys.modules["session_magics.holder." + module]
    getattr(module, name)  # a name that is not there would change nothing
    setattr(module, name, value)
program["main"]()
"""


def changed_holder(place: Path, constants: dict[str, object]) -> Path:
    """Write the program into a directory; ``constants`` are those of the holder's modules, as ``module.NAME``."""
    path = place / "changed_holder.py"
    path.write_text(PROGRAM.format(holder=str(native.HOLDER), constants=constants))
    return path
