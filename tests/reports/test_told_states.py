"""Reports about states: what is told of a session is true, whatever became of its holder, its pid or the clock."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from held import a_stranger, command_line, kill, kill_holder, record, rewrite
from others import PROJECT, in_another_process, said
from rounds import DEADLINE, until, until_gone, until_state
from session_magics import Command, Exited, Lost, Registry, Running, SessionExists, SessionNotRunning, Unknown, durable
from session_magics.cleaning import clean
from session_magics.holder import processes

SLEEP = Command(("sleep", "1000"))

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc")


def test_pueue_311_a_record_that_names_a_living_stranger_blocks_no_start(registry: Registry) -> None:
    """After a power cut the pid on file was somebody else's, and the start was refused."""
    session = registry.start("one", SLEEP)
    kill_holder(session)
    with a_stranger() as stranger:
        tick = processes.start_tick(stranger.pid)
        rewrite(session, boot="another", holder=stranger.pid, holder_tick=tick, pid=stranger.pid, tick=tick)
        assert session.state() == Lost("reboot")
        assert registry.start("one", SLEEP).info().running
        assert stranger.poll() is None, "and nobody touches the stranger"


def test_happier_342_a_recycled_pid_never_makes_a_success_of_nothing(registry: Registry) -> None:
    """A pid of another program was taken for the daemon's, and the start ended with 0 without starting."""
    session = registry.start("one", SLEEP)
    kill_holder(session)
    with a_stranger() as stranger:
        tick = processes.start_tick(stranger.pid)
        rewrite(session, holder=stranger.pid, holder_tick=tick, pid=stranger.pid, tick=tick)
        for words in (("send", "one", "x"), ("interrupt", "one"), ("wait", "one"), ("attach", "one")):
            status, _, err = command_line(*words)
            assert status == 1 and "lost (holder killed)" in err, words
        status, _, err = command_line("start", "one", "--", "sleep", "1000")
        assert (status, err) == (0, "") and registry.get("one").info().running
        assert command_line("start", "one", "--", "sleep", "1000")[0] == 1
        assert stranger.poll() is None


def test_moby_45800_an_end_that_nobody_saw_is_not_0(registry: Registry) -> None:
    """After a hard reboot the exit code of what had run was 0."""
    session = registry.start("one", SLEEP)
    kill_holder(session)
    rewrite(session, boot="another")
    assert session.state() == Lost("reboot")
    status, out, err = command_line("wait", "one")
    assert status == 1 and out == "" and "reboot" in err
    with pytest.raises(SessionNotRunning, match="reboot"):
        session.wait(5)


def test_agent_orchestrator_4776_a_session_in_tmux_is_lost_by_a_reboot(root: Path) -> None:
    """It stayed "working" for ever, and ending it failed within."""
    if shutil.which("tmux") is None:
        pytest.skip("needs tmux")
    registry = Registry(root, backend="tmux")
    session = registry.start("one", SLEEP)
    server = psutil.Process(record(session).pid).parents()[1]
    kill(record(session).holder)
    kill(server.pid)
    rewrite(session, boot="another")
    assert session.state() == Lost("reboot")
    assert session.stop() == Lost("reboot")
    assert command_line("stop", "one")[0] == 0
    registry.remove("one")
    assert registry.infos() == []


def test_for_linux_761_an_end_while_no_front_end_lives_is_seen_later(registry: Registry, root: Path) -> None:
    """What ended while the daemon was away was shown as running for ever."""
    gate = root / "gate"
    os.mkfifo(gate)
    code = f"print(r.start('one', Command(('sh', '-c', 'read x <{gate}; exit 7'))).id)"
    assert said(in_another_process(root, code)) == registry.get("one").id
    assert registry.get("one").info().running
    gate.write_text("go\n")
    assert until_state(registry.get("one"), Exited).code == 7  # type: ignore[union-attr]
    assert command_line("wait", "one")[0] == 7


def test_overdeck_2757_a_probe_that_fails_is_no_death(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the probe was read as "dead", and what lived was killed."""
    alive_, over = registry.start("alive", SLEEP), registry.start("over", Command(("true",)))
    until_gone(over)
    for session in (alive_, over):
        os.rename(session.directory / "alive", session.directory / "kept")
        os.symlink("kept", session.directory / "alive")  # cannot be opened: links are refused
    assert {type(info.state) for info in registry.infos()} == {Unknown}
    assert clean(registry) == []
    for name in ("alive", "over"):
        with pytest.raises(SessionExists, match="unknown"):
            registry.remove(name)
    for session in (alive_, over):
        os.rename(session.directory / "kept", session.directory / "alive")
    for number in (errno.ENOLCK, errno.EACCES, errno.EIO):

        def refuse(*_: object, number: int = number) -> None:
            raise OSError(number, os.strerror(number))

        with monkeypatch.context() as patched:
            patched.setattr(durable.fcntl, "flock", refuse)
            assert [info.state for info in registry.infos()] == [Unknown(os.strerror(number))] * 2
            assert clean(registry) == []
    assert isinstance(alive_.state(), Running)
    assert clean(registry) == ["over"]


def test_psutil_2526_a_step_of_the_clock_changes_no_state(
    registry: Registry, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A creation time reckoned from the clock moved with it, and what ran was no more the same process."""
    session = registry.start("one", SLEEP)
    state, now = session.state(), time.time
    for step in (-3600, 3600):
        monkeypatch.setattr(time, "time", lambda step=step: now() + step)
        assert session.state() == state
    monkeypatch.undo()
    shifted = ["unshare", "--time", "--boottime", "3600", "--monotonic", "3600", "--fork"]
    if subprocess.run([*shifted, "true"], capture_output=True).returncode:
        pytest.skip("no time namespaces here")
    code = f"import sys; sys.path.insert(0, {PROJECT!r}); from session_magics import *; s = Registry().get('one')"
    code += "; print(s.info().running); s.stop(); print(type(s.state()).__name__)"
    env = os.environ | {"SESSION_MAGICS_HOME": str(root)}
    done = subprocess.run([*shifted, sys.executable, "-c", code], capture_output=True, text=True, env=env, timeout=30)
    assert done.stdout.split() == ["True", "Exited"], done.stderr


def test_agent_orchestrator_2089_the_shell_and_what_runs_in_it_are_told_apart(registry: Registry) -> None:
    """That the session existed was taken for the life of the program in it."""
    shell = registry.shell("main", lifetime="detached", rc=False)
    state = shell.state()
    cell = shell.cell("sh -c 'echo $$; exec sleep 1000'")
    try:
        program = int(shell.wait_for(r"^\d+\n", DEADLINE))
        assert shell.command() == "sh -c 'echo $$; exec sleep 1000'" and program != shell.info().pid
        os.kill(program, signal.SIGKILL)
        until(lambda: (cell.receive(1), cell.result)[1])
    finally:
        cell.close()
    assert cell.result.returncode == 137
    until(lambda: shell.command() is None)
    assert shell.state() == state
