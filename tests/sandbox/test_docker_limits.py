"""Containers: how they are made, what they are limited to, and that they are removed."""

from __future__ import annotations

import contextlib
import gc
import signal
import subprocess
from pathlib import Path

import pytest

import containers
import dockers
from containers import LIMIT, commands, place, sh, shut
from dockers import Dockerd
from rounds import until
from session_magics.errors import SandboxError, SessionError, UsageMistake
from session_magics.model import Command
from session_magics.sandbox.docker import DockerSandbox

dockerd, docker_host, docker = dockers.dockerd, dockers.docker_host, containers.docker


# -------------------- making, removing


def test_nothing_is_done_before_the_first_command(docker: Dockerd) -> None:
    with place(docker) as sandbox:
        assert docker.containers() == []
        sandbox.exec(sh("exit"))
        assert len(docker.containers()) == 1
    assert docker.containers() == []
    sandbox.close()


def test_cleanup_removes_the_container_quietly_and_again(docker: Dockerd) -> None:
    with place(docker, session="work") as sandbox:
        sandbox.exec(sh("exit"))
        with docker.client() as client:
            assert client.containers.list(filters={"label": "session-magics=work"})
        for _ in range(2):
            done = subprocess.run(sandbox.cleanup(), capture_output=True, env={"PATH": "/nowhere"}, check=False)
            assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
            assert docker.containers() == []


def test_a_missing_image_gives_one_line(docker: Dockerd) -> None:
    with (
        contextlib.closing(DockerSandbox("no-such/image:1", network="none")) as sandbox,
        pytest.raises(
            UsageMistake, match=r"^docker:no-such/image:1: there is no image .* docker pull no-such/image:1$"
        ),
    ):
        sandbox.exec(sh("exit"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mounts": ["/no-such-folder:/x"]}, "no container can be made: .*/no-such-folder"),
        ({"mounts": ["/tmp"]}, "a mount is FOLDER:PATH"),
        ({"memory": "lots"}, "no container can be made: .*memory"),
        ({"network": "no-such-network"}, "no-such-network"),
        ({"user": "nobody-of-that-name"}, "nobody-of-that-name"),
    ],
)
def test_bad_options_give_one_line_and_leave_nothing(docker: Dockerd, options: dict, message: str) -> None:
    with place(docker, **options) as sandbox, pytest.raises(SessionError, match=message) as told:
        sandbox.exec(sh("exit"))
    assert "\n" not in str(told.value)
    assert docker.containers() == []


def test_an_image_without_a_shell_gives_one_line(docker: Dockerd) -> None:
    container = docker.run("busybox")
    with contextlib.closing(DockerSandbox(container=container)) as sandbox:
        sandbox.exec(Command(("rm", "/bin/sh")))
        with pytest.raises(SandboxError, match="/bin/sh") as told:
            sandbox.exec(Command(("true",)))
        docker.remove(container)
    assert "\n" not in str(told.value)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the SDK's sockets to nobody
def test_no_engine_gives_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    pytest.importorskip("docker")
    with pytest.raises(SandboxError, match="no docker engine") as told:
        DockerSandbox("any").exec(sh("exit"))
    assert "\n" not in str(told.value)
    del told
    gc.collect()  # now, and not in a test that does not expect it


# -------------------- an existing one


def test_an_existing_container_stays_and_what_was_started_there_ends(docker: Dockerd) -> None:
    container = docker.run("busybox", name="mine")
    with contextlib.closing(DockerSandbox(container="mine")) as sandbox:
        assert sandbox.place == "container:mine"
        assert sandbox.cleanup() == ()
        process = sandbox.start_process(sh("sleep 4321; :"))
        sandbox.exec(sh("sleep 4322 >/dev/null 2>&1 &"))
        until(lambda: len(commands(docker, "sleep 432")) == 2, what="both run")
        sandbox.close()
        assert process.wait(LIMIT) != 0
        shut(process)
        assert commands(docker, "sleep 432") == []
    assert docker.containers() == [container]
    docker.remove(container)


def test_a_container_that_is_not_there_or_does_not_run(docker: Dockerd) -> None:
    with pytest.raises(UsageMistake, match="there is no container 'none-such'"):
        DockerSandbox(container="none-such").exec(sh("exit"))
    container = docker.run("busybox")
    try:
        with docker.client() as client:
            client.api.pause(container)
            with pytest.raises(SandboxError, match=f"is paused: docker unpause {container}"):
                DockerSandbox(container=container).exec(sh("exit"))
            client.api.unpause(container)
            client.api.kill(container)
            client.api.wait(container)
            with pytest.raises(SandboxError, match=f"is exited: docker start {container}"):
                DockerSandbox(container=container).exec(sh("exit"))
    finally:
        docker.remove(container)


# -------------------- limits


@pytest.mark.parametrize("image", ["busybox", "bash"])
def test_a_program_that_takes_too_much_memory_is_killed_and_not_timed_out(docker: Dockerd, image: str) -> None:
    with place(docker, image, memory="32m") as sandbox:
        result = sandbox.exec(Command(("tail", "/dev/zero")), timeout=LIMIT)
        assert (result.code, result.timed_out) == (-signal.SIGKILL, False)
        assert sandbox.exec(sh("echo goes on")).stdout == b"goes on\n"


def test_limits_are_those_of_the_container(docker: Dockerd, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("here")
    mounts = [f"{tmp_path}:/ro:ro", f"{tmp_path}:/rw"]
    with place(docker, cpus=0.5, memory="64m", user="worker", mounts=mounts) as sandbox:
        tmp_path.chmod(0o777)
        script = "id -u; grep -c : /proc/net/dev; cat /ro/file; echo > /ro/x 2>/dev/null || echo refused; echo > /rw/x"
        result = sandbox.exec(sh(script))
        assert result.stdout.decode().split() == ["1000", "1", "here", "refused"] or result.stderr
        assert result.stdout.decode().startswith("1000\n")
        assert (tmp_path / "x").exists()
        with docker.client() as client:
            limits = client.api.inspect_container(docker.containers()[0])["HostConfig"]
        assert (limits["NanoCpus"], limits["Memory"], limits["NetworkMode"]) == (500_000_000, 64 << 20, "none")


def test_output_beyond_the_cap_is_counted_and_drained(docker: Dockerd) -> None:
    with place(docker, output_cap=1000) as sandbox:
        result = sandbox.exec(sh("yes | head -c 3000000; echo err >&2; exit 3"))
        assert (result.code, result.stdout, result.stderr) == (3, b"y\n" * 500, b"err\n")
        assert result.dropped == 3_000_000 - 1000
