"""This machine as a sandbox keeps the contract, and what only here can be looked at."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import leaks
from session_magics.sandbox import Sandbox
from session_magics.sandbox.local import LocalSandbox
from session_magics.testing import SANDBOX_CHECKS


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[LocalSandbox]:
    before = leaks.baseline()
    with contextlib.closing(LocalSandbox(tmp_path)) as sandbox:
        yield sandbox
    assert list(tmp_path.iterdir()) == []
    assert leaks.leaked(tmp_path, before) == []


@pytest.mark.parametrize("check", SANDBOX_CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_contract(check: Callable[[Sandbox], None], sandbox: LocalSandbox) -> None:
    check(sandbox)
