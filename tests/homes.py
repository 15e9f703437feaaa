"""A home of a test's own, so that no start-up file and no kernel of the person who runs the tests is found."""

from __future__ import annotations

from pathlib import Path

import pytest

HOMES = ("HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR")
"""The variables that say where shells, IPython and Jupyter keep what is a person's."""


def own_home(place: Path, patch: pytest.MonkeyPatch) -> None:
    """Have ``place`` be all of them."""
    for name in HOMES:
        patch.setenv(name, str(place))
