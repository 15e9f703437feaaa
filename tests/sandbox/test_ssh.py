"""A host behind ssh keeps the contract of sandboxes, whatever its login shell; what only ssh can do wrong."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

import leaks
import sshds
from rounds import some
from session_magics.errors import SandboxError, UsageMistake
from session_magics.model import Command
from session_magics.sandbox import Process, Sandbox
from session_magics.sandbox.ssh import SSHSandbox
from session_magics.testing import SANDBOX_CHECKS

sshd = sshds.sshd
Opened = Callable[..., SSHSandbox]
# Seconds for what takes less than five on a machine that does nothing else.
LIMIT = 30.0
BREAKING = ("far", "fish-noisy", "jumped")
HOSTS = ("far", "dash", "fish", "tcsh-noisy", "bash-noisy", "ash-bare")


@pytest.fixture
def opened(sshd: sshds.Sshd, tmp_path: Path) -> Iterator[Opened]:
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
def sandbox(opened: Opened, sshd: sshds.Sshd, request: pytest.FixtureRequest) -> SSHSandbox:
    """A sandbox whose root is the home of its user."""
    opened(request.param)
    return opened(request.param, str(sshd.home(request.param)))


@pytest.mark.parametrize("sandbox", some(HOSTS, 6), indirect=True)
@pytest.mark.parametrize("check", SANDBOX_CHECKS, ids=lambda check: check.__name__)
def test_it_keeps_the_contract(check: Callable[[Sandbox], None], sandbox: SSHSandbox) -> None:
    check(sandbox)


# ------------------------------------------------------------ over any shell


@pytest.mark.parametrize("host", ["bash-noisy", "zsh-noisy", "fish-noisy", "tcsh-noisy", "jumped"])
def test_output_is_the_programs_alone(opened: Opened, host: str) -> None:
    sandbox = opened(host)
    result = sandbox.exec(sh("printf out; printf err >&2; exit 3"))
    assert (result.code, result.stdout, result.stderr) == (3, b"out", b"err")
    process = sandbox.start_process(sh("printf out; printf err >&2; exit 3"))
    assert (process.stdout.read(), process.wait(LIMIT), process.stderr()) == (b"out", 3, b"err")
    done = subprocess.run(sandbox.wrap(sh("cat; exit 3")).argv, input=bytes(range(256)), stdout=-1, timeout=LIMIT)
    assert (done.stdout, done.returncode) == (bytes(range(256)), 3)
    close_streams(process)


@pytest.mark.parametrize("host", ["far", "fish", "tcsh"])
def test_a_long_command_gets_through(opened: Opened, host: str) -> None:
    """Longer than what a host takes as one command line; a single word has a limit there as here."""
    sandbox, words = opened(host), tuple(f"{number}'" * 100 for number in range(1000, 2000))
    count = Command(("sh", "-c", "printf '%s ' $#; printf %s \"$*\" | wc -c", "sh", *words))
    wanted = [len(words), len(" ".join(words))]
    assert wanted[1] > 4 * 128 * 1024 - 30_000
    assert list(map(int, sandbox.exec(count).stdout.split())) == wanted
    assert list(map(int, subprocess.check_output(sandbox.wrap(count).argv).split())) == wanted
    too_long = sandbox.exec(Command(("echo", "x" * 128 * 1024)))
    assert (too_long.code, b"too long" in too_long.stderr) == (126, True)


def test_signals_are_told_from_statuses(opened: Opened) -> None:
    sandbox = opened("far")
    for number in (1, 6, 9, 11, 15):
        assert sandbox.exec(sh(f"ulimit -c 0; kill -{number} $$")).code == -number
        assert sandbox.exec(sh(f"exit {128 + number}")).code == 128 + number
        process = sandbox.start_process(sh(f"ulimit -c 0; kill -{number} $$"))
        assert process.wait(LIMIT) == -number
        close_streams(process)


def test_without_a_root_commands_begin_where_the_login_does(opened: Opened, sshd: sshds.Sshd) -> None:
    sandbox = opened("far")
    (sshd.home("far") / "sub").mkdir(exist_ok=True)
    found = [sandbox.exec(Command(("pwd",), cwd)).stdout.decode().strip() for cwd in (None, "sub", "/", "/usr/..")]
    assert found == [str(sshd.home("far")), str(sshd.home("far") / "sub"), "/", "/"]
    with pytest.raises(UsageMistake, match="not there"):
        sandbox.start_process(Command(("true",), "none"))


# ------------------------------------------------------------------ secrets


def test_values_are_in_no_list_of_processes_here(opened: Opened, sshd: sshds.Sshd) -> None:
    sandbox, secret = opened("far"), f"secret-{os.urandom(8).hex()}"
    command = Command(("sh", "-c", 'echo up; cat; printf %s "$ONE"'), env={"ONE": secret})
    process = sandbox.start_process(command)
    wrapped = sandbox.wrap(command)
    with subprocess.Popen(wrapped.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdin is not None
        assert [process.stdout.readline(), other.stdout.readline()] == [b"up\n"] * 2
        lines = [" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])]
        assert any("ssh -F" in line for line in lines) and not [line for line in lines if secret in line]
        process.stdin.close()
        other.stdin.close()
        assert [process.stdout.read(), other.stdout.read()] == [secret.encode()] * 2
    process.wait(LIMIT)
    close_streams(process)


def test_what_a_wrapped_command_needs_there_is_private_and_removed(opened: Opened) -> None:
    sandbox = opened("far")
    wrapped = [sandbox.wrap(Command(("printenv", "ONE"), env={"ONE": "1"})) for _ in range(2)]
    listing = sh("cd /tmp && stat -c '%a %n' $(find sm* -maxdepth 1 -user $(id -un) -path '*start*')")
    found = sandbox.exec(listing).stdout.decode().split()
    assert found[::2] == ["600", "600"]
    assert subprocess.check_output(wrapped[0].argv) == subprocess.check_output(wrapped[0].argv) == b"1\n"
    sandbox.close()  # as the last one that uses it
    again = SSHSandbox("far", config=sandbox._config)
    with contextlib.closing(again):
        assert again.exec(listing).stdout == b""
        again.wrap(Command(("true",), env={"ONE": "1"}))
        for _ in range(2):
            subprocess.run(again.cleanup(), check=True)
        assert again.exec(listing).stdout == b""


# ------------------------------------------------- connections that go wrong


# That a connection hangs is noticed after four seconds, whatever the host.
LOSSES = [("dropped", host) for host in BREAKING] + [("stalled", host) for host in some(BREAKING, len(BREAKING))]


@pytest.mark.parametrize(("how", "host"), LOSSES)
def test_a_lost_connection_is_an_error_and_nothing_runs_on(
    opened: Opened, sshd: sshds.Sshd, host: str, how: str
) -> None:
    sandbox = opened(host)
    errors: list[object] = []
    script = "setsid sleep 1000 & sleep 1000 & echo up; sleep 1000; exit 0"

    def run() -> None:
        try:
            errors.append(sandbox.exec(sh(script)))
        except SandboxError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    process = sandbox.start_process(sh(script))
    assert process.stdout.readline() == b"up\n"
    wait_until(lambda: len([line for line in sshd_lines(sshd) if line.endswith("sleep 1000")]) == 6)
    began = time.monotonic()
    assert (sshd.kill_connections if how == "dropped" else sshd.stall_connections)() > 0
    with pytest.raises(SandboxError, match="connection was lost"):
        process.wait(LIMIT)
    thread.join(LIMIT)
    assert [type(error) for error in errors] == [SandboxError]
    assert "\n" not in str(errors[0]) and "connection was lost" in str(errors[0])
    assert time.monotonic() - began < LIMIT
    close_streams(process)
    if how == "stalled":
        sshd.resume_connections()  # only now can anything there notice
    assert sshd.left() == []
    assert sandbox.exec(sh("exit 4")).code == 4


def test_all_ends_with_the_process_that_connected(sshd: sshds.Sshd) -> None:
    """However that ends: neither ssh here nor programs there outlive it."""
    code = (
        "import sys; from pathlib import Path; from session_magics.model import Command\n"
        "from session_magics.sandbox.ssh import SSHSandbox\n"
        "process = SSHSandbox('far', config=Path(sys.argv[1])).start_process(Command(('sh', '-c', sys.argv[2])))\n"
        "print(process.stdout.readline(), flush=True); process.wait()\n"
    )
    words = [sys.executable, "-c", code, str(sshd.config), "setsid sleep 1000 & echo up; sleep 1000"]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as user:
        assert user.stdout is not None and b"up" in user.stdout.readline()
        user.kill()
    assert sshd.left() == []
    wait_until(
        lambda: (
            not [each for each in psutil.process_iter(["cmdline"]) if str(sshd.config) in (each.info["cmdline"] or ())]
        )
    )


@pytest.mark.parametrize("folder", ["t", "t" * 100])
def test_nothing_is_left_of_an_object_that_nobody_closed(sshd: sshds.Sshd, tmp_path: Path, folder: str) -> None:
    """Wherever sockets can be: their paths have a limit."""
    (tmp_path / folder).mkdir()
    code = (
        "import sys; from pathlib import Path; from session_magics.model import Command\n"
        "from session_magics.sandbox.ssh import SSHSandbox\n"
        "sandbox = SSHSandbox('far', config=Path(sys.argv[1]))\n"
        "print(sandbox.exec(Command(('echo', 'up'))).stdout, sandbox._connection._folder)\n"
    )
    env = {**os.environ, "TMPDIR": str(tmp_path / folder)}
    up, made = subprocess.check_output([sys.executable, "-c", code, sshd.config], env=env, text=True).split()
    assert up == "b'up\\n'"
    assert not Path(made).exists() and list((tmp_path / folder).iterdir()) == []
    assert sshd.left() == []


def test_what_leaves_the_group_is_killed_too(opened: Opened, sshd: sshds.Sshd) -> None:
    sandbox = opened("far")
    result = sandbox.exec(sh("setsid sleep 1000 & (setsid sh -c 'sleep 1000; :' &) ; sleep 1000"), timeout=0.5)
    assert (result.timed_out, result.code) == (True, -9)
    assert not [line for line in sshd_lines(sshd) if line.endswith("sleep 1000")]


@pytest.mark.parametrize("which", ["$PPID", "$PPID $(ps -o ppid= -p $PPID)", "$(pgrep -P $(ps -o ppid= -p $PPID))"])
def test_shells_of_ours_that_are_killed_there(opened: Opened, which: str) -> None:
    """No status is made up, and nothing hangs."""
    sandbox, script = opened("far"), f"echo up; kill -9 {which}; sleep 1000"
    with pytest.raises(SandboxError, match="no status"):
        sandbox.exec(sh(script))
    process = sandbox.start_process(sh(script))
    with pytest.raises(SandboxError, match="no status"):
        process.wait(LIMIT)
    close_streams(process)


def test_a_live_session_does_not_depend_on_the_object(opened: Opened) -> None:
    sandbox = opened("far")
    with subprocess.Popen(sandbox.wrap(sh("echo up; cat")).argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as live:
        assert live.stdout is not None and live.stdout.readline() == b"up\n"
        sandbox.close()
        assert live.communicate(b"still here", timeout=LIMIT)[0] == b"still here"


@pytest.mark.parametrize(
    ("host", "said"),
    [
        ("refused", "ssh-copy-id refused"),
        ("stranger", "ssh stranger"),
        ("closed", "refused"),
    ],
)
def test_a_host_that_cannot_be_reached_says_what_to_do(opened: Opened, host: str, said: str) -> None:
    sandbox = opened(host)
    for call in (sandbox.exec, sandbox.start_process, sandbox.wrap):
        with pytest.raises(SandboxError, match=f"^ssh:{host}: ") as caught:
            call(Command(("true",)))
        assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_name_that_is_nobodys_says_so(tmp_path: Path) -> None:
    (tmp_path / "config").touch()
    sandbox = SSHSandbox("no.such.host.invalid", config=tmp_path / "config")
    with pytest.raises(SandboxError, match="look at the name"):
        sandbox.exec(Command(("true",)))


def test_a_host_that_answers_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = (f"Port={silent.getsockname()[1]}", "HostName=127.0.0.1", "ConnectTimeout=1")
        with (
            contextlib.closing(SSHSandbox("silent", options=options)) as sandbox,
            pytest.raises(SandboxError, match="timed out"),
        ):
            sandbox.exec(Command(("true",)))


@pytest.mark.parametrize("host", ["", "-oProxyCommand=x", "a b", "a\n"])
def test_what_is_no_host_is_refused(host: str) -> None:
    with pytest.raises(UsageMistake):
        SSHSandbox(host)


def test_an_exec_is_much_faster_than_a_connection(opened: Opened, sshd: sshds.Sshd) -> None:
    sandbox = opened("far")
    sandbox.exec(Command(("true",)))
    times: list[tuple[float, float]] = []
    for _ in range(5):  # by turns, as what else the machine does is to hold up both
        execs = time_of(lambda: sandbox.exec(Command(("true",))))
        times.append((execs, time_of(lambda: subprocess.run(["ssh", "-F", sshd.config, "far", "true"], check=True))))
    shared, alone = (sorted(each)[2] for each in zip(*times, strict=True))
    assert shared * 3 < alone, f"exec {shared * 1000:.1f} ms, ssh far true {alone * 1000:.1f} ms"


def sh(script: str) -> Command:
    return Command(("sh", "-c", script))


def close_streams(process: Process) -> None:
    process.stdin.close()
    process.stdout.close()


def sshd_lines(server: sshds.Sshd) -> list[str]:
    return [leaks.describe(process) for process in server.running()]


def wait_until(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def time_of(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began
