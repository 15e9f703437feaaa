"""The scripts for places without Python keep the contract of backends: next door, and on a host behind ssh."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

import sshds
from farplaces import NextDoor, PlacedBackend
from rounds import some, until_state
from session_magics.model import Lost
from session_magics.registry import Registry
from session_magics.sandbox import Probe
from session_magics.sandbox.ssh import SSHSandbox
from session_magics.testing import CHECKS, Rig
from session_magics.testing.behaviour import BEHAVIOURS

sshd = sshds.sshd
Check = Callable[[Rig], None]
every_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)


def argv_there(behaviour: str, *words: str) -> tuple[str, ...]:
    return ("python3", "-I", "-S", "-u", "-c", BEHAVIOURS, behaviour, *words)


class WithoutPython(SSHSandbox):
    """A host whose Python is kept from us."""

    def probe(self) -> Probe:
        return dataclasses.replace(super().probe(), python=None)


@pytest.mark.parametrize("check", some(CHECKS, 2), ids=lambda check: check.__name__)
def test_next_door(check: Check, root: Path, tmp_path: Path) -> None:
    check(Rig(Registry(root, backend=PlacedBackend(NextDoor(tmp_path, python=None)))))


@pytest.mark.parametrize("check", some(CHECKS, 3), ids=lambda check: check.__name__)
def test_over_ssh(check: Check, root: Path, sshd: sshds.Sshd) -> None:
    with contextlib.closing(WithoutPython("far", config=sshd.config)) as place:
        check(Rig(Registry(root, backend=PlacedBackend(place)), argv=argv_there))
    assert sshd.left() == []


def test_a_killed_connection_is_a_loss_and_leaves_nothing(root: Path, sshd: sshds.Sshd) -> None:
    with contextlib.closing(WithoutPython("far", config=sshd.config)) as place:
        registry = Registry(root, backend=PlacedBackend(place))
        session = registry.shell("cells", shell="bash", lifetime="detached", rc=False)
        with session.link() as link:
            link.run("sleep 100")
            assert sshd.kill_connections()
            until_state(session, Lost)
    assert sshd.left() == []
