"""Lines 1 to 6: whatever is killed, what is detached goes on, and what is told of the rest is the truth."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pwd
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

import leaks
from blows import Own, Server, new_kernel, reconnect, run, strike
from held import a_stranger
from others import in_another_process
from rounds import DEADLINE, alive, rounds, until
from session_magics import Command, Exited, FailedToStart, Lost, Registry, Running, Session
from session_magics.holder.processes import start_tick
from session_magics.holder.trees import carrying
from session_magics.model import State
from session_magics.outlook import outlook

# Figures for a machine that does nothing else.
GONE_WITHIN = rounds(DEADLINE, 3.0)
STRAY_WITHIN = rounds(DEADLINE, 5.0)
LOST_WITHIN = rounds(DEADLINE, 1.0)
DEADLY = ("restart", "shutdown", "kill the pid", "kill the group")
BACKENDS = ("native", "tmux")

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc"),
    pytest.mark.timeout(120),
]


@pytest.mark.kernel
@pytest.mark.parametrize("blow", DEADLY)
def test_line_01_jupyter_client_104_detached_sessions_outlive_their_kernel(
    root: Path, registry: Registry, blow: str
) -> None:
    for _ in range(rounds(1, 50)):
        with new_kernel(root) as kernel:
            servers = [Server(kernel, registry, backend) for backend in BACKENDS]
            own = Own(kernel, registry)
            strike(kernel, blow)
            struck = time.monotonic()
            for server in servers:
                server.goes_on()
            until(lambda: not own.left(), max(0.0, struck + GONE_WITHIN - time.monotonic()), what=own.tell)  # noqa: B023
            until(lambda: not own.directory.exists(), GONE_WITHIN)  # noqa: B023
            assert [info.name for info in registry.infos()] == ["native-server", "tmux-server"]
            if blow == "restart":
                reconnect(kernel)
                assert run(kernel, "%%sh_session\necho ${LEFT-fresh}") == "fresh\n"
                assert run(kernel, "%session list").count("running") == 3
        for server in servers:
            server.goes_on()
            server.session.stop(now=True)


@pytest.mark.kernel
def test_line_01_an_interrupt_of_the_kernel_reaches_no_session(root: Path, registry: Registry) -> None:
    with new_kernel(root) as kernel:
        servers = [Server(kernel, registry, backend) for backend in BACKENDS]
        own = Own(kernel, registry)
        for _ in range(rounds(3, 50)):
            strike(kernel, "interrupt")
            for server in servers:
                server.goes_on()
            assert run(kernel, "%%sh_session\necho $$").strip() in map(str, own.started)
            assert own.left() == list(own.started)


# ---------------------------------------------------------------- a start cut off

STARTER = """
print("go", flush=True)
r.start({name!r}, Command(("sleep", "1000")), lifetime={lifetime!r}, backend={backend!r})
sys.stdin.read()
"""
BATCH = 25  # sessions at a time
# A start takes 40 to 100 ms from the word on; half of the kills fall within.
MOMENTS = (0.06, 0.2)


@pytest.mark.parametrize("lifetime", ["detached", "kernel"])
def test_line_02_a_start_that_is_cut_off_leaves_a_free_name_or_the_truth(registry: Registry, lifetime: str) -> None:
    draw, left = random.Random(2), rounds(12, 250)
    while left > 0:
        names = [f"s{number}" for number in range(min(left, BATCH))]
        left -= BATCH
        for number, name in enumerate(names):
            code = STARTER.format(name=name, lifetime=lifetime, backend=BACKENDS[number % 5 == 0])
            with in_another_process(registry.store.root, code) as starter:
                assert starter.stdout is not None and starter.stdout.readline() == "go\n"
                time.sleep(draw.uniform(0, draw.choice(MOMENTS)))  # the race itself
                starter.kill()
        truths = (Running, FailedToStart) if lifetime == "detached" else (FailedToStart,)
        until(lambda: all(isinstance(info.state, truths) for info in registry.infos()), what=registry.infos)  # noqa: B023
        # A program without a holder, or beside the one on record, would be a stray.
        until(lambda: strays(registry) == [], STRAY_WITHIN, what=lambda: strays(registry))
        for info in registry.infos():
            registry.remove(info.name, force=True)
        until(lambda: not leaks.processes_of(registry.store.root), STRAY_WITHIN)
        for name in names:
            assert registry.start(name, Command(("true",))).wait(DEADLINE) == 0
        for name in names:
            registry.get(name).stop()
            registry.remove(name)


def strays(registry: Registry) -> list[int]:
    """The processes of sessions that none of them says to run."""
    told = {info.pid for info in registry.infos()}
    cookies = (f"SESSION_MAGICS_SESSION={id}".encode() for id in os.listdir(registry.store.root / "sessions"))
    return [pid for cookie in cookies for pid in carrying(cookie) if pid not in told]


# --------------------------------------------------------------- a holder killed

# Says line after line, each other than all before, and when it is asked to end, how many that were.
TALKER = """
import hashlib, signal, sys, time
over = []
signal.signal(signal.SIGTERM, lambda *_: over.append(1))
count = 0
while not over:
    print(hashlib.sha256(b"%s %d" % (sys.argv[1].encode(), count)).hexdigest(), flush=True)
    count += 1
    time.sleep(0.003)
with open(sys.argv[2], "w") as file:
    file.write(str(count))
"""
HELD = 10


def said_so_far(name: str, count: int) -> bytes:
    return b"".join(hashlib.sha256(f"{name} {n}".encode()).hexdigest().encode() + b"\r\n" for n in range(count))


def test_line_03_a_killed_holder_costs_one_session(registry: Registry, root: Path) -> None:
    def start(name: str) -> Session:
        argv = (sys.executable, "-I", "-S", "-c", TALKER, name, str(root / f"{name}.count"))
        session = registry.start(name, Command(argv), backend=BACKENDS[name in ("s0", "s1")])
        session.wait_for("[0-9a-f]{64}", DEADLINE)
        return session

    draw, held = random.Random(3), {f"s{number}": start(f"s{number}") for number in range(HELD)}
    for _ in range(rounds(5, 100)):
        before = {info.name: info.state for info in registry.infos()}
        lengths = {name: session.info().log_bytes for name, session in held.items()}
        victim = draw.choice(sorted(held))
        record = registry.store.run(held[victim].id)
        assert record
        os.kill(record.holder, signal.SIGKILL)
        until(lambda: isinstance(held[victim].state(), Lost), LOST_WITHIN, what=held[victim].state)  # noqa: B023
        after = {info.name: info.state for info in registry.infos()}
        assert after == before | {victim: Lost("holder killed")}
        others = [name for name in held if name != victim]
        until(lambda: all(held[name].info().log_bytes > lengths[name] for name in others))  # noqa: B023
        held[victim].stop(now=True)
        held[victim] = start(victim)
    for name, session in held.items():
        assert isinstance(session.stop(DEADLINE), Exited)  # it has to tell how many
        count = int((root / f"{name}.count").read_text())
        assert hashlib.sha256(session.output()).digest() == hashlib.sha256(said_so_far(name, count)).digest()


def test_line_04_a_holder_that_is_killed_while_its_program_ends_tells_no_lie(registry: Registry) -> None:
    draw, count = random.Random(4), rounds(32, 500)
    seen = set[type[State]]()
    moment = dict.fromkeys(BACKENDS, 0.01)  # seconds around which the next kill falls: it seeks the end of the program
    for number in range(count):
        code, backend = draw.randrange(1, 256), BACKENDS[number % 4 == 0]
        program = Command(("sh", "-c", f"read line; exit {code}"))
        session = registry.start("doomed", program, restart=draw.choice(["no", "on-failure"]), backend=backend)
        record = registry.store.run(session.id)
        assert record
        session.send("\r")
        time.sleep(draw.uniform(0, 2 * moment[backend]))  # the race itself
        if alive(record.holder, record.holder_tick):
            os.kill(record.holder, signal.SIGKILL)
        until(lambda: not alive(record.holder, record.holder_tick))  # noqa: B023
        state = session.state()
        assert isinstance(state, Lost) or (isinstance(state, Exited) and state.code == code), state
        seen.add(type(state))
        moment[backend] *= 1.5 if isinstance(state, Lost) else 0.7
    assert seen == {Lost, Exited}, "the kills fell on one side alone"


@pytest.mark.parametrize("how", ["stop", "stop all", "start", "remove"])
def test_line_04_what_an_ended_program_left_behind_does_not_outlive_the_session(registry: Registry, how: str) -> None:
    session = registry.start("parent", Command(("sh", "-c", "trap '' HUP; sleep 1000 & echo up; exit 7")))
    until(lambda: isinstance(session.state(), Exited))
    record = registry.store.run(session.id)
    assert record
    os.kill(record.holder, signal.SIGKILL)
    until(lambda: not alive(record.holder, record.holder_tick))
    assert len(members(session)) == 1
    match how:
        case "stop":
            session.stop()
        case "stop all":
            assert registry.stop_all() == ["parent"]
            assert registry.stop_all() == []
        case "start":
            registry.start("parent", Command(("true",))).wait(DEADLINE)
        case "remove":
            registry.remove("parent")
    assert members(session) == []


def members(session: Session) -> list[int]:
    return list(carrying(f"SESSION_MAGICS_SESSION={session.id}".encode()))


# ------------------------------------------------------------------- a reboot

AFTER_REBOOT = """
from session_magics import Registry, SessionNotRunning
registry = Registry(sys.argv[1])
for info in registry.infos():
    session = registry.get(info.name)
    for ask in (session.stop, lambda: session.stop(now=True), session.tail, session.snapshot, session.info):
        ask()
    for ask in (session.interrupt, lambda: session.send("x"), lambda: session.wait(1), lambda: session.resize(30, 90)):
        try:
            ask()
            raise SystemExit(f"{info.name}: {ask} did something")
        except SessionNotRunning:
            pass
assert registry.stop_all() == []
registry.remove("s0")
"""


def test_line_05_after_a_reboot_all_are_lost_and_nobody_is_signalled(
    registry: Registry, traced: Callable[..., list[str]]
) -> None:
    names = [f"s{number}" for number in range(8)]
    for number, name in enumerate(names):
        registry.start(name, Command(("sleep", "1000")), backend=BACKENDS[number % 4 == 0])
    pids = leaks.processes_of(registry.store.root)
    for process in pids:
        with contextlib.suppress(psutil.NoSuchProcess):  # some end as soon as others have
            process.kill()
    until(lambda: not leaks.processes_of(registry.store.root))
    with a_stranger() as stranger:
        tick = start_tick(stranger.pid)
        for name in names:  # pids and ticks begin anew at each boot, so a stranger can have both
            path = registry.get(name).directory / "run.json"
            of_stranger = {"holder": stranger.pid, "holder_tick": tick, "pid": stranger.pid, "tick": tick}
            path.write_text(json.dumps(json.loads(path.read_text()) | of_stranger | {"boot": "the one before"}))
        assert {info.name: info.state for info in registry.infos()} == dict.fromkeys(names, Lost("reboot"))
        assert traced(AFTER_REBOOT, registry.store.root) == []
        assert len(traced("import os, signal; os.kill(int(sys.argv[1]), 0)", stranger.pid)) == 1, "a trace sees signals"
        assert {info.name: info.state for info in registry.infos()} == dict.fromkeys(names[1:], Lost("reboot"))
        registry.restart("s1")
        assert isinstance(registry.get("s1").state(), Running) and registry.get("s1").info().generation == 2
        assert stranger.poll() is None and start_tick(stranger.pid) == tick


# ------------------------------------------------------------------- a logout

LOGIN = "0::/user.slice/user-1000.slice/session-3.scope\n"
MANAGER = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/run-u5.scope\n"
KILLS = "[Login]\nKillUserProcesses=yes\nKillExcludeUsers=\n"


@pytest.mark.parametrize(
    ("groups", "config", "environ", "word"),
    [
        (LOGIN, KILLS, {}, "systemd-run --user --scope"),
        (LOGIN, KILLS.replace("=yes", "=no"), {}, None),
        (LOGIN, "#KillUserProcesses=yes\n", {}, None),
        (LOGIN, "", {}, None),
        (MANAGER, KILLS, {}, "enable-linger"),
        ("0::/system.slice/jupyterhub.service\n", "", {}, "jupyterhub.service"),
        ("4:memory:/x\n1:name=systemd:/system.slice/jupyter.service\n0::/\n", "", {}, "jupyter.service"),
        ("0::/\n", KILLS, {}, None),
        (LOGIN, "", {"SLURM_JOB_ID": "77"}, "job 77 of Slurm"),
    ],
)
def test_line_06_what_will_end_sessions_from_outside_is_known(
    tmp_path: Path, groups: str, config: str, environ: dict[str, str], word: str | None
) -> None:
    for name, text in {"proc/self/cgroup": groups, "etc/systemd/logind.conf": config}.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    said = outlook(tmp_path, environ)
    assert said is None if word is None else said is not None and word in said and "\n" not in said
    if groups == MANAGER:
        (tmp_path / "var/lib/systemd/linger").mkdir(parents=True)
        (tmp_path / "var/lib/systemd/linger" / pwd.getpwuid(os.geteuid()).pw_name).touch()
        assert outlook(tmp_path, environ) is None


def test_line_06_a_start_warns_of_it(registry: Registry) -> None:
    for number in range(rounds(2, 20)):
        command = [sys.executable, "-m", "session_magics", "start", f"s{number}", "--", "sleep", "1000"]
        done = subprocess.run(command, env=os.environ | {"SLURM_JOB_ID": "77"}, capture_output=True, text=True)
        assert done.returncode == 0
        assert done.stderr == "session-magics: this is job 77 of Slurm: what is started here ends with the job\n"


@pytest.mark.kernel
def test_line_06_a_start_from_a_notebook_warns_of_it_once(root: Path, registry: Registry) -> None:
    with new_kernel(root) as kernel:
        run(kernel, "import os; os.environ['SLURM_JOB_ID'] = '77'")
        told = [run(kernel, f"%session start s{number} -- sleep 1000").count("job 77 of Slurm") for number in range(2)]
        assert told == [1, 0]


def test_line_06_a_session_in_a_user_scope_outlives_a_logout() -> None:
    pytest.skip("a logout needs systemd as PID 1 with a login of its own; nothing starts a user scope by itself")
