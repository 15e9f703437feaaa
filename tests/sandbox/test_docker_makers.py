"""A container that is made here goes when whoever made it does, unless it was left to somebody else."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import time
from functools import partial

import psutil
import pytest

import dockers
from dockers import Dockerd
from rounds import DEADLINE, rounds, until
from session_magics.sandbox.dockerexec import GUARDED

dockerd, docker_host = dockers.dockerd, dockers.docker_host

USUAL = 6
"""Rounds of a usual run: after it is made, and while it is started."""
MAKER = """
import os, sys
from session_magics.model import Command
from session_magics.sandbox.docker import DockerSandbox
place = DockerSandbox(sys.argv[1], network="none")
print(flush=True)
place.exec(Command(("sh", "-c", "exit")))
print(flush=True)
sys.stdin.read()
"""


@pytest.mark.timeout(600)
def test_a_container_goes_with_its_maker_however_and_whenever_that_ends(docker_host: Dockerd) -> None:
    generator = random.Random(5)
    for number in range(rounds(USUAL, 60)):
        argv = (sys.executable, "-c", MAKER, docker_host.image("busybox"))
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as maker:
            assert maker.stdout and maker.stdout.readline()
            if number < 2:
                maker.stdout.readline()  # it is made, and in use
            elif number < USUAL:
                until(docker_host.containers)  # it is there, and about to be started
                time.sleep(generator.uniform(0.0, 0.3))
            else:  # in some of these rounds the guard waits for half a minute for what the engine was never asked for
                until(lambda: guards(docker_host))
                time.sleep(generator.uniform(0.02, 0.4))
            maker.send_signal((signal.SIGKILL, signal.SIGINT)[number % 2])
        left = partial(what_is_left, docker_host)
        until(lambda left=left: not left(), sum(GUARDED) + DEADLINE, what=left)  # type: ignore[misc]


def what_is_left(engine: Dockerd) -> list[object]:
    return [*guards(engine), *engine.containers()]


def guards(engine: Dockerd) -> list[psutil.Process]:
    return [one for one in psutil.process_iter() if {"guard", "dockerexec.py", engine.host} <= words_of(one)]


def words_of(process: psutil.Process) -> set[str]:
    with contextlib.suppress(psutil.Error):
        words = process.cmdline()
        return {*words, *(word.rpartition("/")[2] for word in words)}
    return set()
