"""What a holder costs while nothing happens, what it records, and that a fault of its own ends nothing."""

from __future__ import annotations

import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holders import MB, private
from rounds import DEADLINE, alive, rounds, sessions, until, until_state
from session_magics import Command, Exited, Registry, Running, run_cell
from session_magics.backends import native
from session_magics.holder import processes, trees
from session_magics.holder.loop import FAULTS_TOLD, Loop

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

MANY = rounds(20, 100)
MEMORY_MB = 4.0  # of one holder among many, beside what they share: a share would be smaller the more others there are
IDLE_SECONDS = 3.0
HEAVY = {
    "re",
    "json",
    "pathlib",
    "dataclasses",
    "typing",
    "enum",
    "socket",
    "signal",
    "subprocess",
    "ctypes",
    "contextlib",
}


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    with sessions(root) as opened:
        yield opened


def holder_pids(registry: Registry) -> list[int]:
    records = [registry.store.run(info.id) for info in registry.infos()]
    assert all(records)
    return [record.holder for record in records if record]


def wake_ups(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)


def test_a_holder_loads_nothing_heavy() -> None:
    code = f"""
import sys
spec = {{"__name__": "holder", "__file__": {str(native.HOLDER)!r}}}
exec(compile(open(spec["__file__"]).read(), spec["__file__"], "exec"), spec)
print(*sys.modules)
"""
    loaded = set(subprocess.check_output([sys.executable, "-I", "-S", "-c", code], text=True).split())
    assert "session_magics.holder.holder" in loaded
    assert not HEAVY & loaded
    assert not {f"session_magics.holder.{name}" for name in ("tmux", "pane", "gate")} & loaded, "for tmux alone"


@linux_only
def test_a_holder_sleeps_while_nothing_happens(registry: Registry) -> None:
    registry.start("program", Command(("sleep", "1000")))
    shell = registry.shell("main", lifetime="detached", rc=False)
    run_cell(shell, "cd /; sleep 1000 &")
    owned = registry.shell("owned", rc=False)
    run_cell(owned, "true")
    left = registry.start("left", Command(("sh", "-c", "trap '' HUP; sleep 1000 & exit 0")))
    until_state(left, Exited)
    pids = holder_pids(registry)
    assert len(pids) == 4

    def settled() -> bool:
        before = [wake_ups(pid) for pid in pids]
        time.sleep(0.5)  # nothing to wait for: that nothing happens is the point
        return before == [wake_ups(pid) for pid in pids]

    until(settled)
    before = [wake_ups(pid) for pid in pids]
    time.sleep(IDLE_SECONDS)
    assert all(wake_ups(pid) - count <= 2 for pid, count in zip(pids, before, strict=True))


@linux_only
@pytest.mark.timeout(rounds(60, 300))
def test_many_sessions_are_cheap(registry: Registry) -> None:
    for number in range(MANY):
        if number % 2:
            session = registry.shell(f"s{number}", shell="bash", rc=False)
            run_cell(session, "true")
        else:
            registry.start(f"s{number}", Command(("sleep", "1000")))
    memory = [private(pid) for pid in holder_pids(registry)]
    assert len(memory) == MANY
    assert statistics.mean(memory) <= MEMORY_MB * MB
    assert len(registry.stop_all()) == MANY


@linux_only
def test_a_holder_is_nobodys_child_and_in_nobodys_group(registry: Registry) -> None:
    session = registry.start("program", Command(("sleep", "1000")))
    record = registry.store.run(session.id)
    assert record
    holder = processes.entry(record.holder)
    assert holder
    assert holder.pid not in trees.descendants(os.getpid())
    assert holder.sid not in (os.getsid(0), record.pid)
    assert holder.pgid != os.getpgrp()
    program = processes.entry(record.pid)
    assert program
    assert (program.ppid, program.sid, program.pgid) == (holder.pid, program.pid, program.pid)


@linux_only
def test_a_program_inherits_three_descriptors_and_no_ignored_signal(registry: Registry) -> None:
    script = "ls -l /proc/self/fd | wc -l; grep SigIgn /proc/self/status; env | grep -c ^SESSION_MAGICS_HOLDER="
    session = registry.start("program", Command(("sh", "-c", script)))
    session.wait(timeout=DEADLINE)
    # the heading, the three, and the descriptor by which ls reads the directory
    assert session.tail().split() == ["5", "SigIgn:", "0000000000000000", "0"]


def test_the_run_record_tells_who_runs_what(registry: Registry) -> None:
    session = registry.start("program", Command(("sleep", "1000")), size=(33, 99))
    state = session.state()
    assert isinstance(state, Running)
    record = json.loads((session.directory / "run.json").read_bytes())
    assert record["pid"] == state.pid
    assert record["tick"] == processes.start_tick(state.pid)
    assert alive(record["holder"], record["holder_tick"])
    assert record["boot"] == processes.boot_id()
    assert (record["host"], record["generation"], record["protocol"]) == (socket.gethostname(), 1, 1)
    assert "until" not in record and record["size"] == [33, 99]
    assert record["since"] == state.since


def test_a_kernels_session_goes_with_whoever_owns_it(registry: Registry, root: Path) -> None:
    code = """
import sys
from session_magics import Command, Registry
registry = Registry()
command = Command(("sh", "-c", "trap '' HUP; setsid sleep 1000 & sleep 1000"))
session = registry.start("own", command, lifetime="kernel")
print(session.id, flush=True)
sys.stdin.read()
"""
    packages = str(Path(__file__).parents[1])
    owner = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=packages
    )
    try:
        assert owner.stdout
        id = owner.stdout.readline().strip()
        record = registry.store.run(id)
        assert record
        until(lambda: len(trees.descendants(record.holder)) == 3)
        assert [info.name.partition("@")[0] for info in registry.infos()] == ["own"]
    finally:
        owner.kill()
        owner.communicate()
    until(lambda: not alive(record.holder, record.holder_tick))
    assert registry.infos() == []
    assert not registry.store.directory(id).exists()
    assert list((root / "names").iterdir()) == []


# ---------------------------------------------------------------- the loop


@pytest.fixture
def loop(client_loop: None) -> Iterator[Loop]:
    made = Loop()
    yield made
    made.close()


def test_a_fault_in_a_callback_is_told_and_ends_nothing(loop: Loop) -> None:
    told: list[str] = []
    loop.on_fault = told.append
    reading, writing = os.pipe()

    def broken(_events: int) -> None:
        if os.read(reading, 1) == b"z":
            loop.stop()
        else:
            raise ValueError("not this way")

    loop.watch(reading, broken)
    os.write(writing, b"xyz")
    loop.run()
    loop.forget(reading)
    os.close(reading)
    os.close(writing)
    assert len(told) == 2
    assert told[0].startswith("ValueError: not this way (test_holder.py:")


def test_a_fault_that_repeats_itself_is_told_a_few_times_only(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("session_magics.holder.loop.FAULT_PAUSE", 0.0)
    told: list[str] = []
    loop.on_fault = told.append
    rest = iter(range(FAULTS_TOLD * 3))

    def broken() -> None:
        if next(rest, None) is None:
            loop.stop()
        else:
            loop.later(0, broken)
            raise OSError("again")

    loop.later(0, broken)
    loop.run()
    assert len(told) == FAULTS_TOLD


def test_timers_fire_in_time_once_and_not_when_cancelled(loop: Loop) -> None:
    fired: list[str] = []
    loop.later(0.02, lambda: fired.append("second"))
    loop.later(0.01, lambda: fired.append("first"))
    dropped = loop.later(0.015, lambda: fired.append("never"))
    loop.cancel(dropped)
    loop.later(0.03, loop.stop)
    began = time.monotonic()
    loop.run()
    assert time.monotonic() - began >= 0.03
    assert fired == ["first", "second"]


def test_a_stop_can_be_taken_back_in_the_same_round(loop: Loop) -> None:
    rounds_seen: list[int] = []

    def again() -> None:
        rounds_seen.append(len(rounds_seen))
        loop.stop()
        if len(rounds_seen) < 3:
            loop.go_on()
            loop.later(0, again)

    loop.later(0, again)
    loop.run()
    assert rounds_seen == [0, 1, 2]
