"""Containers as a sandbox: the contract over two kinds of images, and what only docker has."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import dockers
import leaks
from dockers import Dockerd
from rounds import some
from session_magics.sandbox import Sandbox
from session_magics.sandbox.docker import DockerSandbox
from session_magics.testing import SANDBOX_CHECKS

dockerd, docker_host = dockers.dockerd, dockers.docker_host


@pytest.fixture(params=some(["busybox", "bash"], 2))
def image(request: pytest.FixtureRequest, docker_host: Dockerd) -> str:
    return docker_host.image(request.param)


@pytest.fixture
def sandbox(image: str, tmp_path: Path) -> Iterator[DockerSandbox]:
    before = leaks.baseline()
    with contextlib.closing(DockerSandbox(image, network="none", root="/tmp")) as sandbox:
        yield sandbox
    assert leaks.leaked(tmp_path, before) == []


@pytest.mark.parametrize("check", SANDBOX_CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_contract(check: Callable[[Sandbox], None], sandbox: DockerSandbox) -> None:
    check(sandbox)
