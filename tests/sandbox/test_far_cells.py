"""Cells whose shell is in another place, in a real kernel."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import dockers
import sshds
from conftest import LiveKernel
from dockers import Dockerd
from session_magics.sandbox.sshconnection import CONNECT

sshd, dockerd, docker_host = sshds.sshd, dockers.dockerd, dockers.docker_host


def test_a_start_that_a_dead_host_holds_up_can_be_interrupted(kernel: LiveKernel, sshd: sshds.Sshd) -> None:
    os.kill(sshd.process.pid, signal.SIGSTOP)
    try:
        began = time.monotonic()
        told = kernel.run(f"%%sh_session dead --on ssh:far,config={sshd.config}\necho", interrupt_after=0.5)
        assert time.monotonic() - began < CONNECT  # when ssh gives up by itself
    finally:
        os.kill(sshd.process.pid, signal.SIGCONT)
    assert told.error.startswith("KeyboardInterrupt")
    assert kernel.run(f"%%sh_session dead --on ssh:far,config={sshd.config}\necho up").text == "up\n"


def test_a_name_stays_in_its_place_when_its_shell_has_ended(
    kernel: LiveKernel, root: Path, docker_host: Dockerd
) -> None:
    """Nothing that is meant for a container is ever run here instead."""
    where = f"[ -e {root} ] && echo here || echo there"
    kernel.run(f"import os; os.environ['DOCKER_HOST'] = {docker_host.host!r}")
    try:
        first = kernel.run(f"%%sh_session box --on docker:{docker_host.image('busybox')},network=none\n{where}")
        assert first.text == "there\n"
        kernel.run("%session stop box")
        assert kernel.run(f"%%sh_session box\n{where}").text == "there\n"
        kernel.run("%session stop box")
        assert kernel.run(f"%%sh_session box --on local\n{where}").text == "here\n"
    finally:
        kernel.run("%session stop box")


def test_displays_do_not_come_from_another_place_and_one_line_says_so(
    kernel: LiveKernel, sshd: sshds.Sshd, docker_host: Dockerd
) -> None:
    kernel.run("%config SessionMagics.displays = True")
    kernel.run(f"import os; os.environ['DOCKER_HOST'] = {docker_host.host!r}")
    told = "displayHTML: this shell runs in another place, from which only text is shown\n1\n"
    places = (f"ssh:far,config={sshd.config}", f"docker:{docker_host.image('busybox')},network=none")
    try:
        for name, place in enumerate(places):
            outcome = kernel.run(f"%%sh_session far{name} --on {place} --status-line\necho x | displayHTML; echo $?")
            *text, line = outcome.record.outputs
            assert "".join(one["text"] for one in text) == told and " · ✓ 0 · " in line["text"]
    finally:
        kernel.run("%session stop far0 far1")
