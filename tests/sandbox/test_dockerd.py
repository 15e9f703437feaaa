"""The rig of an engine: each image does what its name says, and a stop leaves nothing."""

from __future__ import annotations

import shutil

import pytest

import dockers
import leaks
from dockers import Dockerd

dockerd, docker_host = dockers.dockerd, dockers.docker_host


def told(engine: Dockerd, image: str, *words: str) -> str:
    """Run a program in a container of an image; its output, and the error output behind it."""
    container = engine.run(image)
    try:
        with engine.client() as client:
            return str(client.containers.get(container).exec_run(list(words)).output.decode())
    finally:
        engine.remove(container)


@pytest.mark.parametrize(
    ("image", "script", "answer"),
    [
        ("busybox", "echo a | sed s/a/b/; id -u; pwd", "b\n0\n/\n"),
        ("bash", "bash -c 'echo $((6 * 7)); ps -o comm= -p $$; :'; echo a | grep -c a", "42\nbash\n1\n"),
        ("bash", "command -v python3 || echo none", "none\n"),
        ("tools", "python3 -c 'import ssl, json; print(6 * 7)'; perl -e 'print 1'", "42\n1"),
        ("tools", "touch /root/a /tmp/b && ls /root /tmp", "/root:\na\n\n/tmp:\nb\n"),
        ("tools", "touch /usr/a 2>/dev/null || echo refused", "refused\n"),
    ],
)
def test_image(docker_host: Dockerd, image: str, script: str, answer: str) -> None:
    assert told(docker_host, image, "sh", "-c", script) == answer


@pytest.mark.parametrize("program", ["git --version", "less --version", "vim --version", "curl --version", "ps"])
def test_tools_has_the_programs_of_cells(docker_host: Dockerd, program: str) -> None:
    if not shutil.which(program.split()[0]):
        pytest.skip(f"{program.split()[0]} not found here either")
    assert "not found" not in told(docker_host, "tools", "sh", "-c", f"{program} | head -1")


def test_stop_leaves_nothing(docker_host: Dockerd) -> None:
    other = Dockerd()
    try:
        other.start()
        other.run("busybox", command=["sh", "-c", "sleep 1000 & sleep 1000"])
        running = other.processes()
    finally:
        left = other.stop()
    assert left == []
    assert len(running) >= 2
    assert leaks.outlived(running) == []
    assert not other.place.exists()
    assert dockers.mounts_below(other.place) == []
    assert other.cgroups() == []


def test_unavailable_tells_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    engine = Dockerd()
    try:
        with pytest.raises(dockers.Unavailable, match=r"needs Linux|needs root|dockerd not found"):
            engine.start()
    finally:
        assert engine.stop() == []
