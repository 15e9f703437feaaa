"""Containers as a sandbox: the contract over two kinds of images, and what only docker has."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import pytest

import dockers
import leaks
from dockers import Dockerd
from rounds import some
from session_magics.sandbox import Sandbox
from session_magics.sandbox.docker import DockerSandbox
from session_magics.testing import SANDBOX_CHECKS

dockerd = dockers.dockerd


@pytest.fixture(scope="module", params=some(["busybox", "bash"], 2))
def sandbox(request: pytest.FixtureRequest, dockerd: Dockerd) -> Iterator[DockerSandbox]:
    """One for all checks, the last of which closes it: a container takes longer than most of them."""
    image, before = dockerd.image(request.param), leaks.baseline()
    with dockerd.client() as client:
        with contextlib.closing(DockerSandbox(image, network="none", root="/tmp", client=client)) as sandbox:
            yield sandbox
        assert dockerd.containers() == []
    assert leaks.leaked(dockerd.place / "none", before) == []


@pytest.mark.parametrize("check", SANDBOX_CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_contract(check: Callable[[Sandbox], None], sandbox: DockerSandbox) -> None:
    check(sandbox)
