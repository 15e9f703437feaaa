"""This machine as a sandbox keeps the contract, and what only here can be looked at."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import leaks
from rounds import DEADLINE, until
from session_magics import Registry, Running
from session_magics.errors import SandboxError, UsageMistake
from session_magics.holder.trees import RUN
from session_magics.model import Command
from session_magics.sandbox import Result, Sandbox, children, pipes
from session_magics.sandbox.local import LocalSandbox
from session_magics.testing import SANDBOX_CHECKS


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[LocalSandbox]:
    before = leaks.baseline()
    with contextlib.closing(LocalSandbox(tmp_path)) as sandbox:
        yield sandbox
    assert list(tmp_path.iterdir()) == []
    assert leaks.leaked(tmp_path, before) == []


# Seconds for a program that does not end: more than a Python takes to begin, on a machine that is busy.
TIME = 3.0

ROWS = {
    "an_exit_status_is_a_result": "A4",
    "a_signal_is_told": "A4",
    "a_timeout_kills_all_that_was_started": "A13",
    "a_job_left_behind_holds_up_nobody": "A13",
    "a_live_process_answers": "A17",
    "a_live_process_ends_by_itself": "A17",
    "a_kill_ends_the_whole_group": "A17",
    "error_output_holds_up_nobody": "A17",
}


def named(check: Callable[[Sandbox], None]) -> str:
    return "-".join(filter(None, (ROWS.get(check.__name__), check.__name__)))


@pytest.mark.parametrize("check", SANDBOX_CHECKS, ids=named)
def test_it_keeps_the_contract(check: Callable[[Sandbox], None], sandbox: LocalSandbox) -> None:
    check(sandbox)


def marked(word: str) -> list[psutil.Process]:
    """The processes that have the word in their arguments."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if word in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@pytest.fixture
def word() -> Iterator[str]:
    """Marks processes; whatever has it at the end is killed, and fails the test."""
    word = f"marked-{os.urandom(6).hex()}"
    yield word
    left = leaks.outlived(marked(word))
    for process in left:
        leaks.kill(process)
    assert left == []


ESCAPES = """
import os, signal, sys, time
for left in range(3):  # children that leave the group, the session, and their parent
    if os.fork() == 0:
        if left > 0:
            os.setsid()
        if left > 1 and os.fork() > 0:
            os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(60)
print("up", flush=True)
time.sleep(60)
"""


def escaping(word: str) -> Command:
    return Command((sys.executable, "-c", ESCAPES, word))


def test_a_timeout_kills_what_has_left_the_group_and_its_parent(sandbox: LocalSandbox, word: str) -> None:
    began = time.monotonic()
    result = sandbox.exec(escaping(word), timeout=TIME)
    assert (result.timed_out, result.code, result.stdout) == (True, -signal.SIGKILL, b"up\n")
    assert TIME <= time.monotonic() - began < TIME + DEADLINE  # and not the minute that the program takes
    assert marked(word) == []


def test_a_kill_ends_what_has_left_the_group_and_its_parent(sandbox: LocalSandbox, word: str) -> None:
    process = sandbox.start_process(escaping(word))
    assert process.stdout.readline() == b"up\n"
    until(lambda: len(marked(word)) == 4)
    process.kill()
    assert (process.poll(), marked(word)) == (-signal.SIGKILL, [])
    process.stdin.close()
    process.stdout.close()


# One process at a time that is nobody's relative, and each ends a moment after it began.
WANDERS = """
import os, time
print("up", flush=True)
if os.fork() > 0:
    time.sleep(60)
end = time.monotonic() + 20
while time.monotonic() < end:
    os.setsid()
    time.sleep(0.005)
    if os.fork() > 0:
        os._exit(0)
"""


def test_a_kill_ends_what_forks_away_from_its_parents_all_the_time(sandbox: LocalSandbox, word: str) -> None:
    process = sandbox.start_process(Command((sys.executable, "-c", WANDERS, word)))
    assert process.stdout.readline() == b"up\n"
    until(lambda: len(marked(word)) > 1)
    process.kill()
    end = time.monotonic() + 0.3
    while time.monotonic() < end:  # it could be missed in one look
        assert marked(word) == []
    process.stdin.close()
    process.stdout.close()


def test_a_kill_leaves_sessions_that_were_started_alone(sandbox: LocalSandbox, root: Path) -> None:
    script = f"{sys.executable} -m session_magics start inside sleep 60 && sleep 60"
    process = sandbox.start_process(Command(("sh", "-c", script)))
    assert b"inside running" in process.stdout.readline()
    process.kill()
    process.stdin.close()
    process.stdout.close()
    session = Registry(root).get("inside")
    try:
        assert process.wait() == -signal.SIGKILL
        assert isinstance(session.state(), Running)
    finally:
        session.stop(now=True)


def test_an_interrupt_kills_what_runs(sandbox: LocalSandbox, word: str) -> None:
    def interrupt() -> None:
        until(lambda: marked(word))
        os.kill(os.getpid(), signal.SIGINT)

    interrupter = threading.Thread(target=interrupt)
    interrupter.start()
    with pytest.raises(KeyboardInterrupt):
        sandbox.exec(Command(("sh", "-c", "sleep 60; :", word)))
    interrupter.join()
    assert marked(word) == []


@pytest.mark.parametrize("how", ["exec", "start_process"])
def test_an_interrupt_while_it_is_started_kills_it(
    sandbox: LocalSandbox, word: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupted(children.Child):
        def __init__(self, *given: Any) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            super().__init__(*given)

    monkeypatch.setattr(pipes, "Child", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        getattr(sandbox, how)(Command(("sh", "-c", "sleep 60; :", word)))
    until(lambda: not marked(word))


def test_a_close_ends_a_command_of_another_thread(sandbox: LocalSandbox, word: str) -> None:
    results: list[Result] = []
    runner = threading.Thread(target=lambda: results.append(sandbox.exec(Command(("sh", "-c", "sleep 60; :", word)))))
    runner.start()
    until(lambda: marked(word))
    sandbox.close()
    runner.join()
    assert [(result.code, result.timed_out) for result in results] == [(-signal.SIGKILL, False)]
    assert sandbox.exec(Command(("true",))).code == 0


def test_the_first_bytes_of_much_output_are_kept(tmp_path: Path) -> None:
    sandbox = LocalSandbox(tmp_path, output_cap=1000)
    result = sandbox.exec(Command(("sh", "-c", "yes | head -c 5000; yes n | head -c 3000 >&2")))
    assert (result.stdout, result.stderr, result.dropped) == (b"y\n" * 500, b"n\n" * 500, 6000)
    assert sandbox.exec(Command(("sh", "-c", "printf %01000d 7"))).dropped == 0


def test_a_job_that_goes_on_writing_holds_up_nobody(sandbox: LocalSandbox) -> None:
    began = time.monotonic()
    result = sandbox.exec(Command(("sh", "-c", "(while echo x; do sleep 0.01; done) & echo done")))
    assert (result.code, b"done\n" in result.stdout) == (0, True)
    assert time.monotonic() - began < DEADLINE


def test_only_named_variables_are_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "s")
    monkeypatch.setenv("WANTED", "w")
    sandbox = LocalSandbox(tmp_path, env_names={"WANTED", "PATH", "NONE"})
    command = Command(("env",), env={"OWN": "o"})
    found = dict(line.split("=", 1) for line in sandbox.exec(command).stdout.decode().splitlines())
    assert found.pop(RUN)
    assert found == {"PATH": os.environ["PATH"], "WANTED": "w", "OWN": "o"}
    wrapped = sandbox.wrap(command)
    assert {name: value for name, value in {**os.environ, **wrapped.env}.items() if value is not None} == found


def test_the_root_has_another_name(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    sandbox = LocalSandbox(tmp_path, mount="/workspace")
    for cwd, wanted in {"/workspace": "", "/workspace/a": "/a", "a": "/a", f"{tmp_path}/a": "/a"}.items():
        assert sandbox.exec(Command(("pwd",), cwd)).stdout.decode() == f"{tmp_path}{wanted}\n"
    for cwd in ("/workspace/../x", "/workspaces", "/workspace/a/../.."):
        with pytest.raises(UsageMistake, match="leads out"):
            sandbox.exec(Command(("pwd",), cwd))


def test_what_no_system_could_start_is_refused(sandbox: LocalSandbox) -> None:
    for command in (Command(()), Command(("",)), Command(("a\0b",)), Command(("true",), env={"A=B": "x"})):
        with pytest.raises(UsageMistake):
            sandbox.exec(command)
    with pytest.raises(UsageMistake, match=r"no command can run in .*none: No such file"):
        sandbox.exec(Command(("true",), "none"))
    too_long = sandbox.exec(Command(("echo", "x" * 200_000)))
    assert (too_long.code, b"Argument list too long" in too_long.stderr) == (126, True)


def test_a_root_that_is_gone_is_an_error(tmp_path: Path) -> None:
    sandbox = LocalSandbox(tmp_path / "gone")
    with pytest.raises(SandboxError, match="gone: make it"):
        sandbox.exec(Command(("true",)))


def test_a_signal_is_exact(sandbox: LocalSandbox) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGUSR1):
        assert sandbox.exec(Command(("sh", "-c", f"kill -{int(number)} $$"))).code == -number


def test_each_command_has_a_session_of_its_own(sandbox: LocalSandbox) -> None:
    """What kills its group kills nobody else."""
    script = "import os; print(os.getsid(0) == os.getpgid(0) == os.getpid())"
    assert sandbox.exec(Command((sys.executable, "-c", script))).stdout == b"True\n"
