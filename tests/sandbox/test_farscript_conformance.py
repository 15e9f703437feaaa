"""The scripts for places without Python keep the contract of backends: checked at a place that is this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from farplaces import NextDoor, PlacedBackend
from session_magics.registry import Registry
from session_magics.testing import CHECKS, Rig


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_session_run_by_the_scripts(check: Callable[[Rig], None], root: Path, tmp_path: Path) -> None:
    place = NextDoor(tmp_path, python=None)
    check(Rig(Registry(root, backend=PlacedBackend(place))))
