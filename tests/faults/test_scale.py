"""Lines 36 to 38: many sessions at once, one after the other, and for a long time."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from floods import expected, flood
from holders import MB, bare, faults, holder, memory, private
from others import PROJECT
from rounds import alive, rounds, until
from session_magics import Command, Exited, Lost, Registry, Running, Session
from session_magics.holder import processes
from session_magics.log import LogReader

BACKENDS = ("native", "tmux")
# Memory of a holder beyond that of its interpreter, which by its build has 2.2 to 2.9 MB: 3.5 MB where it has 2.2.
OWN_MOST = 1.3 * MB
IDLE_CPU = 0.01
# Seconds over which the processor time of idle holders is taken.
IDLE = 2.0

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc"),
    pytest.mark.timeout(120),
]


def test_line_36_many_start_at_once_and_cost_little(registry: Registry) -> None:
    names = [f"s{number}" for number in range(rounds(24, 200))]
    with ThreadPoolExecutor(len(names)) as pool:
        sessions = list(pool.map(lambda name: registry.start(name, Command(("sleep", "1000"))), names))
    infos = registry.infos()
    assert sorted(info.name for info in infos) == sorted(names) and all(info.running for info in infos)
    assert len({info.pid for info in infos}) == len(names)
    holders = [holder(session) for session in sessions]
    ticks = {pid: processes.start_tick(pid) for pid in holders}
    assert sum(map(private, holders)) / len(holders) - bare() <= OWN_MOST
    until(lambda: used(holders) == used(holders, after=0.1))  # each has come to rest
    before = used(holders)
    assert (used(holders, after=IDLE) - before) / IDLE <= IDLE_CPU  # nothing may happen
    assert sorted(registry.stop_all()) == sorted(names)
    until(lambda: not any(alive(pid, tick) for pid, tick in ticks.items()))


def used(pids: list[int], *, after: float = 0.0) -> float:
    """Seconds of processor time that these have used, to the nanosecond, so many seconds from now."""
    time.sleep(after)
    return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1e9


# In a namespace where there are few terminals: starts sessions until there is none left.
FEW_TERMINALS = """
import os, subprocess
from session_magics import *
for command in ("mount -t devpts -o newinstance,ptmxmode=0666,mode=620,max=%s devpts /dev/pts" % sys.argv[2],
                "mount --bind /dev/pts/ptmx /dev/ptmx"):
    if subprocess.run(command.split()).returncode:
        print("cannot", command); raise SystemExit
registry, backend = Registry(sys.argv[1]), sys.argv[3]
command, told, count = Command(("cat",)), "", 0
while not told:
    try:
        registry.start(f"s{count}", command, backend=backend)
        count += 1
    except StartFailed as error:
        told = error.reason
print(told)
infos = registry.infos()
assert sum(info.running for info in infos) == count, infos
for number in range(count):
    session = registry.get(f"s{number}")
    session.send("hello\\r")
    session.wait_for("hello", 10)
registry.get("s0").stop()
registry.start("again", command, backend=backend).stop()
print(count, len(registry.stop_all(now=True)))
"""


@pytest.mark.parametrize("backend", BACKENDS)
def test_line_36_the_last_terminal_is_told_by_name_and_harms_nobody(
    root: Path, pid_namespace: Callable[..., str], backend: str
) -> None:
    most = rounds(20, 500)
    lines = pid_namespace(FEW_TERMINALS, root, most, backend).splitlines()
    if lines[0].startswith("cannot"):
        pytest.skip(f"a name space of terminals cannot be had: {lines[0]}")
    assert "terminal" in lines[0] and "kernel.pty.max" in lines[0], lines[0]
    assert lines[1] == f"{most} {most - 1}"


# Runs in a kernel: starts, stops and removes as a person does, and tells what that has cost.
OVER_AND_OVER = """
import gc, json, os, psutil
from IPython.utils.capture import capture_output
def over_and_over(count):
    for number in range(count):
        with capture_output():
            get_ipython().run_line_magic("session", "start s -- cat")
            get_ipython().run_line_magic("session", "stop s")
            get_ipython().run_line_magic("session", "remove s")
def used():
    gc.collect()
    me = psutil.Process()
    zombies = sum(child.status() == psutil.STATUS_ZOMBIE for child in me.children())
    return me.num_fds(), me.memory_info().rss, zombies, me.num_threads()
"""


@pytest.mark.kernel
def test_line_37_a_kernel_that_starts_and_stops_over_and_over_grows_not(kernel: object, root: Path) -> None:
    run = kernel.run  # type: ignore[attr-defined]
    assert run(OVER_AND_OVER + "over_and_over(10)\nprint(json.dumps(used()))").status == "ok"
    before = json.loads(run("print(json.dumps(used()))").text)
    done = run(f"over_and_over({rounds(50, 2000)})", limit=3000)
    assert done.status == "ok", done.text
    after = json.loads(run("print(json.dumps(used()))").text)
    assert abs(after[0] - before[0]) <= 2, "descriptors"
    assert after[1] - before[1] <= 5 * MB, "memory"
    assert after[2] == 0, "zombies"
    assert after[3] - before[3] <= 1, "threads"
    assert os.listdir(root / "sessions") == os.listdir(root / "names") == []


# ------------------------------------------------------------------------ soak

# Seconds of the soak, and of the pause between two blows: the programme asks for 259200 and 60.
SOAK = "SESSION_MAGICS_SOAK"
PAUSE_MOST = 60.0
BLOWS_LEAST = 10
SLOPE_A_DAY = 100 * 1024
DAY = 86400.0

VIEWER = f"""
import sys; sys.path[:0] = [{PROJECT!r}, {PROJECT + "/tests"!r}]
from floods import expected
from session_magics import Registry
from session_magics.log import LogReader
session = Registry(sys.argv[1]).get(sys.argv[2])
with LogReader(session.directory) as log, session.news() as news:
    position = log.start()
    print("reads", flush=True)
    while True:
        for offset, data in log.read(position, log.end()):
            assert data == expected(offset, len(data)), f"other bytes at {{offset}}"
            assert offset == position or log.start() > position, f"a hole from {{position}} to {{offset}}"
            position = offset + len(data)
        if not news.wait(position, None):
            break
"""


class Soak:
    """Sessions that talk, viewers that read, and blows that hit one of them."""

    def __init__(self, registry: Registry, count: int, draw: random.Random) -> None:
        self.registry, self.draw = registry, draw
        self.sessions = {f"s{number}": self.start(f"s{number}") for number in range(count)}
        self.viewers = {name: self.view(name) for name in draw.sample(sorted(self.sessions), max(2, count // 10))}

    def start(self, name: str) -> Session:
        backend = BACKENDS[int(name[1:]) % 3 == 0]
        file = self.registry.store.root / f"{name}.count"
        session = self.registry.start(name, Command(flood(str(file))), backend=backend)
        until(lambda: session.info().log_bytes == 1)
        return session

    def view(self, name: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-c", VIEWER, str(self.registry.store.root), name]
        viewer = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert viewer.stdout is not None
        assert viewer.stdout.readline() == b"reads\n"
        return viewer

    def talk(self) -> None:
        """Have all print something, and wait until it is in the log."""
        for session in self.sessions.values():
            wanted = session.info().log_bytes + (count := self.draw.randrange(1, 400_000))
            session.send(f"{count}\r")
            until(lambda: session.info().log_bytes == wanted, what=session.info)  # noqa: B023

    def blow(self) -> None:
        """Kill something; exactly that is affected, and what is told of it is true."""
        before = {info.name: info.state for info in self.registry.infos()}
        victim = self.draw.choice(sorted(self.sessions))
        session = self.sessions[victim]
        pid = holder(session)
        tick = processes.start_tick(pid)
        match self.draw.choice(["holder", "program", "viewer", "socket", "pause"]):
            case "holder":
                os.kill(pid, signal.SIGKILL)
                until(lambda: session.state() == Lost("holder killed"), what=session.state)
                assert self.others(victim) == {name: before[name] for name in before if name != victim}
                session.stop(now=True)
            case "program":
                state = session.state()
                assert isinstance(state, Running)
                os.kill(state.pid, signal.SIGKILL)
                assert session.wait(20) == -signal.SIGKILL
                until(lambda: not alive(pid, tick))
            case "viewer":
                name = self.draw.choice(sorted(self.viewers))
                self.hang_up(name)
                self.viewers[name] = self.view(name)
            case "socket":
                (session.directory / "sock").unlink()
                session.stop(now=True)
            case "pause":
                os.kill(pid, signal.SIGSTOP)
                assert isinstance(session.state(), Running)
                os.kill(pid, signal.SIGCONT)
        assert self.others(victim) == {name: before[name] for name in before if name != victim}
        if not isinstance(session.state(), Running):
            if victim in self.viewers:
                self.hang_up(victim)
            self.check(session)
            self.sessions[victim] = self.start(victim)
            if victim in self.viewers:
                self.viewers[victim] = self.view(victim)

    def others(self, victim: str) -> dict[str, object]:
        return {info.name: info.state for info in self.registry.infos() if info.name != victim}

    def check(self, session: Session) -> None:
        """All of the log is what belongs there."""
        with LogReader(session.directory) as log:
            at = log.start()
            for offset, data in log.read(at, log.end()):
                assert offset == at and data == expected(offset, len(data))
                at += len(data)
        assert faults(session) == []

    def hang_up(self, name: str) -> None:
        self.viewers[name].kill()
        assert self.viewers[name].communicate()[1] == b""

    def close(self) -> None:
        for viewer in self.viewers.values():
            viewer.kill()
            viewer.communicate()


def test_line_38_a_soak_with_blows_keeps_all_promises(registry: Registry) -> None:
    """The programme's length is asked for by SESSION_MAGICS_SOAK=259200 and pytest's --timeout 0."""
    seconds = float(os.environ.get(SOAK) or rounds(3, 300))
    pause = min(PAUSE_MOST, seconds / 60)
    soak = Soak(registry, rounds(8, 50), random.Random(38))
    with contextlib.closing(soak):
        soak.talk()
        sizes = {name: (session.id, memory(holder(session))) for name, session in soak.sessions.items()}
        began, blows = time.monotonic(), 0
        while time.monotonic() - began < seconds or blows < BLOWS_LEAST:
            soak.blow()
            soak.talk()
            blows += 1
            time.sleep(max(0.0, began + blows * pause - time.monotonic()))  # one blow in each pause
        for name, session in soak.sessions.items():
            if (session.id, session.state()) and sizes[name][0] == session.id:
                allowed = MB + SLOPE_A_DAY * (time.monotonic() - began) / DAY
                assert memory(holder(session)) - sizes[name][1] <= allowed, name
            state = session.stop()
            assert isinstance(state, Exited) and state.code == 0
            soak.check(session)
