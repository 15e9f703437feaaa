"""State is read from lock, exit record and run record; damage costs one session, and never yields a wrong end."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from rounds import rounds
from session_magics.errors import StoreError
from session_magics.holder.processes import boot_id
from session_magics.holder.record import format_exit
from session_magics.model import (
    BackingOff,
    Exited,
    FailedToStart,
    GaveUp,
    Lost,
    Running,
    Spec,
    State,
    Unknown,
)
from session_magics.store import Store
from session_magics.store.states import observe

PROJECT = Path(__file__).parent.parent
RUN = {
    "schema": 1,
    "boot": boot_id(),
    "host": socket.gethostname(),
    "holder": 10,
    "holder_tick": 1,
    "pid": 11,
    "tick": 2,
    "generation": 1,
    "since": 5.0,
    "protocol": 1,
    "until": None,
}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "registry")


def make(store: Store, name: str = "one", **run: object) -> tuple[str, Path]:
    """A claimed session, with a run record changed by ``run`` (no run record for run=None)."""
    spec = Spec(store.new_id(), name, ("sleep", "9"), "/", created=1.0)
    directory = store.create(spec)
    store.claim(name, spec.id)
    if run != {"run": None}:
        (directory / "run.json").write_text(json.dumps(RUN | run))
    return spec.id, directory


def age(directory: Path, seconds: float) -> None:
    then = time.time() - seconds
    for path in (directory / "exit", directory):
        os.utime(path, (then, then))


def end(directory: Path, generation: int, kind: str, value: str | int) -> None:
    (directory / "exit").write_bytes(format_exit(generation, kind, value, 7.5))


@contextmanager
def holder(directory: Path) -> Iterator[subprocess.Popen[str]]:
    """A real process that has the lock."""
    code = (
        "import fcntl, os, sys\n"
        "fcntl.flock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_EX)\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(directory / "alive")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_session_runs_while_its_lock_is_held_and_is_lost_when_the_holder_is_killed(store: Store) -> None:
    id, directory = make(store)
    with holder(directory) as process:
        assert store.state(id) == Running(11, 5.0)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert store.state(id) == Lost("holder killed")


def test_a_holder_that_comes_up_while_one_looks_is_seen(store: Store) -> None:
    _, directory = make(store)
    with ExitStack() as stack:

        def identity() -> tuple[str, str, int]:  # asked for when the lock was found free and no end was read
            stack.enter_context(holder(directory))
            (directory / "run.json").write_text(json.dumps(RUN | {"generation": 2, "pid": 12}))
            return boot_id(), socket.gethostname(), 0

        assert observe(str(directory), identity)[0] == Running(12, 5.0)


def test_the_next_generation_is_above_every_record(store: Store) -> None:
    id, directory = make(store, run=None)
    assert store.next_generation(id) == 1
    store.record_failure(id, "no holder")
    assert store.next_generation(id) == 2
    (directory / "run.json").write_text(json.dumps(RUN | {"generation": 4}))
    assert store.next_generation(id) == 5
    (directory / "exit").write_bytes(b"damaged\n")
    assert store.next_generation(id) == 5


def test_an_exit_is_told_with_and_without_a_holder(store: Store) -> None:
    id, directory = make(store)
    end(directory, 1, "code", 3)
    with holder(directory):
        assert store.state(id) == Exited(3, None, 7.5, background=True)
    assert store.state(id) == Exited(3, None, 7.5)
    end(directory, 1, "signal", 9)
    assert store.state(id) == Exited(None, 9, 7.5)


def test_the_end_of_an_earlier_generation_is_not_the_end_of_this_one(store: Store) -> None:
    id, directory = make(store, generation=2)
    end(directory, 1, "code", 0)
    with holder(directory):
        assert store.state(id) == Running(11, 5.0)
    assert store.state(id) == Lost("holder killed")


def test_an_end_counts_although_a_full_disk_kept_the_run_record_old(store: Store) -> None:
    id, directory = make(store, generation=1)
    end(directory, 2, "code", 4)
    assert store.state(id) == Exited(4, None, 7.5)


def test_a_program_in_back_off_shows_how_it_ended(store: Store) -> None:
    id, directory = make(store, until=99.0)
    with holder(directory):
        assert store.state(id) == BackingOff(99.0, None, None)
        end(directory, 1, "signal", 11)
        assert store.state(id) == BackingOff(99.0, None, 11)
    assert store.state(id) == Exited(None, 11, 7.5)


def test_the_run_record_alone_tells_how_a_program_in_back_off_ended(store: Store) -> None:
    """The exit record comes a moment later, and a reader may be faster."""
    id, directory = make(store, until=99.0, code=9, signal=None, ended=8.0)
    with holder(directory):
        assert store.state(id) == BackingOff(99.0, 9, None)
    assert store.state(id) == Exited(9, None, 8.0)  # the holder was killed in the pause
    id, directory = make(store, "other", until=99.0, code=None, signal=11, ended=8.0, generation=2)
    end(directory, 1, "code", 3)
    with holder(directory):
        assert store.state(id) == BackingOff(99.0, None, 11)


def test_a_program_that_was_given_up_is_told_before_and_after_its_exit_record(store: Store) -> None:
    id, directory = make(store, code=9, signal=None, ended=8.0, gave_up=5, generation=6)
    for _ in range(2):
        with holder(directory):
            assert store.state(id) == GaveUp(9, None, 8.0, background=True, restarts=5)
        assert store.state(id) == GaveUp(9, None, 8.0, restarts=5)
        end(directory, 6, "code", 9)
    end(directory, 7, "code", 0)  # of a later generation, whose run record a full disk has kept out
    assert store.state(id) == Exited(0, None, 7.5)


def test_a_failed_start_gives_its_reason(store: Store) -> None:
    id, directory = make(store, run=None)
    end(directory, 1, "failed", "no such program: a b%c")
    assert store.state(id) == FailedToStart("no such program: a b%c")


def test_a_session_whose_holder_is_still_coming_up_has_not_failed(store: Store) -> None:
    id, directory = make(store, run=None)
    assert store.state(id) == Unknown("the holder is starting")
    with holder(directory):
        assert store.state(id) == Unknown("the holder is starting")
    age(directory, 60)
    assert store.state(id) == FailedToStart("holder never came up")


def test_a_starter_records_that_its_holder_never_came_up(store: Store) -> None:
    id, directory = make(store, run=None)
    with holder(directory):
        store.record_failure(id, "not this one: it lives")
    assert store.state(id) == Unknown("the holder is starting")
    store.record_failure(id, "python is gone")
    assert store.state(id) == FailedToStart("python is gone")
    store.record_failure(id, "too late")
    assert store.state(id) == FailedToStart("python is gone")


def test_other_boots_and_hosts_are_told_apart(store: Store) -> None:
    assert store.state(make(store, "a", boot="another")[0]) == Lost("reboot")
    assert store.state(make(store, "b", host="elsewhere", boot="another")[0]) == Lost("on host elsewhere")


def test_a_session_without_a_directory_is_lost(store: Store) -> None:
    assert store.state(store.new_id()) == Lost("its directory is gone")


def test_a_probe_that_fails_is_unknown(store: Store) -> None:
    id, directory = make(store)
    (directory / "alive").symlink_to("/nowhere")
    assert isinstance(store.state(id), Unknown)
    (directory / "alive").unlink()
    (directory / "exit").unlink()
    (directory / "exit").mkdir()
    assert store.state(id) == Unknown("Is a directory")


def test_a_probe_does_not_hold_up_a_holder(store: Store) -> None:
    _, directory = make(store)
    fd = os.open(directory / "alive", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        store.infos()
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(fd)


def test_a_damaged_exit_record_is_no_end(store: Store) -> None:
    id, directory = make(store)
    end(directory, 1, "code", 0)
    data = bytearray((directory / "exit").read_bytes())
    data[9] ^= 1
    (directory / "exit").write_bytes(data)
    with holder(directory):
        assert store.state(id) == Running(11, 5.0)
    assert store.state(id) == Lost("exit record damaged")


def test_a_damaged_run_record_leaves_the_outcome_open(store: Store) -> None:
    id, directory = make(store)
    end(directory, 1, "code", 0)
    (directory / "run.json").write_text("{")
    with holder(directory):
        assert store.state(id) == Unknown("run record damaged")
    assert store.state(id) == Lost("run record damaged")
    with pytest.raises(StoreError, match="is damaged"):
        store.run(id)


def test_a_writer_that_is_killed_leaves_a_readable_state(store: Store) -> None:
    id, directory = make(store)
    code = f"""
import sys; sys.path.insert(0, {str(PROJECT)!r})
from pathlib import Path
from session_magics.store.states import observe
from session_magics.store import Store
from session_magics.model import Spec
from dataclasses import replace
store = Store(Path({str(store.root)!r}))
spec = store.spec({id!r})
print("go", flush=True)
for count in range(10**9):
    spec = replace(spec, labels={{"count": str(count) * 50}})
    store.write_spec(spec)
"""
    for round_ in range(0, 12, rounds(3, 1)):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            try:
                seen = store.spec(id).labels
                for _ in range(10 * round_):
                    if store.spec(id).labels != seen:
                        break
            finally:
                writer.kill()
        assert store.spec(id).argv == ("sleep", "9")
    past = time.time() - 7200
    for leftover in directory.glob(".tmp-*"):
        os.utime(leftover, (past, past))
    store.sweep()
    assert {path.name for path in directory.iterdir()} == {"exit", "spec.json", "run.json"}


RESTARTER = f"""
import fcntl, os, sys; sys.path.insert(0, {str(PROJECT)!r})
from session_magics.holder.record import format_exit, to_json
os.chdir(sys.argv[1])
run = {RUN!r}
ended = os.open("exit", os.O_WRONLY)
print("go", flush=True)
for generation in range(1, 10**9):
    alive = os.open("alive", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(alive, fcntl.LOCK_EX)
    with open("new", "wb") as new:  # no fsync: the faster, the more often a reader is overtaken
        new.write(to_json(run | {{"generation": generation}}))
    os.replace("new", "run.json")
    os.pwrite(ended, format_exit(generation, "code", generation % 100, 7.5), 0)
    os.close(alive)
"""


def test_a_session_that_is_restarted_over_and_over_never_looks_lost(store: Store) -> None:
    id, directory = make(store, run=None)
    age(directory, 60)
    command = [sys.executable, "-c", RESTARTER, str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as restarter:
        assert restarter.stdout is not None
        restarter.stdout.readline()
        seen: set[type[State]] = set()
        look_until = time.monotonic() + 1
        try:
            while time.monotonic() < look_until or Exited not in seen:
                state = store.state(id)
                seen.add(type(state))
                assert not isinstance(state, Lost), state
        finally:
            restarter.kill()
    assert Exited in seen
    assert isinstance(store.state(id), Exited | Lost)


def test_two_hundred_sessions_are_listed_in_an_instant(store: Store) -> None:
    for number in range(200):
        make(store, f"s{number}")
    store.infos()
    times = []
    for _ in range(5):
        begin = time.process_time()  # not the clock on the wall, which measures the other tests too
        assert len(store.infos()) == 200
        times.append(time.process_time() - begin)
    assert min(times) < 0.1, times
