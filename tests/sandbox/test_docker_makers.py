"""A container that is made here goes when whoever made it does, unless it was left to somebody else."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import time

import psutil
import pytest

import dockers
from dockers import Dockerd
from rounds import DEADLINE, rounds, until
from session_magics.sandbox.dockerexec import GUARDED

dockerd, docker_host = dockers.dockerd, dockers.docker_host

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
    for number in range(rounds(6, 60)):
        argv = (sys.executable, "-c", MAKER, docker_host.image("busybox"))
        with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as maker:
            assert maker.stdout and maker.stdout.readline()
            if number < 2:
                maker.stdout.readline()  # it is made, and in use
            else:
                until(guards)  # from here on the engine is asked to make it
                time.sleep(generator.uniform(0.02, 0.4))
            maker.send_signal((signal.SIGKILL, signal.SIGINT)[number % 2])
        until(lambda: not guards() and not docker_host.containers(), sum(GUARDED) + DEADLINE, what="nothing is left")


def guards() -> list[psutil.Process]:
    return [one for one in psutil.process_iter() if {"guard", "dockerexec.py"} <= words_of(one)]


def words_of(process: psutil.Process) -> set[str]:
    with contextlib.suppress(psutil.Error):
        return {word.rpartition("/")[2] for word in process.cmdline()}
    return set()
