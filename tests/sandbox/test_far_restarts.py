"""Starting again what runs in a place without Python: nobody waits for the holder meanwhile, and a stop ends it."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path

import psutil
import pytest

import leaks
from farplaces import NextDoor, PlacedBackend
from held import record
from rounds import some, until
from session_magics.backends import Link
from session_magics.errors import SessionNotRunning
from session_magics.holder import wire
from session_magics.holder.farstart import START_LIMIT
from session_magics.model import BackingOff, Command, Exited
from session_magics.registry import Registry
from session_magics.session import Session
from session_magics.testing.rig import outcome

# How often something is asked while no connection comes up: the answer must be there without it.
ASKED = 5


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """No connection comes up while this file is there."""
    return tmp_path / "closed"


@pytest.fixture
def gated(root: Path, tmp_path: Path, closed: Path) -> Registry:
    before = ("sh", "-c", f'while [ -e {closed} ]; do sleep 0.05; done; exec "$@"', "sh")
    return Registry(root, backend=PlacedBackend(NextDoor(tmp_path, python=None, before=before)))


def holder_of(session: Session) -> psutil.Process:
    return psutil.Process(record(session).holder)


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


def test_the_holder_answers_while_a_fresh_shell_comes_up(gated: Registry, closed: Path) -> None:
    session, _holder = shell_and_holder(gated)
    with session.link() as link:
        closed.touch()
        ticket = leave(link)
        for _ in range(ASKED):
            link.interrupt()
        link.resize(30, 90)
        assert link.finished(ticket) is None
        closed.unlink()
        fields = outcome(link, ticket)
        assert session.output(int(fields[1]), int(fields[2])) == b"/ 1\n"
        fields = outcome(link, link.run("stty size"))
        assert session.output(int(fields[1]), int(fields[2])) == b"30 90\n"
    session.stop(now=True)


def test_a_restart_that_is_asked_for_is_joined_and_others_are_answered(gated: Registry, closed: Path) -> None:
    session = gated.start("program", Command(("/bin/sh", "-c", "echo up; read x")), lifetime="detached")
    closed.touch()
    with session.link() as one, session.link() as other:
        tickets = [(one, ask_restart(one))]
        until(lambda: isinstance(session.state(), BackingOff), what="the end of the first")
        tickets.append((other, ask_restart(other)))
        for _ in range(ASKED):
            other.resize(30, 90)
        closed.unlink()
        assert [outcome(link, ticket) for link, ticket in tickets] == [[b"2"], [b"2"]]
    session.stop(now=True)


def ask_restart(link: Link) -> int:
    """Have the holder restart the program, without waiting for that."""
    return int(link._post(wire.RESTART, b"1", wire.pack()))  # type: ignore[attr-defined]


@pytest.mark.parametrize("how", ["stop", "TERM"])
def test_a_stop_ends_a_start_that_is_under_way(gated: Registry, closed: Path, tmp_path: Path, how: str) -> None:
    session, holder = shell_and_holder(gated)
    with session.link() as link:
        closed.touch()
        leave(link)
        if how == "stop":
            session.stop(now=True)
        else:
            holder.terminate()
        until(lambda: isinstance(session.state(), Exited), START_LIMIT, what="the end")
    until(lambda: not leaks.lives(holder), what="the end of the holder")
    state = session.state()
    assert isinstance(state, Exited) and state.code == 3
    until(lambda: not left(tmp_path), what=lambda: left(tmp_path))


@pytest.mark.parametrize("part", some(range(12), 3))
def test_a_stop_at_any_moment_of_a_restart_by_policy_ends_all(root: Path, tmp_path: Path, part: int) -> None:
    """From the end of the program over the pause, half a second long, to its next start and a moment beyond."""
    registry = Registry(root, backend=PlacedBackend(NextDoor(tmp_path, python=None)))
    session = registry.start(
        "program", Command(("/bin/sh", "-c", "read x; exit 3")), lifetime="detached", restart="always"
    )
    holder = holder_of(session)
    session.send(b"go\n")
    until(lambda: isinstance(session.state(), BackingOff), what="the pause")
    time.sleep(part * 0.06)
    session.stop(now=True)
    assert isinstance(session.state(), Exited), session.state()
    until(lambda: not leaks.lives(holder), what="the end of the holder")
    until(lambda: not left(tmp_path), what=lambda: left(tmp_path))


CARRIER = """
import os, subprocess, sys, time
there = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
while data := os.read(0, 65536):
    time.sleep(0.2)
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
        # Not Session.stop, which would use force after five seconds without an answer.
        with contextlib.suppress(SessionNotRunning):
            assert outcome(link, link._post(wire.STOP, b"0", b"1")) == []  # type: ignore[attr-defined]
    until(lambda: not leaks.lives(holder), what="the end of the holder")
