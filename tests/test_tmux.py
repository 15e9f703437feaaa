"""Sessions whose terminal tmux has: how server, holder and program end, and what is left of the others.

Here and in the other modules of tmux is what could only go wrong there. All else is in the conformance checks.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import panes
from held import kill
from panes import NEEDED, PYTHON, STUBBORN, ask, gone, plain, run, server_of
from rounds import DEADLINE as LIMIT
from rounds import until, until_state
from session_magics import Command, Exited, Lost, Registry, Running, StartFailed
from session_magics.backends import Start
from session_magics.backends.choice import abandoned
from session_magics.backends.native import NativeBackend
from session_magics.backends.tmux import TmuxBackend
from session_magics.holder import gate, trees
from session_magics.store.records import read_spec

pytestmark = NEEDED
registry = panes.registry


def cmdline(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


def test_a_killed_server_loses_one_session_and_leaves_nothing(registry: Registry) -> None:
    """tmux/tmux#2626: the state is never a wrong one, and the others live."""
    other = registry.start("other", Command(("sleep", "1000")))
    session = registry.start("one", Command((*PYTHON, STUBBORN)))
    session.wait_for("ready", LIMIT)
    holder, program = map(psutil.Process, run(session))
    server_of(session).kill()
    gone(holder, program)
    assert session.state() == Lost("its tmux server has ended")
    assert isinstance(other.state(), Running)
    assert not abandoned(session.directory)


def test_a_program_that_the_server_took_along_has_no_code(registry: Registry) -> None:
    session = registry.start("one", Command(("sleep", "1000")))
    assert ask(session, "kill-server") == ""
    assert until_state(session, Lost) == Lost("its tmux server has ended")
    with pytest.raises(Exception, match="tmux server"):
        session.wait(LIMIT)


@pytest.mark.parametrize("end", ["stop", "stop --all", "start", "restart", "remove"])
def test_a_program_that_outlives_its_holder_is_lost_and_can_be_ended(registry: Registry, end: str) -> None:
    session = registry.start("one", Command((*PYTHON, STUBBORN)))
    session.wait_for("ready", LIMIT)
    program, server = psutil.Process(run(session)[1]), server_of(session)
    kill(run(session)[0])
    assert session.state() == Lost("holder killed")
    assert program.is_running() and server.is_running(), "tmux holds it still"
    if end == "start":
        assert registry.start("one", Command(("sleep", "1000"))).info().running
    elif end == "restart":
        again = registry.restart("one").info()
        assert (again.running, again.generation, again.id) == (True, 2, session.id)
    elif end == "remove":
        registry.remove("one")
    elif end == "stop":
        session.stop()
    else:
        assert registry.stop_all() == ["one"]
        assert registry.stop_all() == [], "told once"
    gone(program, server)


def test_force_ends_what_has_wiped_its_environment(registry: Registry) -> None:
    session = registry.start("one", Command(("env", "-i", shutil.which("setsid") or "", "-w", *PYTHON, STUBBORN)))
    session.wait_for("ready", LIMIT)
    tree = [psutil.Process(run(session)[1]), *psutil.Process(run(session)[1]).children(recursive=True)]
    assert len(tree) == 2
    kill(run(session)[0])
    assert TmuxBackend().force(session.directory, session.id) == ()
    gone(*tree)


def test_a_holder_that_hangs_can_be_done_without(registry: Registry) -> None:
    session = registry.start("one", Command((*PYTHON, STUBBORN)))
    session.wait_for("ready", LIMIT)
    holder, program = map(psutil.Process, run(session))
    holder.suspend()
    session.stop(now=True)
    assert not program.is_running() or program.status() == psutil.STATUS_ZOMBIE
    holder.resume()
    gone(holder)
    state = session.state()
    assert isinstance(state, Exited) and state.signal in (signal.SIGTERM, signal.SIGKILL)


def test_a_stop_leaves_nothing_of_the_tree_below_the_pane(registry: Registry) -> None:
    code = "setsid sleep 1000 & (sleep 1000 &) ; trap '' TERM; echo ready; sleep 1000; sleep 1000"
    session = registry.start("tree", Command(("sh", "-c", code)))
    session.wait_for("ready", LIMIT)
    holder, server = psutil.Process(run(session)[0]), server_of(session)
    pids = list[int]()

    def grown() -> bool:
        pids[:] = trees.carrying(f"SESSION_MAGICS_SESSION={session.id}".encode())
        return len(pids) == 4

    until(grown, what=pids)
    tree = [psutil.Process(pid) for pid in pids]
    session.stop(0.2)
    gone(*tree, holder, server)
    assert sorted(os.listdir(session.directory)) == sorted(
        ["alive", "exit", "log.00000000000000000000", "log.idx", "run.json", "spec.json"]
    )


def test_a_background_child_does_not_delay_the_end(registry: Registry) -> None:
    session = registry.start("one", Command(("sh", "-c", "trap '' HUP; sleep 1000 & exit 3")))
    state = until_state(session, Exited)
    assert isinstance(state, Exited) and (state.code, state.background) == (3, True)
    session.stop(now=True)
    assert session.state() == Exited(3, None, state.at)


def test_a_restart_by_policy_has_a_new_server_and_goes_on_with_the_log(registry: Registry) -> None:
    session = registry.start("again", Command(("sh", "-c", "echo run; sleep 0.1; exit 1")), restart="on-failure")
    until(lambda: session.info().generation >= 2)
    session.wait_for(r"run\s+run", LIMIT)
    session.stop()
    until(lambda: not abandoned(session.directory))


def test_a_session_of_a_kernel_ends_with_it(root: Path) -> None:
    code = """
import sys
from session_magics import Command, Registry
session = Registry(backend="tmux").start("mine", Command(("sleep", "1000")), lifetime="kernel")
print(session._store.run(session.id).pid, flush=True)
sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=-1, stdout=-1, cwd=Path(__file__).parents[1]) as kernel:
        assert kernel.stdin and kernel.stdout
        program = psutil.Process(int(kernel.stdout.readline()))
        server = program.parents()[1]
        kernel.kill()
    gone(program, server)
    until(lambda: not list((root / "sessions").iterdir()))


def test_a_server_whose_holder_was_killed_while_it_started_goes(root: Path) -> None:
    words = [sys.executable, "-I", "-S", gate.__file__, "program"]
    argv = [
        "tmux",
        "-S",
        str(root / "tmux"),
        "-f",
        os.devnull,
        "start-server",
        ";",
        "set",
        "-g",
        "remain-on-exit",
        "on",
    ]
    subprocess.run([*argv, ";", "new-session", "-d", "--", *words], check=True, cwd=root, env=plain())
    until(lambda: not [one for one in psutil.process_iter() if str(root / "tmux") in " ".join(cmdline(one))])


def test_a_program_whose_holder_was_killed_while_it_started_is_ended(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = Registry(root, backend="tmux")
    session = registry.start("one", Command((*PYTHON, STUBBORN)))
    session.wait_for("ready", LIMIT)
    program, server = psutil.Process(run(session)[1]), server_of(session)
    kill(run(session)[0])

    def fail(*_: object) -> None:
        raise StartFailed("one", "the holder ended at once")

    monkeypatch.setattr(NativeBackend, "start", fail)
    with pytest.raises(StartFailed):
        TmuxBackend().start(Start(read_spec(str(session.directory)), session.directory, {}))
    gone(program, server)


def test_a_session_that_was_started_in_another_is_not_ended_with_it(root: Path, registry: Registry) -> None:
    code = """
from session_magics import Command, Registry
Registry(backend="tmux").start("inner", Command(("sleep", "1000")))
print("started", flush=True)
import time
time.sleep(1000)
"""
    place = str(Path(__file__).parents[1])
    outer = registry.start("outer", Command((sys.executable, "-c", code), cwd=place))
    outer.wait_for("started", 2 * LIMIT)
    inner = registry.get("inner")
    program = psutil.Process(run(inner)[1])
    kill(run(inner)[0])  # its server is now below the holder of the outer one
    outer.stop(now=True)
    assert program.is_running() and program.status() != psutil.STATUS_ZOMBIE
    inner.stop()
    gone(program)


def test_a_pane_whose_own_process_is_killed_is_lost(registry: Registry) -> None:
    session = registry.start("one", Command((*PYTHON, STUBBORN)))
    session.wait_for("ready", LIMIT)
    program, server = psutil.Process(run(session)[1]), server_of(session)
    kill(program.ppid())
    assert until_state(session, Lost) == Lost("what waited for its program in tmux was killed")
    gone(program, server)
