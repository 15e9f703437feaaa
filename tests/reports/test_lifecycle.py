"""Reports about starts, stops and restarts: each is whole, has one outcome, and touches nobody else."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from held import kill_holder, record
from others import PROJECT, in_another_process, said
from rounds import DEADLINE, alive, rounds, until, until_gone
from session_magics import Command, Exited, Registry, SessionExists, SessionNotFound, SessionNotRunning
from session_magics.holder import processes, wire
from terminals import CLI, Terminal

SLEEP = Command(("sleep", "1000"))
DEAF = "trap '' TERM HUP INT; echo ready; while :; do sleep 0.1; done"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc")


# ------------------------------------------------------------ starts


def test_lockfile_4_of_many_starters_on_a_stale_session_one_wins(registry: Registry, root: Path) -> None:
    """Two of those who broke a stale lock at once both had it."""
    code = (
        "while input():\n"
        "    try: print(r.start('one', Command(('sleep', '1000'))).id, flush=True)\n"
        "    except SessionExists: print('exists', flush=True)\n"
    )
    starters = [in_another_process(root, code) for _ in range(8)]
    for _ in range(rounds(3, 500)):
        kill_holder(registry.start("one", SLEEP))
        for starter in starters:
            assert starter.stdin is not None
            starter.stdin.write("go\n")
            starter.stdin.flush()
        words = [starter.stdout.readline().strip() for starter in starters if starter.stdout is not None]
        assert [word for word in words if word != "exists"] == [registry.get("one").id]
        assert os.listdir(root / "sessions") == [registry.get("one").id]
        registry.remove("one", force=True)
    for starter in starters:
        starter.communicate("\n", timeout=DEADLINE)


def test_zmx_169_what_was_stopped_starts_again_at_once(registry: Registry) -> None:
    """For half a second after a kill the same name could not be started."""
    for _ in range(rounds(10, 100)):
        assert registry.start("one", SLEEP).info().running
        registry.get("one").stop()


def test_supervisor_26_many_sessions_take_no_descriptors_of_the_starter(registry: Registry, root: Path) -> None:
    """With one descriptor or more for each program the limit was reached at some 250 of them."""
    limit, count = rounds(20, 256), rounds(24, 300)
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))\n"
        f"for n in range({count}): r.start(f's{{n}}', Command(('sleep', '1000')))\n"
        "print(sum(info.running for info in r.infos()))"
    )
    assert said(in_another_process(root, code)) == str(count)
    registry.stop_all(now=True)


# ------------------------------------------------------------ stops and restarts


def test_supervisor_1101_a_stop_reaches_the_last_of_a_chain_of_shells(registry: Registry) -> None:
    """Of npm, its shell and node the first alone was ended."""
    session = registry.start("npm", Command(("sh", "-c", 'sh -c "sleep 999 & wait" & wait')))
    leader = psutil.Process(record(session).pid)
    until(lambda: len(leader.children(recursive=True)) == 2)
    tree = {one.pid: processes.start_tick(one.pid) for one in (leader, *leader.children(recursive=True))}
    session.stop()
    assert not [pid for pid, tick in tree.items() if alive(pid, tick)]


def test_process_compose_214_who_does_not_obey_is_named_and_ends_after_the_grace(registry: Registry) -> None:
    """A stop waited for ever for a program that ignores it, and did not say for which."""
    registry.start("deaf", Command(("sh", "-c", DEAF))).wait_for("ready", DEADLINE)
    registry.start("good", SLEEP)
    with Terminal((*CLI, "stop", "deaf", "good", "--grace", "3")) as terminal:
        assert terminal.wait() == 0
        terminal.until("deaf")
    assert b"deaf" in terminal.raw.partition(b"\n")[0], "while it waited"
    assert b"good" not in terminal.raw.partition(b"\n")[0].rpartition(b"\x1b[K")[2]
    assert not registry.infos()[0].running and not registry.infos()[1].running


def test_circus_1095_a_program_that_never_printed_is_stopped_as_soon(registry: Registry) -> None:
    """An end waited for the first output of a program that had none."""
    session = registry.start("silent", SLEEP)
    began = time.monotonic()
    assert isinstance(session.stop(DEADLINE), Exited)
    assert time.monotonic() - began < DEADLINE / 2 and session.output() == b""


KILL_REUSED = """
import os, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from session_magics import Command, Registry
r = Registry()
session = r.start("one", Command(("sh", "-c", "trap '' HUP; setsid sleep 1000 & exit 3")))
assert session.wait(20) == 3 and session.state().background
leader = r.store.run(session.id).pid
for _ in range(100):
    open("/proc/sys/kernel/ns_last_pid", "w").write(str(leader - 1))
    stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    if stranger.pid == leader:
        break
    stranger.kill(); stranger.wait()
else:
    sys.exit("the pid did not come again")
session.stop()
assert not session.state().background
print("spared" if stranger.poll() is None else "hit")
"""


def test_kcap_cli_469_a_group_that_has_the_leaders_old_number_is_not_hit(root: Path) -> None:
    """Once the leader was gone its number could be another group's, and that was signalled."""
    apart = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("pid namespaces need root")
    env = os.environ | {"SESSION_MAGICS_HOME": str(root)}
    words = [*apart, sys.executable, "-c", KILL_REUSED, PROJECT]
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=40)
    assert done.stdout == "spared\n", done.stderr


def test_supervisor_600_a_restart_whose_caller_is_killed_makes_no_second_copy(registry: Registry, root: Path) -> None:
    """A restart that was cut off left two copies of each program."""
    script = 'while read p; do kill -0 $p 2>/dev/null && echo $p >>"$DIR/wrong"; done <"$DIR/pids"; '
    script += f'echo $$ >>"$DIR/pids"; {DEAF}'
    pids = root / "pids"
    pids.touch()
    session = registry.start("one", Command(("sh", "-c", script), env={"DIR": str(root)}))
    draw = random.Random(2)
    for _ in range(rounds(4, 40)):
        caller = in_another_process(root, "print('go', flush=True); r.restart('one', 0.3)")
        assert caller.stdout is not None and caller.stdout.readline() == "go\n"
        time.sleep(draw.uniform(0, 0.4))  # the moment is what the test is about
        caller.kill()
        caller.communicate()
        registry.restart("one", 0.3)
    assert not (root / "wrong").exists(), "the old one was gone before each new one began"
    # Not as many as there were starts: one that was followed at once by another may not have come to tell.
    until(lambda: str(session.info().pid) in pids.read_text().split(), what=pids.read_text)
    living = [int(pid) for pid in pids.read_text().split() if psutil.pid_exists(int(pid))]
    assert living == [session.info().pid]


def test_supervisor_600_a_stop_that_joins_a_restart_has_the_last_word(registry: Registry) -> None:
    """The stop returned, and the program that the restart had started ran on."""
    session = registry.start("one", Command(("sh", "-c", DEAF)))
    session.wait_for("ready", DEADLINE)
    with session.link() as restarting:
        restarting.watch(0, 0)
        ticket = restarting._post(wire.RESTART, b"0.5")  # type: ignore[attr-defined]
        assert isinstance(session.stop(0.5), Exited)
        assert session.info().generation == 2 and not session.info().running
        restarting.receive(0)
        assert restarting._answers[ticket][0] == wire.OK  # type: ignore[attr-defined]


def test_pueue_119_stop_and_remove_in_the_same_instant_have_one_outcome(registry: Registry) -> None:
    """The two together broke a thread of the daemon, which then answered by halves."""
    for number in range(rounds(12, 200)):
        session = registry.start("one", SLEEP)
        run, wrong = record(session), []
        barrier = threading.Barrier(2)

        def act(call: object, barrier: threading.Barrier = barrier, wrong: list[Exception] = wrong) -> None:
            barrier.wait()
            try:
                call()  # type: ignore[operator]
            except (SessionExists, SessionNotRunning, SessionNotFound):
                pass  # the other was faster
            except Exception as error:
                wrong.append(error)

        calls = (
            lambda s=session: s.stop(now=True),
            lambda number=number: registry.remove("one", force=bool(number % 2)),
        )
        threads = [threading.Thread(target=act, args=(call,)) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong and not alive(run.pid, run.tick)
        if registry.find("one") is not None:
            assert isinstance(until_gone(session), Exited)
            registry.remove("one")
        assert not session.directory.exists() and registry.infos() == []
