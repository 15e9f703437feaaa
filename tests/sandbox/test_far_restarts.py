"""Starting again what runs in a place without Python: nobody waits for the holder meanwhile, and a stop ends it."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from farplaces import NextDoor, PlacedBackend
from rounds import some
from session_magics.backends import Link
from session_magics.model import BackingOff, Command, Exited
from session_magics.registry import Registry
from session_magics.session import Session
from session_magics.testing.rig import outcome

LIMIT = 10.0
# Seconds for the waits of conditions between looks.
STEP = 0.01
# Seconds that each connection takes to come up, and that an answer may take meanwhile.
SLOW, PROMPT = 1.0, 0.4


def until(ready: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + LIMIT
    while not ready():
        assert time.monotonic() < deadline, f"not within {LIMIT:g} s: {what}"
        time.sleep(STEP)


@pytest.fixture
def slow(root: Path, tmp_path: Path) -> Iterator[Registry]:
    before = ("sh", "-c", f'sleep {SLOW}; exec "$@"', "sh")
    yield Registry(root, backend=PlacedBackend(NextDoor(tmp_path, python=None, before=before)))


def prompt(call: Callable[[], object]) -> None:
    began = time.monotonic()
    call()
    assert time.monotonic() - began < PROMPT


def holder_of(session: Session) -> psutil.Process:
    found = psutil.Process(session.info().pid).parent()
    assert found
    return found


def left(home: Path) -> list[str]:
    """What carries the mark of a session that was placed there."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("HOME") == str(home):
                found.append(" ".join(process.cmdline()))
    return found


def shell_and_holder(registry: Registry) -> tuple[Session, psutil.Process]:
    session = registry.shell("cells", shell="bash", lifetime="detached", rc=False)
    return session, holder_of(session)


def leave(link: Link) -> int:
    """End the shell; the cell that the next one runs."""
    assert outcome(link, link.run("cd /; export kept=1; exit 3"))[4] == b"exited"
    return link.run("echo $PWD $kept")


def test_the_holder_answers_while_a_fresh_shell_comes_up(slow: Registry) -> None:
    session, _holder = shell_and_holder(slow)
    with session.link() as link:
        ticket = leave(link)
        began = time.monotonic()
        while time.monotonic() - began < SLOW / 2:
            prompt(link.interrupt)
        prompt(lambda: link.resize(30, 90))
        fields = outcome(link, ticket)
        assert session.output(int(fields[1]), int(fields[2])) == b"/ 1\n"
        fields = outcome(link, link.run("stty size"))
        assert session.output(int(fields[1]), int(fields[2])) == b"30 90\n"
    session.stop(now=True)


def test_a_restart_that_is_asked_for_is_joined_and_others_are_answered(slow: Registry) -> None:
    session = slow.start("program", Command(("/bin/sh", "-c", "echo up; read x")), lifetime="detached")
    numbers: list[int] = []

    def restart() -> None:
        with session.link() as link:
            numbers.append(link.restart(1.0))

    both = [threading.Thread(target=restart) for _ in range(2)]
    both[0].start()
    until(lambda: isinstance(session.state(), BackingOff), "the end of the first")
    both[1].start()
    with session.link() as link:
        while not numbers:
            prompt(lambda: link.resize(30, 90))
            time.sleep(STEP)
    for one in both:
        one.join()
    assert numbers == [2, 2]
    session.stop(now=True)


@pytest.mark.parametrize("how", ["stop", "TERM"])
def test_a_stop_ends_a_start_that_is_under_way(slow: Registry, tmp_path: Path, how: str) -> None:
    session, holder = shell_and_holder(slow)
    with session.link() as link:
        leave(link)
        began = time.monotonic()
        if how == "stop":
            session.stop(now=True)
        else:
            holder.terminate()
        until(lambda: isinstance(session.state(), Exited), "the end")
    until(lambda: not holder.is_running(), "the end of the holder")
    assert time.monotonic() - began < LIMIT / 2
    state = session.state()
    assert isinstance(state, Exited) and state.code == 3
    assert left(tmp_path) == []


@pytest.mark.parametrize("part", some(range(12), 3))
def test_a_stop_at_any_moment_of_a_restart_by_policy_ends_all(root: Path, tmp_path: Path, part: int) -> None:
    """From the end of the program over the pause, half a second long, to its next start and a moment beyond."""
    registry = Registry(root, backend=PlacedBackend(NextDoor(tmp_path, python=None)))
    session = registry.start(
        "program", Command(("/bin/sh", "-c", "read x; exit 3")), lifetime="detached", restart="always"
    )
    holder = holder_of(session)
    session.send(b"go\n")
    until(lambda: isinstance(session.state(), BackingOff), "the pause")
    time.sleep(part * 0.06)
    session.stop(now=True)
    assert isinstance(session.state(), Exited), session.state()
    until(lambda: not holder.is_running(), "the end of the holder")
    assert left(tmp_path) == []


CARRIER = """
import os, subprocess, sys, time
there = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
while data := os.read(0, 65536):
    time.sleep(0.3)
    there.stdin.write(data)
    there.stdin.flush()
there.stdin.close()
sys.exit(there.wait())
"""


class LongRoad(NextDoor):
    """What is asked takes its time."""

    def wrap(self, command: Command, *, terminal: bool = False) -> Command:
        self.before = () if terminal else (sys.executable, "-c", CARRIER)
        return super().wrap(command, terminal=terminal)


def test_a_look_that_a_restart_leaves_unanswered_holds_up_no_later_stop(root: Path, tmp_path: Path) -> None:
    registry = Registry(root, backend=PlacedBackend(LongRoad(tmp_path, python=None)))
    session = registry.start("program", Command(("/bin/sh", "-c", "echo up; read x")), lifetime="detached")
    holder = holder_of(session)
    with session.link() as link:
        link.restart(1.0)
    began = time.monotonic()
    session.stop(now=True)
    until(lambda: not holder.is_running(), "the end of the holder")
    assert time.monotonic() - began < LIMIT / 2
