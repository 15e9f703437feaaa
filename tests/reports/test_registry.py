"""Reports about registries: what is recorded stays true, whoever is killed and whatever is full."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import session_magics
from disks import fill, free
from held import a_stranger, command_line, kill, kill_holder, record, rewrite
from others import PROJECT, in_another_process, said
from rounds import DEADLINE, alive, rounds, sessions, until, until_gone, until_state
from session_magics import (
    Command,
    Exited,
    Lost,
    Registry,
    Running,
    Session,
    SessionError,
    SessionExists,
    SessionNotFound,
    SessionNotRunning,
    Unknown,
    durable,
)
from session_magics.cleaning import clean
from session_magics.holder import processes, trees, wire
from session_magics.store import records
from terminals import CLI, Terminal, attached

SLEEP = Command(("sleep", "1000"))
DEAF = "trap '' TERM HUP INT; echo ready; while :; do sleep 0.1; done"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc")


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    with sessions(root) as opened:
        yield opened


def specs(root: Path) -> dict[str, bytes]:
    """What the registry knows of each session, byte by byte."""
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.glob("sessions/*/spec.json"))}


def names(root: Path) -> list[str]:
    status, out, err = command_line("list", "--json", env={"SESSION_MAGICS_HOME": str(root)})
    assert status == 0, err
    return sorted(row["name"] for row in json.loads(out)["value"])


# ------------------------------------------------------------ what is on record


def test_pm2_2827_specs_of_the_dead_survive_every_verb_that_writes(registry: Registry, root: Path) -> None:
    """An out-of-memory kill made the next save an empty list."""
    for name in ("a", "b", "c"):
        kill_holder(registry.start(name, SLEEP))
    before = specs(root)
    assert names(root) == ["a", "b", "c"] and specs(root) == before
    over = registry.start("d", Command(("true",)))
    until_gone(over)
    assert clean(registry) == ["d"]
    registry.stop_all()
    assert specs(root) == before
    assert {info.name: info.state for info in registry.infos()} == dict.fromkeys("abc", Lost("holder killed"))


def test_pm2_2971_a_full_disk_costs_no_record(disk: Path) -> None:
    """A save on a full disk emptied the list."""
    with sessions(disk) as registry:
        running = [registry.start(name, SLEEP) for name in ("a", "b")]
        before = specs(disk)
        fill(disk)
        with pytest.raises(SessionError, match=r"(?i)no space left"):
            registry.start("c", SLEEP)
        assert isinstance(running[0].stop(), Exited)
        assert [type(info.state) for info in registry.infos()] == [Exited, Running]
        assert specs(disk) == before
        free(disk)
        assert registry.start("c", Command(("true",))).wait(DEADLINE) == 0


def test_pm2_1849_two_homes_are_two_registries_that_never_write_to_one_another(tmp_path: Path) -> None:
    """Under sudo another home was taken, and the list of one blanked by the other."""
    homes = []
    for name in ("mine", "roots"):
        home = Path(tmp_path, name)
        home.mkdir(mode=0o700)
        homes.append({"HOME": str(home), "SESSION_MAGICS_HOME": "", "XDG_STATE_HOME": ""})
    mine, other = homes
    try:
        assert command_line("start", "web", "--", "sleep", "1000", env=mine)[0] == 0
        files = sorted(Path(mine["HOME"]).rglob("*"))
        _, out, _ = command_line("list", "--json", env=other)
        assert json.loads(out)["value"] == []
        assert command_line("info", "web", env=other)[0] == 1
        assert command_line("start", "web", "--", "sleep", "1000", env=other)[0] == 0
        assert sorted(Path(mine["HOME"]).rglob("*")) == files
        for env in homes:
            assert env["HOME"] in command_line("info", "web", env=env)[1], "it says where the record is"
        assert command_line("stop", "web", "--now", env=other)[0] == 0
        assert "running" in command_line("info", "web", env=mine)[1]
    finally:
        for env in homes:
            command_line("stop", "web", "--now", env=env)


@pytest.mark.parametrize("megabytes", [4, 9, 13])
def test_pm2_1035_a_start_without_memory_fails_alone(registry: Registry, root: Path, megabytes: int) -> None:
    """A child that could not be made for want of memory took the saved list along."""
    registry.start("a", SLEEP)
    before, state = specs(root), registry.get("a").state()
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({megabytes} << 20,) * 2)\n"
        "try: r.start('b', Command(('true',))); print('started')\n"
        "except (SessionError, OSError, MemoryError) as error: print('refused:', str(error).count('\\n'))"
    )
    assert said(in_another_process(root, code)) == "refused: 0"
    after = specs(root)
    assert {path: after[path] for path in before} == before
    assert registry.get("a").state() == state
    assert registry.start("b", Command(("true",))).wait(DEADLINE) == 0


def test_claude_squad_a_bad_record_and_killed_writers_hide_no_other(registry: Registry, root: Path) -> None:
    """One list for all, written in place without a lock: a torn or odd record made all of it unreadable."""
    for number in range(3):
        registry.start(f"s{number}", SLEEP)
    code = "print('go', flush=True)\nn = 0\nwhile True:\n r.start('NAME', Command(('true',), cwd='/')).wait(20)"
    draw = random.Random(1)
    for number in range(rounds(4, 40)):
        writers = [in_another_process(root, code.replace("NAME", f"w{number}{side}")) for side in "ab"]
        for writer in writers:
            assert writer.stdout is not None and writer.stdout.readline() == "go\n"
        time.sleep(draw.uniform(0, 0.15))  # the moment is what the test is about
        for writer in writers:
            writer.kill()
            writer.communicate()
    assert all(json.loads(data)["name"] for data in specs(root).values())
    bad = registry.get("s1").directory / "spec.json"
    bad.write_bytes(b'{"schema": 1, "name": ["s1"]')
    seen = {info.name: info.state for info in registry.infos()}
    assert isinstance(seen["s1"], Unknown) and isinstance(seen["s0"], Running) and isinstance(seen["s2"], Running)
    assert bad.read_bytes().endswith(b'["s1"]'), "left as it is found"
    assert bad.stat().st_mode & 0o777 == 0o600
    registry.get("s1").stop(now=True)


# ------------------------------------------------------------ ends of the past


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


# ------------------------------------------------------------ at the same time


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


def test_tmux_2626_a_killed_holder_takes_one_of_ten_sessions(registry: Registry) -> None:
    """The one server of all was killed for its memory, and all sessions with it."""
    ten = [registry.start(f"s{number}", SLEEP) for number in range(10)]
    before = [session.state() for session in ten]
    kill_holder(ten[4])
    assert ten[4].state() == Lost("holder killed")
    others = [number for number in range(10) if number != 4]
    assert [ten[number].state() for number in others] == [before[number] for number in others]
    for number in others:
        ten[number].resize(30, 90)  # its holder answers


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


# ------------------------------------------------------------ ends


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


# ------------------------------------------------------------ versions, environment


@pytest.fixture
def older(registry: Registry, tmp_path: Path) -> Session:
    """A session whose holder speaks the protocol before ours and has told of no features."""
    package = tmp_path / "session_magics"
    ignored = shutil.ignore_patterns("static", "labextension", "frontend", "nbconvert", "__pycache__")
    shutil.copytree(Path(session_magics.__file__).parent, package, ignore=ignored)
    ours = (package / "holder" / "wire.py").read_text()
    begin = ours.index("VERSION = ")
    past = f"VERSION = {wire.VERSION - 1}\nFEATURES = ()\n"
    (package / "holder" / "wire.py").write_text(ours[:begin] + past + ours[ours.index("\nHELLO") :])
    code = "r.start('old', Command(('sh', '-c', 'echo up; while read word; do echo got $word; done')))"
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from session_magics import *; r = Registry(); {code}"
    env = os.environ | {"SESSION_MAGICS_HOME": str(registry.store.root)}
    subprocess.run([sys.executable, "-c", code], check=True, env=env, cwd=tmp_path)
    session = registry.get("old")
    session.wait_for("up", DEADLINE)
    return session


def test_shpool_377_a_holder_of_the_protocol_before_is_spoken_to(older: Session) -> None:
    """After an update the new client could not speak to the old daemon, and all in it was lost."""
    assert record(older).protocol == wire.VERSION - 1
    with attached("old") as terminal:
        terminal.told("detaches")
        terminal.until("up")
        terminal.type("hello\r")
        terminal.until("got hello")
        terminal.type(b"\x1c")
        assert terminal.wait() == 0
    assert command_line("tail", "old")[1].endswith("got hello\n")
    assert command_line("stop", "old")[0] == 0 and isinstance(older.state(), Exited)


def test_pueue_562_json_is_json_whatever_the_versions(registry: Registry, older: Session) -> None:
    """A warning about versions came before the JSON."""
    newer = registry.start("newer", Command(("true",)))
    newer.wait(DEADLINE)
    spec = json.loads((newer.directory / "spec.json").read_text())
    (newer.directory / "spec.json").write_text(json.dumps(spec | {"schema": records.SCHEMA + 1}))
    status, out, _ = command_line("list", "--json")
    rows = {row["name"]: row["state"] for row in json.loads(out)["value"]}
    assert status == 0 and set(rows) == {"old", "newer"}
    older.stop(now=True)


def test_pueue_297_what_is_taken_out_of_the_environment_is_not_in_the_holders_way(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon's own environment came through to what it started."""
    monkeypatch.setenv("SECRET", "of-the-starter")
    session = registry.start("one", Command(("sleep", "1000"), env={"SECRET": None}))
    assert b"of-the-starter" in Path(f"/proc/{record(session).holder}/environ").read_bytes()
    for _ in range(2):
        environment = Path(f"/proc/{record(session).pid}/environ").read_bytes()
        assert b"SECRET" not in environment and trees.HOLDER_MARK not in environment
        registry.restart("one")


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
