"""The rows B8 to B11, B14 and B15 of the comparison with an older registry: ends, and what is told of them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import seeds
from panes import NEEDED
from rounds import DEADLINE as LIMIT
from rounds import alive, until, until_state
from seeds import SLEEP, program_of, sh
from session_magics import Command, Registry
from session_magics.errors import SessionExists, StartFailed, StoreError
from session_magics.holder import processes
from session_magics.holder.record import format_exit
from session_magics.model import BackingOff, Exited, FailedToStart, Lost, Running, Spec, State, Unknown
from session_magics.store.states import STARTING

pytestmark = NEEDED
registry = seeds.registry


def states_of(registry: Registry) -> dict[str, State]:
    return {info.name: info.state for info in registry.infos()}


STARTER = """
import sys, time
from session_magics import Command, Registry
Registry(sys.argv[1]).start("left", Command(("sh", "-c", "read word; exit 7")), backend=sys.argv[2])
print("started", flush=True)
time.sleep(1000)
"""


def test_b8_an_exit_code_is_on_record_after_the_starters_death(registry: Registry, root: Path) -> None:
    backend = registry.backend.preferred  # type: ignore[attr-defined]
    command = [sys.executable, "-c", STARTER, str(root), backend]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as starter:
        assert starter.stdout is not None and starter.stdout.readline() == b"started\n"
        os.killpg(starter.pid, signal.SIGKILL)
    session = registry.get("left")
    assert isinstance(session.state(), Running)
    session.send("\r")
    assert session.wait(LIMIT) == 7


def test_b9_a_pid_that_another_process_has_is_never_running_and_never_signalled(real: Registry) -> None:
    session = real.start("web", SLEEP)
    record = real.store.run(session.id)
    assert record is not None
    os.kill(record.holder, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):  # gone already, with its terminal
        os.kill(record.pid, signal.SIGKILL)
    until_state(session, Lost)
    with subprocess.Popen(["sh", "-c", "sleep 1000 & wait"], start_new_session=True) as stranger:
        try:
            until(lambda: psutil.Process(stranger.pid).children())
            child = psutil.Process(stranger.pid).children()[0]
            tick = processes.start_tick(stranger.pid)
            for ticks in ({}, {"tick": tick, "holder_tick": tick}):
                path = session.directory / "run.json"
                changed = {**json.loads(path.read_text()), "pid": stranger.pid, "holder": stranger.pid, **ticks}
                path.write_text(json.dumps(changed))
                assert session.state() == Lost("holder killed")
                assert real.stop_all() == []
                session.stop(now=True)
                assert alive(stranger.pid, tick) and child.is_running()
            real.remove("web", force=True)
            assert alive(stranger.pid, tick) and child.is_running()
        finally:
            os.killpg(stranger.pid, signal.SIGKILL)


def test_b10_a_stop_goes_on_to_kill_and_tells_the_end_only_when_all_are_gone(registry: Registry) -> None:
    session = registry.start(
        "deaf", sh("trap '' TERM HUP INT; (trap '' TERM HUP INT; sleep 1000) & echo ready; sleep 1000")
    )
    session.wait_for("ready", LIMIT)
    pid, tick = program_of(session)
    tree = [(child.pid, processes.start_tick(child.pid)) for child in psutil.Process(pid).children(recursive=True)]
    assert tree
    began = time.monotonic()
    state = session.stop(0.3)
    assert time.monotonic() - began >= 0.3
    assert not any(alive(*one) for one in [(pid, tick), *tree])
    assert isinstance(state, Exited) and state.signal == signal.SIGKILL and not state.background


def test_b11_an_old_run_cannot_alter_a_new_one(registry: Registry) -> None:
    session = registry.start("web", SLEEP)
    assert registry.restart("web", grace=0).info().generation == 2
    record = format_exit(1, "code", 9, time.time())  # what a late watcher of the first run would write
    (session.directory / "exit").write_bytes(record)
    assert isinstance(session.state(), Running)
    session.stop(now=True)
    state = session.state()
    assert isinstance(state, Exited) and state.code != 9
    new = registry.start("web", SLEEP)
    registry.store.release("web", session.id)
    with pytest.raises(StoreError):
        registry.store.record_failure(session.id, "late")  # the first session's directory is gone with its name
    assert registry.get("web").id == new.id and isinstance(new.state(), Running)


def test_b14_what_runs_is_not_removed_a_follower_ends_and_damage_costs_one_session(registry: Registry) -> None:
    session = registry.start("web", sh("echo ready; read word; echo over"))
    session.wait_for("ready", LIMIT)
    with pytest.raises(SessionExists, match="running"):
        registry.remove("web")
    session.send("\r")
    assert b"".join(session.follow(0)).endswith(b"over\r\n"), "it ends with the session"
    registry.remove("web")
    other, hurt = registry.start("other", SLEEP), registry.start("hurt", SLEEP)
    pid, tick = program_of(hurt)
    for damaged in ("spec.json", "run.json", "exit"):
        (hurt.directory / damaged).write_text("{")
    infos = {info.name: info for info in registry.infos()}
    assert infos["other"].running and isinstance(infos["hurt"].state, Unknown)
    (registry.store.root / "names" / "hurt").write_text("?")
    assert {info.name for info in registry.infos()} == {"other", "hurt"}
    registry.stop_all(now=True)
    hurt.stop(now=True)
    assert not alive(pid, tick) and not isinstance(other.state(), Running)
    for name in ("other", "hurt"):
        registry.remove(name, force=True)
    assert not registry.infos()


def test_b15_each_state_is_seen_in_real_use(registry: Registry) -> None:
    spec = Spec(registry.store.new_id(), "starting", ("true",), "/", created=time.time())
    registry.store.create(spec)
    registry.store.claim("starting", spec.id)
    assert registry.get("starting").state() == STARTING
    registry.store.remove(spec.id, "starting")
    running = registry.start("running", SLEEP)
    registry.start("exited", sh("exit 3")).wait(LIMIT)
    registry.start("killed", sh("kill -KILL $$")).wait(LIMIT)
    until_state(registry.start("backing-off", sh("exit 1"), restart="always"), BackingOff)
    with pytest.raises(StartFailed):
        registry.start("failed", Command(("/no/such/program",)))
    lost = registry.start("lost", SLEEP)
    record = registry.store.run(lost.id)
    assert record is not None
    os.kill(record.holder, signal.SIGKILL)
    until_state(lost, Lost)
    while not isinstance((states := states_of(registry))["backing-off"], BackingOff):
        pass  # it runs again for a moment after each pause
    assert isinstance(states["running"], Running)
    exited, killed = states["exited"], states["killed"]
    assert isinstance(exited, Exited) and (exited.code, exited.signal) == (3, None)
    assert isinstance(killed, Exited) and (killed.code, killed.signal) == (None, signal.SIGKILL)
    assert isinstance(states["failed"], FailedToStart) and states["lost"] == Lost("holder killed")
    (running.directory / "spec.json").write_text("{")
    assert isinstance(running.info().state, Unknown)
    lost.stop(now=True)
    until(lambda: not alive(record.pid, record.tick))
