"""What only containers have: limits, users, mounts, an engine that fails, and nothing left behind."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import pty
import random
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

import dockers
import leaks
from dockers import Dockerd
from session_magics.errors import SandboxError, SessionError, UsageMistake
from session_magics.model import Command
from session_magics.sandbox import Process
from session_magics.sandbox.docker import DockerSandbox

dockerd, docker_host = dockers.dockerd, dockers.docker_host

# Seconds within which what has failed is to be known, as the issue asks.
KNOWN = 5.0
ROUNDS = 100 if os.environ.get("SESSION_MAGICS_FULL") else 5
# Seconds that a program gets to come up or end.
LIMIT = 20.0


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


def until(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, f"not within {LIMIT:g} s: {what}"
        time.sleep(0.01)


def commands(engine: Dockerd, words: str) -> list[psutil.Process]:
    """What runs in the containers with a command line that begins so, as this machine sees it."""
    found = []
    for process in engine.processes():
        with contextlib.suppress(psutil.Error):
            if " ".join(process.cmdline()).startswith(words) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


# ------------------------------------------------------------- making, removing


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


# -------------------------------------------------------------------- an existing one


def test_an_existing_container_stays_and_what_was_started_there_ends(docker: Dockerd) -> None:
    container = docker.run("busybox", name="mine")
    with contextlib.closing(DockerSandbox(container="mine")) as sandbox:
        assert sandbox.place == "container:mine"
        assert sandbox.cleanup() == ()
        process = sandbox.start_process(sh("sleep 4321; :"))
        sandbox.exec(sh("sleep 4322 >/dev/null 2>&1 &"))
        until(lambda: len(commands(docker, "sleep 432")) == 2, "both run")
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


# --------------------------------------------------------------------------- limits


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


# ----------------------------------------------------------------------------- ends


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
        result = sandbox.exec(sh(f"{away}\necho so far; sleep 6545 & sleep 6546; :"), timeout=0.7)
        lasted = time.monotonic() - began
        assert (result.timed_out, result.code, result.stdout) == (True, -signal.SIGKILL, b"so far\n")
        assert 0.7 <= lasted < 3, lasted
        assert commands(docker, "sleep 65") == []


@pytest.mark.parametrize("image", ["busybox", "bash"])
def test_a_kill_leaves_nothing_there_and_tells_the_signal(docker: Dockerd, image: str) -> None:
    with place(docker, image) as sandbox:
        process = sandbox.start_process(sh("sleep 6543 & sleep 6544; :"))
        until(lambda: len(commands(docker, "sleep 654")) == 2, "it runs")
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
    class Interrupted(BaseException):
        pass

    def interrupt(*_: object) -> None:
        raise Interrupted

    with place(docker) as sandbox:
        sandbox.exec(sh("exit"))
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            with pytest.raises(Interrupted):
                sandbox.exec(sh("sleep 6547; :"))
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert commands(docker, "sleep 6547") == []


# --------------------------------------------------------------------------- failures


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
        until(lambda: commands(docker, "sleep 7654"), "it runs")
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
    for number in range(ROUNDS):
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


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # the SDK's sockets to nobody
def test_an_engine_that_goes_during_a_command_is_told(
    docker: Dockerd, how: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Dockerd()
    try:
        engine.start()
        assert engine.process
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        sandbox = DockerSandbox(engine.image("busybox"), network="none")
        sandbox.exec(sh("exit"))
        process = sandbox.start_process(sh("sleep 7654; :"))
        until(lambda: commands(engine, "sleep 7654"), "it runs")
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
        engine.stop()
        gc.collect()  # now, and not in a test that does not expect it


# ------------------------------------------------------------------------ wrapped ones


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
        wrapped = sandbox.wrap(sh("trap 'stty size' WINCH; echo up; while :; do sleep 0.05; done"), terminal=True)
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


def shut(process: Process) -> None:
    process.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()


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
