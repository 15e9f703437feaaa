"""Every backend keeps the contract, the fake one included: what is tested over it would hold over the real one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from session_magics.backends.native import NativeBackend
from session_magics.registry import Registry
from session_magics.testing import CHECKS, Rig, check_backend, fake_rig

Check = Callable[[Rig], None]
needs_tmux = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
every_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)


@every_check
def test_the_native_backend(check: Check, root: Path) -> None:
    check(Rig(Registry(root, backend=NativeBackend())))


@every_check
@needs_tmux
def test_the_tmux_backend(check: Check, root: Path) -> None:
    check(Rig(Registry(root, backend="tmux")))


@every_check
def test_the_fake_backend(check: Check, root: Path) -> None:
    with fake_rig(root) as rig:
        check(rig)


def test_a_backend_that_breaks_the_contract_is_told_by_name(root: Path) -> None:
    class Forgetful(NativeBackend):
        """Loses the arguments of its programs."""

        def start(self, start: object) -> None:
            raise AssertionError("it never starts anything")

    with pytest.raises(AssertionError, match="output_is_exact_from_the_first_byte: it never starts"):
        check_backend(Forgetful(), root)
