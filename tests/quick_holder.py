"""The holder with short pauses between restarts, for tests that need many: the file that is started in its place.

Run as the backend runs the real one, without site-packages; nothing else differs.
"""

from __future__ import annotations

import os
import runpy
import sys

BACK_OFF = (0.001, 0.002)
"""Seconds before the first restart, and the most."""
STEADY = 0.05
"""Seconds of running after which the pauses begin anew."""

if __name__ == "__main__":
    project = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    program = runpy.run_path(f"{project}/session_magics/holder/__main__.py", run_name="quick")
    restarts = sys.modules["session_magics.holder.restarts"]
    restarts.BACK_OFF, restarts.STEADY = BACK_OFF, STEADY  # type: ignore[attr-defined]
    program["main"]()
