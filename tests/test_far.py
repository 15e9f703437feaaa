"""Sessions whose program runs elsewhere keep the contract of backends, and survive what happens to connections."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from farplaces import NextDoor, PlacedBackend, far_directories
from rounds import until
from session_magics import Registry
from session_magics.testing import Rig
from test_conformance import Check, every_check


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """The home of the place next door; no session may have left anything there."""
    yield tmp_path
    until(lambda: not far_directories(tmp_path), 5.0, what=lambda: far_directories(tmp_path))


@pytest.fixture
def far(root: Path, home: Path) -> Iterator[Registry]:
    registry = Registry(root, backend=PlacedBackend(NextDoor(home)))
    yield registry
    registry.stop_all(now=True)


@every_check
def test_the_far_backend(check: Check, far: Registry) -> None:
    check(Rig(far))
