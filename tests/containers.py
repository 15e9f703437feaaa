"""Containers for the tests of docker: what all of them start with, and what runs there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import leaks
from dockers import Dockerd
from session_magics.model import Command
from session_magics.sandbox import Process
from session_magics.sandbox.docker import DockerSandbox

# Seconds within which what has failed is to be known: five on a machine that does nothing else.
KNOWN = 20.0
# Seconds that a program gets to come up or end.
LIMIT = 30.0


@pytest.fixture
def docker(docker_host: Dockerd, tmp_path: Path) -> Iterator[Dockerd]:
    before = leaks.baseline()
    yield docker_host
    assert leaks.leaked(tmp_path, before) == []


@contextlib.contextmanager
def place(engine: Dockerd, image: str = "busybox", **options: object) -> Iterator[DockerSandbox]:
    options = {"network": "none", "mounts": engine.mounts(image), **options}
    with contextlib.closing(DockerSandbox(engine.image(image), **options)) as sandbox:  # type: ignore[arg-type]
        yield sandbox


def sh(script: str, **env: str) -> Command:
    return Command(("sh", "-c", script), env=env)


def commands(engine: Dockerd, words: str) -> list[psutil.Process]:
    """What runs in the containers with a command line that begins so, as this machine sees it."""
    found = []
    for process in engine.processes():
        with contextlib.suppress(psutil.Error):
            if " ".join(process.cmdline()).startswith(words) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def shut(process: Process) -> None:
    process.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
