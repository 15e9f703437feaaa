"""Live sessions behind ssh and in containers with a Python keep the contract of backends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import dockers
import sshds
from dockers import Dockerd
from farplaces import PlacedBackend
from session_magics import Registry
from session_magics.sandbox.docker import DockerSandbox
from session_magics.sandbox.ssh import SSHSandbox
from session_magics.testing import Rig
from session_magics.testing.behaviour import BEHAVIOURS
from test_conformance import Check, every_check

sshd, dockerd, docker_host = sshds.sshd, dockers.dockerd, dockers.docker_host


def argv_there(behaviour: str, *words: str) -> tuple[str, ...]:
    return ("python3", "-I", "-S", "-u", "-c", BEHAVIOURS, behaviour, *words)


@pytest.fixture
def over_ssh(root: Path, sshd: sshds.Sshd) -> Iterator[Registry]:
    with contextlib.closing(SSHSandbox("far", config=sshd.config)) as place:
        registry = Registry(root, backend=PlacedBackend(place))
        yield registry
        registry.stop_all(now=True)


@pytest.fixture
def in_a_container(root: Path, docker_host: Dockerd) -> Iterator[Registry]:
    container = docker_host.run("tools")
    try:
        with contextlib.closing(DockerSandbox(container=container)) as place:
            registry = Registry(root, backend=PlacedBackend(place))
            yield registry
            registry.stop_all(now=True)
    finally:
        docker_host.remove(container)


@every_check
def test_over_ssh(check: Check, over_ssh: Registry) -> None:
    check(Rig(over_ssh, argv=argv_there))


@every_check
def test_in_a_container(check: Check, in_a_container: Registry) -> None:
    check(Rig(in_a_container, argv=argv_there))
