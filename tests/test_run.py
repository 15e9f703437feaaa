"""``run_cell``: shell cells from Python, with the same outcomes as in a notebook."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rounds import until
from session_magics import CellCommandError, Command, Registry, Session, SessionBusy, UsageMistake, run_cell
from session_magics.run import run_hidden
from session_magics.shell import Cell
from session_magics.testing import FakeBackend, FakeTerminal


@pytest.fixture
def shell(root: Path) -> Iterator[Session]:
    session = Registry(root).shell("main", rc=False)
    yield session
    session.stop(now=True)


def test_state_carries_over_and_the_output_is_a_slice_of_the_log(shell: Session, tmp_path: Path) -> None:
    run_cell(shell, f"cd {tmp_path}; greet() {{ echo hello $1; }}")
    began = time.monotonic()
    result = run_cell(shell, "greet you; pwd")
    assert shell.output(result.begin, result.end) == f"hello you\n{tmp_path}\n".encode()
    assert (result.returncode, result.state, result.cwd) == (0, "done", str(tmp_path))
    assert 0 < result.duration < time.monotonic() - began and result.exact


def test_a_failing_command_raises_what_subprocess_users_know(shell: Session) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run_cell(shell, "echo before; (exit 3)")
    error = caught.value
    assert isinstance(error, CellCommandError)
    assert (error.returncode, error.cmd, error.output) == (3, "echo before; (exit 3)", "before\n")
    assert "\n" not in str(error) and error.result is not None
    assert run_cell(shell, "(exit 3)", check=False).returncode == 3


def test_a_second_command_is_busy_and_the_first_goes_on(shell: Session) -> None:
    cell = shell.cell("sleep 60")
    try:
        until(lambda: shell.command() is not None)
        with pytest.raises(SessionBusy, match="sleep 60"):
            run_cell(shell, "echo no")
        cell.interrupt()
        while cell.result is None:
            cell.receive(5)
        assert cell.result.returncode == 130
    finally:
        cell.close()
    assert run_cell(shell, "echo yes").returncode == 0


def test_a_time_limit_interrupts_and_says_so(shell: Session) -> None:
    began = time.monotonic()
    with pytest.raises(CellCommandError, match=r"timed out after 0\.3 s"):
        run_cell(shell, "sleep 60", timeout=0.3)
    assert time.monotonic() - began < 30, "the command is not waited for"
    assert run_cell(shell, "echo alive").returncode == 0


def test_a_question_that_nobody_can_answer_ends_and_is_named(shell: Session) -> None:
    with pytest.raises(CellCommandError, match="asked for input"):
        run_cell(shell, "read -r name")


def test_a_shell_that_exits_comes_back_with_a_notice(shell: Session) -> None:
    run_cell(shell, "cd /; export KEPT=yes; gone() { :; }")
    with pytest.raises(CellCommandError) as caught:
        run_cell(shell, "exit 5")
    assert caught.value.returncode == 5 and caught.value.result is not None
    assert caught.value.result.state == "exited" and "restarted" in caught.value.result.restarted
    result = run_cell(shell, "echo $KEPT $PWD; type gone >/dev/null 2>&1 || echo lost")
    assert shell.output(result.begin, result.end) == b"yes /\nlost\n"


def test_an_interrupt_from_a_thread_ends_a_cell(shell: Session) -> None:
    def interrupt() -> None:
        until(lambda: shell.command() is not None)
        shell.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    result = run_cell(shell, "sleep 60", check=False)
    thread.join()
    assert result.returncode == 130


def test_ctrl_c_in_the_main_thread_is_a_keyboard_interrupt_once_the_command_has_ended(shell: Session) -> None:
    def press() -> None:
        until(lambda: shell.command() is not None)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        run_cell(shell, "sleep 60")
    thread.join()
    assert run_cell(shell, "echo alive").returncode == 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_before_the_command_is_waited_for_ends_it_too(shell: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    start = shell.cell

    def start_and_press(text: str) -> Cell:
        cell = start(text)
        os.kill(os.getpid(), signal.SIGINT)
        return cell

    monkeypatch.setattr(shell, "cell", start_and_press)
    with pytest.raises(KeyboardInterrupt):
        run_cell(shell, "sleep 60")
    assert shell.command() is None


def test_a_killed_holder_makes_the_outcome_unknown_and_never_zero(root: Path) -> None:
    registry = Registry(root)
    session = registry.shell("main", rc=False)
    run = registry.store.run(session.id)
    assert run is not None

    def kill() -> None:
        until(lambda: session.command() is not None)
        os.kill(run.holder, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(CellCommandError, match="unknown") as caught:
        run_cell(session, "sleep 60")
    thread.join()
    assert caught.value.returncode != 0
    session.stop(now=True)


def test_a_program_takes_no_cells(root: Path) -> None:
    registry = Registry(root)
    session = registry.start("one", Command(("sleep", "60")))
    with pytest.raises(UsageMistake, match="runs sleep and no shell of ours"):
        run_cell(session, "echo no")
    session.stop(now=True)


def test_a_hidden_command_leaves_no_trace(shell: Session) -> None:
    run_cell(shell, "(exit 4)", check=False)
    run_hidden(shell, "true")
    result = run_cell(shell, "echo $?")
    assert shell.output(result.begin, result.end) == b"4\n"


def test_cells_run_over_the_fake_backend_too(root: Path) -> None:
    def cells(terminal: FakeTerminal, text: str) -> int:
        terminal.write(f"ran {text}\n")
        return len(text)

    with FakeBackend(cells=cells) as backend:
        session = Registry(root, backend=backend).shell("main")
        with pytest.raises(CellCommandError) as caught:
            run_cell(session, "abc")
        assert (caught.value.returncode, caught.value.output) == (3, "ran abc\n")
