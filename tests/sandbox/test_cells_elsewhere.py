"""Cells of cells.toml in a container and over ssh, which are to do what they do here."""

from __future__ import annotations

import pytest

import dockers
import sshds
from dockers import Dockerd
from rounds import rounds
from sshds import Sshd
from test_cells import CASES, play

dockerd, docker_host, sshd = dockers.dockerd, dockers.docker_host, sshds.sshd
# Of the cases, every so many are played; with --full all of them.
STEP = rounds(18, 1)
# What is not to be expected there, and why.
LEFT_OUT: dict[str, str] = {}

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(1800)]


def play_all(place: str) -> None:
    ids = [case["id"] for case in CASES if case["id"] not in LEFT_OUT][::STEP]
    report = play("bash", "ABCDEFGH", ids, place)
    assert not report, "\n" + report


def test_in_a_container_of_its_own(docker_host: Dockerd) -> None:
    mounts = "".join(f",mount={mount}" for mount in docker_host.mounts(docker_host.image("tools")))
    before = set(docker_host.containers())
    play_all(f"docker:tools,mount=⟪root⟫:⟪root⟫{mounts},network=none")
    for container in set(docker_host.containers()) - before:
        docker_host.remove(container)  # the player kills what a kernel leaves running, the session's process as well


def test_over_ssh(sshd: Sshd) -> None:
    play_all(f"ssh:far,config={sshd.config}")
