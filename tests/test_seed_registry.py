"""The rows B1 to B15 of the comparison with an older registry of detached sessions, each on real programs."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from rounds import DEADLINE as LIMIT
from rounds import alive, rounds, until, until_state
from session_magics import Command, Registry, Session
from session_magics.errors import (
    SessionExists,
    SessionNotFound,
    SessionNotRunning,
    StartFailed,
    StoreError,
    UsageMistake,
)
from session_magics.holder import processes
from session_magics.holder.record import format_exit
from session_magics.importing.importer import import_file
from session_magics.model import BackingOff, Exited, FailedToStart, Lost, Running, Spec, State, Unknown
from session_magics.store.states import STARTING
from terminals import attached

pytestmark = [
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc"),
]

GRACE = 60.0  # seconds, which no test sits out
SLEEP = Command(("sleep", "1000"))


@pytest.fixture(params=["native", "tmux"])
def registry(root: Path, request: pytest.FixtureRequest) -> Iterator[Registry]:
    """One registry over each of the two that hold sessions."""
    opened = Registry(root, backend=request.param)
    yield opened
    opened.stop_all(now=True)


def states_of(registry: Registry) -> dict[str, State]:
    return {info.name: info.state for info in registry.infos()}


def sh(script: str, **env: str) -> Command:
    return Command(("sh", "-c", script), env=env)


def program_of(session: Session) -> tuple[int, int]:
    """Pid and start tick."""
    record = session._store.run(session.id)
    assert record is not None
    return record.pid, record.tick


def test_b1_a_backend_is_chosen_by_name_and_refused_in_one_line(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Auto, native and tmux behind one interface, with and without tmux on the path."""
    real = Registry(root)
    for asked, held in ((None, "native"), ("auto", "native"), ("native", "native"), ("tmux", "tmux")):
        session = real.start(f"by-{asked}", sh("echo well; exit 3"), backend=asked)
        assert (session.info().backend, session.wait(LIMIT), session.tail(1)) == (held, 3, "well")
    with pytest.raises(UsageMistake, match="auto, native, tmux"):
        real.start("screen", SLEEP, backend="screen")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageMistake, match="no tmux on this machine"):
        real.start("pane", SLEEP, backend="tmux")
    assert real.start("auto", Command(("/bin/true",)), backend="auto").wait(LIMIT) == 0


def test_b2_a_version_one_registry_is_read(real: Registry, tmp_path: Path) -> None:
    """Snake-case keys, keys that are left out where empty, an exit code of 0 that is kept."""
    (tmp_path / "web.log").write_text("listening\n")
    written = {"version": 1, "updated_at": "2026-06-26T10:00:05.5Z", "sessions": {
        "web": {"name": "web", "backend": "native", "state": "exited", "dir": "/w", "pid": 1, "exit_code": 0,
                "log_path": f"{tmp_path}/web.log", "started_at": "2026-06-26T10:00:00.25Z",
                "updated_at": "2026-06-26T10:00:05.5Z", "labels": {"crew": "a"}},
        "bare": {"name": "bare", "backend": "tmux", "state": "running", "dir": "/", "tmux_name": "shp-bare",
                 "started_at": "2026-06-26T12:00:01+02:00", "updated_at": "2026-06-26T10:00:05.5Z"},
    }}  # fmt: skip
    (tmp_path / "sessions.json").write_text(json.dumps(written, indent=2))
    assert len(import_file(real.store, tmp_path / "sessions.json").imported) == 2
    web, bare = real.infos()
    assert (web.name, web.state, web.cwd, web.labels) == ("web", Exited(0, None, 1782468005.5), "/w", {"crew": "a"})
    assert (web.created, bare.created) == (1782468000.25, 1782468001.0)
    assert real.get("web").tail() == "listening" and isinstance(bare.state, Lost)


WRITER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from session_magics import Command, Registry
def start(number):
    name = f"{sys.argv[2]}-{number}"
    return Registry(sys.argv[1]).start(name, Command(("true",)), labels={"from": name}).wait(50)
with ThreadPoolExecutor(20) as pool:
    assert list(pool.map(start, range(20))) == [0] * 20
"""


def test_b3_forty_writers_in_two_processes_lose_nothing(real: Registry) -> None:
    root = str(real.store.root)
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, root, name]) for name in ("one", "two")]
    assert [writer.wait(50) for writer in writers] == [0, 0]
    infos = real.infos()
    assert {info.name for info in infos} == {f"{one}-{number}" for one in ("one", "two") for number in range(20)}
    assert all(info.labels == {"from": info.name} for info in infos)
    assert all(isinstance(info.state, Exited) and info.state.code == 0 for info in infos)


def test_b4_every_verb_works_and_its_errors_are_told_apart(registry: Registry) -> None:
    session = registry.start("web", sh("echo ready; read word; echo got $word; sleep 1000"), labels={"crew": "a"})
    session.wait_for("ready", LIMIT)
    assert [info.name for info in registry.infos({"crew": "a"})] == ["web"] and registry.get("web").id == session.id
    with pytest.raises(SessionExists, match="stop or restart it"):
        registry.start("web", SLEEP)
    with attached("web") as terminal:
        terminal.until("ready")
        terminal.type("\x1c")
        assert terminal.wait() == 0
    session.send("this\r")
    session.wait_for("got this", LIMIT)
    assert session.tail(1) == "got this" and "got this" in session.snapshot()
    session.stop(now=True)
    for verb in (lambda: session.send("x"), session.interrupt, lambda: session.resize(10, 10), session.connect):
        with pytest.raises(SessionNotRunning, match="restart web"):
            verb()
    registry.remove("web")
    for missing in (registry.get, registry.remove, registry.restart):
        with pytest.raises(SessionNotFound, match="no session named 'web'"):
            missing("web")


def test_b5_a_program_has_a_session_of_its_own_one_log_and_its_own_values(
    real: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHICH", "the caller's")
    session = real.start("web", sh("echo one; echo two >&2; echo three; echo $WHICH; exec sleep 1000", WHICH="its own"))
    session.wait_for("its own\n", LIMIT)
    assert session.output() == b"one\r\ntwo\r\nthree\r\nits own\r\n"
    pid, _ = program_of(session)
    assert os.getsid(pid) == os.getpgid(pid) == pid != os.getsid(0)
    streams = {os.readlink(f"/proc/{pid}/fd/{number}") for number in range(3)}
    assert len(streams) == 1 and streams.pop().startswith("/dev/pts/"), "a terminal that is nobody else's"


def test_b6_a_tail_is_quick_and_has_exactly_so_many_lines(registry: Registry) -> None:
    session = registry.start("lines", sh("seq 100; while read word; do date +%s.%N; done"))
    session.wait_for("100", LIMIT)
    for count in (0, 1, 5, 37):
        assert session.tail(count).split() == [str(number) for number in range(101 - count, 101)]
    delays, follower = [], session.follow(session.info().log_bytes)
    for _ in range(5):
        session.send("\r")
        seen = b""
        while not re.search(rb"\.\d+\s", seen):
            seen += next(follower)
        delays.append(time.time() - float(seen.split()[-1]))
    follower.close()
    assert statistics.median(delays) < 0.25, delays  # of several: a machine may stall in one


def test_b7_keys_are_literal_and_a_stop_leaves_time_to_tidy_up(registry: Registry) -> None:
    session = registry.start(
        "keys", sh("trap 'echo interrupted' INT; trap 'sleep 0.5; echo tidy; exit 4' TERM; echo ready; "
                   "while :; do read line && echo \"<$line>\"; done")
    )  # fmt: skip
    session.wait_for("ready", LIMIT)
    for text in ("hello;", "Enter", "C-c -t x"):
        session.send(text)
        session.send("\r")
        session.wait_for(f"<{text}>", LIMIT)
    session.interrupt()
    session.wait_for("interrupted", LIMIT)
    state = session.stop(GRACE)
    assert isinstance(state, Exited) and state.code == 4 and session.tail(1) == "tidy"


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


def test_b12_names_are_exact_and_none_is_taken_for_its_beginning(registry: Registry) -> None:
    """tmux/tmux#1143."""
    names = ["a", "ab", "agent-1", "agent-10", "v1.2", "v1_2", "A" + "x" * 63, "0.-_"]
    sessions = [registry.start(name, Command(("sleep", "1000"))) for name in names]
    sessions[2].stop(now=True)
    with pytest.raises(SessionExists):
        registry.start("agent-10", Command(("true",)))
    assert [isinstance(one.state(), Running) for one in sessions] == [name != "agent-1" for name in names]
    assert len({one.directory for one in sessions}) == len(names), "no two share a log"
    assert registry.start("agent-1", Command(("sleep", "1000"))).info().running


@pytest.mark.parametrize("name", ["a/b", "a:b", "..", "a b", "", "x" * 65, "a\nb"])
def test_b12_a_name_that_could_be_mistaken_is_refused(registry: Registry, name: str) -> None:
    with pytest.raises(UsageMistake, match="no session name"):
        registry.start(name, SLEEP)
    assert not os.listdir(registry.store.root / "sessions")


def test_b13_no_first_output_is_lost_and_no_text_is_taken_for_an_end(registry: Registry) -> None:
    marks = "exit status 0\\n[exited]\\n__EXIT__:0\\n"

    def run(number: int) -> tuple[int, str]:
        session = registry.start(f"fast-{number}", sh(f"printf 'first {number}\\n{marks}'; exit {number % 7}"))
        return session.wait(LIMIT), session.output().decode()

    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(run, range(rounds(50, 500))))
    for number, (code, output) in enumerate(outcomes):
        assert code == number % 7
        assert output == f"first {number}\r\nexit status 0\r\n[exited]\r\n__EXIT__:0\r\n"


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
