"""Programs in containers, the containers and the engine: each end is told as it is, and leaves nothing."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import threading
import time
from collections.abc import Callable

import pytest

import containers
import dockers
from containers import KNOWN, LIMIT, commands, place, sh, shut
from dockers import Dockerd
from rounds import rounds, until
from session_magics.errors import SandboxError
from session_magics.model import Command
from session_magics.sandbox.docker import DockerSandbox

dockerd, docker_host, docker = dockers.dockerd, dockers.docker_host, containers.docker


# Seconds for a command that does not end, from its start there.
TIME = 1.0


# -------------------- ends


@pytest.mark.parametrize("image", ["busybox", "bash", "tools"])
@pytest.mark.parametrize("user", ["", "worker"])
def test_after_a_timeout_nothing_is_left(docker: Dockerd, image: str, user: str) -> None:
    """Neither what has left the group and lost its parent, nor what has another user."""
    away = "(sleep 6543 &)" if image == "bash" else "(setsid sleep 6543 &)"
    if not user and image != "bash":
        change = {"busybox": "su worker -c 'exec sleep 6544'", "tools": "setpriv --reuid 1000 sleep 6544"}[image]
        away += f"; (setsid {change} &)"
    with place(docker, image, user=user) as sandbox:
        began = time.monotonic()
        result = sandbox.exec(sh(f"{away}\necho so far; sleep 6545 & sleep 6546; :"), timeout=TIME)
        lasted = time.monotonic() - began
        assert (result.timed_out, result.code, result.stdout) == (True, -signal.SIGKILL, b"so far\n")
        assert TIME <= lasted < TIME + LIMIT, lasted
        assert commands(docker, "sleep 65") == []


@pytest.mark.parametrize("image", ["busybox", "bash"])
def test_a_kill_leaves_nothing_there_and_tells_the_signal(docker: Dockerd, image: str) -> None:
    with place(docker, image) as sandbox:
        process = sandbox.start_process(sh("sleep 6543 & sleep 6544; :"))
        until(lambda: len(commands(docker, "sleep 654")) == 2, what="it runs")
        process.kill()
        assert process.poll() == -signal.SIGKILL
        assert commands(docker, "sleep 654") == []
        shut(process)
        assert sandbox.exec(Command(("ls", "-A", "/tmp"))).stdout == b""


def test_what_ends_by_a_signal_is_told_from_a_status(docker: Dockerd) -> None:
    """Also where the program takes its whole group with it."""
    with place(docker) as sandbox:
        for script, code in (
            ("kill -9 $$", -9),
            ("kill -15 $$", -15),
            ("exit 137", 137),
            ("kill -9 0", -9),
            ("sh -c 'kill -9 $$'; exit $?", 137),
        ):
            assert sandbox.exec(sh(script)).code == code, script
            process = sandbox.start_process(sh(script))
            assert process.wait(LIMIT) == code, script
            shut(process)


@pytest.mark.parametrize(("image", "listing"), [("busybox", "ps; env"), ("bash", "ps -ef ww; env; ps eww")])
def test_a_program_that_prints_what_runs_there_is_read_to_its_end(docker: Dockerd, image: str, listing: str) -> None:
    """With the command lines and variables of the shell around it."""
    with place(docker, image) as sandbox:
        result = sandbox.exec(sh(f"{listing}; cat /proc/*/cmdline /proc/*/environ; echo the end", _sm_n="1"))
        assert result.code == 0
        assert result.stdout.endswith(b"the end\n")
        assert b"_sm_m=" in result.stdout


def test_words_that_no_system_takes_cannot_be_run(docker: Dockerd) -> None:
    with place(docker) as sandbox:
        long = ":" + " " * 200_000
        result = sandbox.exec(sh(long))
        assert (result.code, b"argument list too long" in result.stderr) == (126, True)
        process = sandbox.start_process(sh(":", LONG=long))
        assert process.wait(LIMIT) == 126
        shut(process)


def test_a_status_that_nobody_can_tell_is_no_status(docker: Dockerd) -> None:
    with place(docker) as sandbox, pytest.raises(SandboxError, match="killed the shell"):
        sandbox.exec(sh("kill -9 $PPID; exit 3"))


def test_an_interrupted_call_leaves_nothing_there(docker: Dockerd) -> None:
    def interrupt() -> None:
        until(lambda: commands(docker, "sleep 6547"), what="it runs")
        os.kill(os.getpid(), signal.SIGINT)

    with place(docker) as sandbox:
        interrupter = threading.Thread(target=interrupt)
        interrupter.start()
        with pytest.raises(KeyboardInterrupt):
            sandbox.exec(sh("sleep 6547; :"))
        interrupter.join()
        assert commands(docker, "sleep 6547") == []


# -------------------- failures


def kill_container(engine: Dockerd, sandbox: DockerSandbox) -> None:
    with engine.client() as client:
        client.api.kill(engine.containers()[0])


def remove_container(engine: Dockerd, sandbox: DockerSandbox) -> None:
    engine.remove(engine.containers()[0])


def pause_container(engine: Dockerd, sandbox: DockerSandbox) -> None:
    with engine.client() as client:
        client.api.pause(engine.containers()[0])


def close_sandbox(engine: Dockerd, sandbox: DockerSandbox) -> None:
    sandbox.close()


BREAKS = (kill_container, remove_container, pause_container)


@pytest.mark.parametrize("breaks", [*BREAKS, close_sandbox])
def test_a_container_that_goes_during_a_command_is_told(docker: Dockerd, breaks: Callable[..., None]) -> None:
    with place(docker) as sandbox:
        raised: list[tuple[BaseException | int, float]] = []

        def call() -> None:
            try:
                raised.append((sandbox.exec(sh("echo up; sleep 7654; :")).code, time.monotonic()))
            except SandboxError as error:
                raised.append((error, time.monotonic()))

        thread = threading.Thread(target=call)
        thread.start()
        until(lambda: commands(docker, "sleep 7654"), what="it runs")
        breaks(docker, sandbox)
        broken = time.monotonic()
        thread.join(LIMIT)
        what, when = raised[0]
        assert isinstance(what, SandboxError), what
        assert "\n" not in str(what)
        assert when - broken < KNOWN


@pytest.mark.parametrize("breaks", BREAKS)
def test_a_container_that_goes_during_a_process_is_told(docker: Dockerd, breaks: Callable[..., None]) -> None:
    with place(docker) as sandbox:
        process = sandbox.start_process(sh("echo up; sleep 7654; :"))
        assert process.stdout.readline() == b"up\n"
        breaks(docker, sandbox)
        began = time.monotonic()
        with pytest.raises(SandboxError, match="container is"):
            process.wait(LIMIT)
        assert time.monotonic() - began < KNOWN
        with pytest.raises(SandboxError):
            process.poll()
        process.kill()
        shut(process)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_container_killed_at_any_moment_gives_no_wrong_status(docker: Dockerd) -> None:
    """Of a command and a process at the same time."""
    chance = random.Random(6)
    for number in range(rounds(5, 100)):
        with place(docker) as sandbox:
            process = sandbox.start_process(sh("read line; exit 8"))
            process.stdin.write(b"\n")
            killer = threading.Timer(chance.uniform(0, 0.25), kill_container, (docker, sandbox))
            killer.start()
            told = [result_of(lambda: sandbox.exec(sh("sleep 0.05; exit 7"), timeout=LIMIT).code)]
            told.append(result_of(process.wait))
            killer.join()
            ended = time.monotonic()
            told += [result_of(lambda: sandbox.exec(sh("exit 7")).code), result_of(process.poll)]
            assert time.monotonic() - ended < KNOWN
            assert told[0] in (7, "gone"), (number, told)
            assert told[1] in (8, "gone"), (number, told)
            assert told[2:] == ["gone", told[1]], (number, told)
            shut(process)


def result_of(call: Callable[[], int | None]) -> int | str | None:
    began = time.monotonic()
    try:
        return call()
    except SandboxError:
        return "gone"
    finally:
        assert time.monotonic() - began < KNOWN


@pytest.mark.timeout(180)  # it starts an engine, and waits twice for the limits of an answer
@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the SDK's sockets to nobody
def test_an_engine_that_goes_during_a_command_is_told(
    docker: Dockerd, how: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, ending = Dockerd(), contextlib.ExitStack()
    try:
        engine.start()
        assert engine.process
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        sandbox = DockerSandbox(engine.image("busybox"), network="none")
        ending.callback(sandbox.let_go)  # as nothing can be removed, its guard is dismissed
        sandbox.exec(sh("exit"))
        process = sandbox.start_process(sh("sleep 7654; :"))
        until(lambda: commands(engine, "sleep 7654"), what="it runs")
        threading.Timer(0.3, engine.process.send_signal, [how]).start()
        began = time.monotonic()
        with pytest.raises(SandboxError, match="docker engine"):
            sandbox.exec(sh("sleep 7655; :"))
        assert time.monotonic() - began < 0.3 + KNOWN
        with pytest.raises(SandboxError, match="docker engine"):
            process.wait(KNOWN)
        shut(process)
        began = time.monotonic()
        with pytest.raises(SandboxError, match="docker engine"):
            sandbox.exec(sh("exit"))
        assert time.monotonic() - began < KNOWN
    finally:
        if engine.process:
            engine.process.send_signal(signal.SIGCONT)
        ending.close()
        engine.stop()
        gc.collect()  # now, and not in a test that does not expect it
