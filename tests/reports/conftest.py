"""Fixtures of the reports: a registry of real programs, and a bash for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rounds import sessions
from session_magics import Registry
from talk import Talk, shell


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    with sessions(root) as opened:
        yield opened


@pytest.fixture(scope="module")
def say() -> Iterator[Talk]:
    """A bash that the tests of this module share."""
    with shell("bash") as one:
        yield one
