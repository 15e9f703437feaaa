"""The far side's scripts under every shell that /bin/sh may be: frames, exact ends, kills."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import leaks
import sshds
from session_magics.holder.trees import RUN
from session_magics.model import Command
from session_magics.sandbox.sshscripts import run_line, run_script, watchdog_line

MARK = "mark0123456789"
LIMIT = 30
# Two commands, known by nobody else on this machine.
ONE, OTHER = (f"run-{os.urandom(8).hex()}" for _ in range(2))


@pytest.fixture(params=["dash", "bash", "busybox"])
def sh(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A shell that is called ``sh``, which bash and busybox look at."""
    found = sshds.program(request.param)
    if found is None:
        pytest.skip(f"{request.param} is not installed")
    (tmp_path / "sh").symlink_to(found)
    return str(tmp_path / "sh")


def words(sh: str, line: str) -> list[str]:
    return [sh, "-c", line.replace("/bin/sh", sh)]


def ran(
    sh: str, *argv: str, root: str | None = None, cwd: str | None = None, stdin: bytes = b""
) -> tuple[bytes, bytes]:
    """Output and error output of a command that is run as on the far side."""
    script = run_script(Command(argv, cwd), MARK, root, live=False)
    done = subprocess.run(words(sh, run_line("r")), input=script + stdin, capture_output=True, timeout=LIMIT)
    return done.stdout, done.stderr


def ending(sh: str, script: str) -> str:
    out, err = ran(sh, "/bin/sh", "-c", script)  # not busybox itself, which ignores QUIT
    assert out.endswith(f"{MARK} end\n".encode())
    assert err.startswith(f"{MARK} begin\n{MARK} ".encode()), err
    return err.decode().splitlines()[1].removeprefix(f"{MARK} ")


@pytest.mark.parametrize("code", [0, 1, 127, 128, 129, 130, 137, 141, 143, 254, 255])
def test_a_status_is_told(sh: str, code: int) -> None:
    assert ending(sh, f"exit {code}") == f"exit {code}"


@pytest.mark.parametrize("name", ["HUP", "QUIT", "ILL", "ABRT", "FPE", "KILL", "SEGV", "ALRM", "TERM", "USR1", "USR2"])
def test_a_signal_is_told_from_a_status(sh: str, name: str) -> None:
    assert ending(sh, f"ulimit -c 0; kill -{name} $$") == f"signal {signal.Signals[f'SIG{name}'].value}"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGPIPE])
def test_of_two_signals_no_shell_tells(sh: str, number: int) -> None:
    assert ending(sh, f"kill -{number} $$") == f"exit {128 + number}"


def test_the_programs_bytes_are_between_the_marks(sh: str) -> None:
    data = bytes(range(256)) * 300
    out, err = ran(sh, "sh", "-c", "cat; printf err >&2; exit 3", stdin=data)
    first, rest = out.split(b"\n", 1)
    assert first.startswith(f"{MARK} begin ".encode())
    assert rest == data + f"{MARK} end\n".encode()
    assert err == f"{MARK} begin\nerr{MARK} exit 3\n".encode()


def test_a_program_can_be_interrupted(sh: str) -> None:
    """It runs in the foreground: a shell has its background jobs ignore interrupts."""
    assert ran(sh, "sh", "-c", "trap 'echo seen' INT; kill -INT $$")[0].split(b"\n")[1] == b"seen"


@pytest.mark.parametrize(
    ("cwd", "why"), [("out", "outside"), ("out/etc", "outside"), ("none", "missing"), ("in/../..", "outside")]
)
def test_a_directory_is_judged_there(sh: str, tmp_path: Path, cwd: str, why: str) -> None:
    root = tmp_path / "it's a root"
    (root / "in").mkdir(parents=True)
    (root / "out").symlink_to("/")
    assert ran(sh, "true", root=str(root), cwd=f"{root}/{cwd}") == (f"{MARK} refused {why}\n".encode(), b"")
    assert ran(sh, "pwd", root=str(root), cwd=f"{root}/in")[0].split(b"\n")[1] == bytes(root / "in")


@pytest.fixture
def watchdog(sh: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(words(sh, watchdog_line(MARK)), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdin is not None
        assert process.stdout.readline() == f"{MARK} up\n".encode()
        yield process
        process.kill()


def marked(run: str) -> subprocess.Popen[bytes]:
    """A shell with two children, one of which has left its group and session; they have begun."""
    script = "setsid sh -c 'echo up; sleep 100' & sh -c 'echo up; exec sleep 100'"
    process = subprocess.Popen(
        ["sh", "-c", script], stdout=subprocess.PIPE, env={**os.environ, RUN: run}, start_new_session=True
    )
    assert process.stdout is not None
    assert [process.stdout.readline(), process.stdout.readline()] == [b"up\n"] * 2
    return process


def test_the_watchdog_kills_on_demand(watchdog: subprocess.Popen[bytes]) -> None:
    assert watchdog.stdin is not None and watchdog.stdout is not None
    with marked(ONE) as one, marked(OTHER) as other:
        watchdog.stdin.write(f"begin {ONE}\nbegin {OTHER}\nkill {ONE} {one.pid}\n".encode())
        watchdog.stdin.flush()
        assert watchdog.stdout.readline() == f"killed {ONE}\n".encode()
        assert one.wait(LIMIT) == -signal.SIGKILL
        assert one.stdout is not None and one.stdout.read() == b""  # nobody has it open any more
        assert other.poll() is None
        watchdog.stdin.close()
        assert other.wait(LIMIT) == -signal.SIGKILL
        assert other.stdout is not None and other.stdout.read() == b""


def test_the_watchdog_leaves_alone_what_has_ended(watchdog: subprocess.Popen[bytes]) -> None:
    assert watchdog.stdin is not None
    with marked(OTHER) as left, marked(ONE) as killed:
        watchdog.stdin.write(f"begin {OTHER}\nbegin {ONE}\nend {OTHER}\n".encode())
        watchdog.stdin.close()
        assert killed.wait(LIMIT) == -signal.SIGKILL
        assert watchdog.wait(LIMIT) == 0
        assert left.poll() is None
        os.killpg(left.pid, signal.SIGKILL)
        for process in psutil.process_iter():
            if leaks.carries(process, {f"{RUN}={OTHER}"}, Path("/nowhere")):
                process.kill()
