"""The rig of sshd itself: it serves, it breaks on demand, it sees what is left."""

from __future__ import annotations

import subprocess
import time

import pytest

import leaks
import sshds

sshd = sshds.sshd


def ssh(server: sshds.Sshd, host: str, line: str) -> subprocess.CompletedProcess[str]:
    command = ["ssh", "-F", str(server.config), "-o", "BatchMode=yes", host, line]
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=sshds.LIMIT)


@pytest.mark.parametrize("host", ["far", "jumped"])
def test_it_serves(sshd: sshds.Sshd, host: str) -> None:
    assert ssh(sshd, host, "echo $((6 * 7))").stdout == "42\n"


@pytest.mark.parametrize("shell", list(sshds.SHELLS))
def test_login_shells_are_what_they_are_called(sshd: sshds.Sshd, shell: str) -> None:
    host = sshd.host(shell)
    assert ssh(sshd, host, "echo $0").stdout.startswith(shell) or shell == "fish"
    quiet, noisy = ssh(sshd, host, "echo hello"), ssh(sshd, sshd.host(shell, noisy=True), "echo hello")
    assert quiet.stdout == "hello\n"
    assert (noisy.stdout == "hello\n") == (shell in ("dash", "ash"))


def test_a_bare_host_has_a_busybox_only(sshd: sshds.Sshd) -> None:
    seen = ssh(sshd, sshd.host("ash", bare=True), "for each in python3 bash less; do command -v $each; done").stdout
    assert seen == "less\n"


@pytest.mark.parametrize("host", ["refused", "stranger", "closed"])
def test_hosts_that_fail(sshd: sshds.Sshd, host: str) -> None:
    assert ssh(sshd, host, "true").returncode == 255


def test_what_is_left_is_seen(sshd: sshds.Sshd) -> None:
    ssh(sshd, "far", "setsid sleep 100 >/dev/null 2>&1 </dev/null &")
    found = sshd.left(0.1)
    for process in sshd.running():
        leaks.kill(process)
    assert [line.endswith("sleep 100") for line in found] == [True]
    assert sshd.left() == []


def test_connections_are_dropped(sshd: sshds.Sshd) -> None:
    up = sshd.home("far") / "up"
    command = ["ssh", "-F", str(sshd.config), "far", f"echo > {up}; cat"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as client:
        deadline = time.monotonic() + sshds.LIMIT
        while not up.exists():
            assert client.poll() is None and time.monotonic() < deadline
            time.sleep(sshds.STEP)
        assert sshd.kill_connections() > 0
        assert client.wait(sshds.LIMIT) == 255
    assert sshd.left() == []
