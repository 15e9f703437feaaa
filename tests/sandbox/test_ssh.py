"""A host behind ssh keeps the contract of sandboxes, whatever its login shell; what only ssh can do wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import leaks
import sshds
from session_magics.sandbox import Sandbox
from session_magics.sandbox.ssh import SSHSandbox
from session_magics.testing import SANDBOX_CHECKS

sshd = sshds.sshd
HOSTS = ("far", "dash", "fish", "tcsh-noisy", "bash-noisy", "ash-bare")


@pytest.fixture
def opened(sshd: sshds.Sshd, tmp_path: Path) -> Iterator[Callable[..., SSHSandbox]]:
    """``opened(host, root=None)``: a sandbox on a host of the rig, which is to leave nothing here and there."""
    before = leaks.baseline()
    with contextlib.ExitStack() as stack:

        def open_host(host: str, root: str | None = None) -> SSHSandbox:
            shell, *kinds = host.split("-")
            if shell in sshds.SHELLS:
                sshd.host(shell, noisy="noisy" in kinds, bare="bare" in kinds)
            return stack.enter_context(contextlib.closing(SSHSandbox(host, config=sshd.config, root=root)))

        yield open_host
    assert sshd.left() == []
    assert leaks.leaked(tmp_path, before) == []


@pytest.fixture
def sandbox(opened: Callable[..., SSHSandbox], sshd: sshds.Sshd, request: pytest.FixtureRequest) -> SSHSandbox:
    """A sandbox whose root is the home of its user."""
    opened(request.param)
    return opened(request.param, str(sshd.home(request.param)))


@pytest.mark.parametrize("sandbox", HOSTS, indirect=True)
@pytest.mark.parametrize("check", SANDBOX_CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_contract(check: Callable[[Sandbox], None], sandbox: SSHSandbox) -> None:
    check(sandbox)
