"""For tests of programs that use sessions, and of new backends.

``FakeBackend`` holds sessions whose programs are Python functions: pass it to ``Registry`` in place of the real one.
``check_backend`` and ``CHECKS`` say whether something keeps the contract of ``session_magics.backends``::

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_backend(check, tmp_path):
        check(Rig(Registry(tmp_path, backend=MyBackend())))

``SANDBOX_CHECKS`` do the same for the contract of ``session_magics.sandbox``; each takes a sandbox of its own::

    @pytest.mark.parametrize("check", SANDBOX_CHECKS, ids=lambda check: check.__name__)
    def test_my_sandbox(check, tmp_path):
        with contextlib.closing(MySandbox(tmp_path)) as sandbox:
            check(sandbox)

A check raises AssertionError with what was wrong, and stops what it started.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from session_magics.backends import Backend
from session_magics.registry import Registry
from session_magics.testing.behaviour import fake_behaviour, fake_cell
from session_magics.testing.conformance import CHECKS
from session_magics.testing.fake import FakeBackend
from session_magics.testing.rig import Rig
from session_magics.testing.sandboxes import SANDBOX_CHECKS
from session_magics.testing.scripted import CellProgram, FakeTerminal, Program, Signalled, script

__all__ = [
    "CHECKS",
    "SANDBOX_CHECKS",
    "CellProgram",
    "FakeBackend",
    "FakeTerminal",
    "Program",
    "Rig",
    "Signalled",
    "check_backend",
    "fake_rig",
    "script",
]


@contextlib.contextmanager
def fake_rig(root: Path) -> Iterator[Rig]:
    """A rig over a FakeBackend."""
    with FakeBackend({"behave": fake_behaviour}, cells=fake_cell) as backend:
        yield Rig(Registry(root, backend=backend), argv=lambda *words: ("behave", *words))


def check_backend(backend: Backend, root: Path, *, shell: str | None = "bash") -> None:
    """Run every check over a backend that starts real programs; AssertionError names the first that failed."""
    rig = Rig(Registry(root, backend=backend), shell=shell)
    for check in CHECKS:
        try:
            check(rig)
        except AssertionError as error:
            raise AssertionError(f"{check.__name__}: {error}") from error
