"""Commands for containers as they are started here, by a client that knows nothing of the package."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios

import psutil

import containers
import dockers
from containers import LIMIT, place, sh, shut
from dockers import Dockerd
from session_magics.model import Command

dockerd, docker_host, docker = dockers.dockerd, dockers.docker_host, containers.docker


def test_values_are_in_no_command_line_here(docker: Dockerd) -> None:
    secret = "s3cret-" + os.urandom(8).hex()
    with place(docker) as sandbox:
        wrapped = sandbox.wrap(sh("echo $TOKEN; read line", TOKEN=secret))
        process = sandbox.start_process(sh("echo $TOKEN; read line", TOKEN=secret))
        env = {**os.environ, **{name: str(value) for name, value in wrapped.env.items()}}
        with subprocess.Popen(wrapped.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as near:
            assert near.stdin and near.stdout
            assert near.stdout.readline().decode() == f"{secret}\n"
            assert process.stdout.readline().decode() == f"{secret}\n"
            for one in psutil.process_iter():
                with contextlib.suppress(psutil.Error):
                    assert secret not in " ".join(one.cmdline())
            assert secret not in repr(wrapped)
            near.communicate(b"\n")
        process.kill()
        shut(process)


def test_a_wrapped_command_sees_the_end_of_its_input(docker: Dockerd) -> None:
    with place(docker) as sandbox:
        wrapped = sandbox.wrap(Command(("wc", "-c")))
        env = {**os.environ, **{name: str(value) for name, value in wrapped.env.items()}}
        data = bytes(range(256)) * 8192
        assert subprocess.run(wrapped.argv, input=data, capture_output=True, env=env, check=True).stdout == b"2097152\n"
        ended = subprocess.run(wrapped.argv, stdin=subprocess.DEVNULL, capture_output=True, env=env, check=True)
        assert ended.stdout == b"0\n"


def test_a_terminal_there_has_the_size_of_that_here(docker: Dockerd) -> None:
    with place(docker) as sandbox:
        wrapped = sandbox.wrap(sh("while :; do stty size; sleep 0.05; done"), terminal=True)
        near, far = pty.openpty()
        env = {**os.environ, **{name: str(value) for name, value in wrapped.env.items()}}
        resize(far, 20, 70)
        client = subprocess.Popen(wrapped.argv, stdin=far, stdout=far, stderr=far, env=env, start_new_session=True)
        os.close(far)
        try:
            read_until(near, b"20 70")
            resize(near, 33, 99)
            client.send_signal(signal.SIGWINCH)
            read_until(near, b"33 99")
            os.write(near, b"\x03")
            assert client.wait(LIMIT) in (130, 2)
        finally:
            client.kill()
            client.wait()
            os.close(near)


def resize(fd: int, lines: int, columns: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


def read_until(fd: int, text: bytes) -> None:
    output = b""
    while text not in output:
        try:
            output += os.read(fd, 4096)
        except OSError:
            raise AssertionError(f"{text!r} is not in {output!r}") from None


def test_probe_tells_what_each_image_has(docker: Dockerd) -> None:
    with place(docker) as sandbox:
        found = sandbox.probe()
        assert (found.system, found.home, found.user, found.python) == ("Linux", "/root", "root", None)
        assert dict(found.shells) == {"sh": "/bin/sh"}
    with place(docker, "bash") as sandbox:
        assert sandbox.probe().shells.keys() == {"bash", "dash", "sh"}
    with place(docker, "tools") as sandbox:
        assert sandbox.probe().python


def test_the_client_needs_nothing_of_the_package(docker: Dockerd) -> None:
    """Not even where it lies: so it starts fast."""
    with place(docker) as sandbox:
        argv = list(sandbox.wrap(Command(("true",))).argv)
        argv[1:1] = ["-X", "importtime"]
        told = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stderr
    loaded = {line.rpartition("|")[2].strip() for line in told.splitlines() if line.startswith("import time:")}
    assert {name for name in loaded if name.startswith("session_magics")} == {"session_magics.sandbox.dockerwire"}
