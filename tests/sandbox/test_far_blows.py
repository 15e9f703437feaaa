"""Whatever is killed at whatever moment of a cell far away: its true status or lost, soon, and nothing is left."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

import dockers
import sshds
from dockers import Dockerd
from held import record
from rounds import DEADLINE, rounds, sessions, until
from session_magics import Exited, Lost, Registry, Session
from session_magics.errors import SessionNotRunning
from session_magics.shell import Cell

sshd, dockerd, docker_host = sshds.sshd, dockers.dockerd, dockers.docker_host

# Seconds until what has become of a cell is known: five on a machine that does nothing else.
WITHIN = DEADLINE
STATUS = 7
# No child at its end, which a blow could hit: that would be its true status.
SCRIPT = f"f() {{ return {STATUS}; }}; for n in 0 1 2 3 4 5 6 7 8 9; do printf %s $n; sleep 0.03; done; f"
OUTPUT = b"0123456789"


def kill(*pids: int) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def near(session: Session) -> int:
    """The process here that holds the session."""
    return record(session).holder


def clients(session: Session) -> list[int]:
    """What of this side leads there: ssh, or the client of docker."""
    return [one.pid for one in psutil.Process(near(session)).children()]


def what_became_of(cell: Cell, began: float) -> tuple[str, int | None, bytes]:
    """State, status and output of a cell; an end that takes too long fails the test."""
    try:
        while cell.result is None:
            cell.receive(0.05)
            assert time.monotonic() - began < WITHIN, "nothing is known of the cell"
    except SessionNotRunning:
        return "lost", None, b""
    result = cell.result
    return result.state, result.returncode, cell.log.bytes(result.begin, result.end)


def one_round(registry: Registry, name: str, on: str, blow: Callable[[Session], None], pause: float) -> str:
    """Run a cell, strike, and check the end; how it ended."""
    session = registry.shell(name, shell="sh", lifetime="detached", rc=False, on=on)
    with contextlib.closing(session.cell(SCRIPT)) as cell:
        time.sleep(pause)
        began = time.monotonic()
        blow(session)
        state, status, output = what_became_of(cell, began)
    if state == "exited":  # the shell itself was struck, which its holder has seen
        assert status == -signal.SIGKILL
    elif state == "done":
        # A shell tells of a child of the cell that was struck.
        assert (status, output.replace(b"Killed\n", b"")) == (STATUS, OUTPUT)
    else:
        assert state == "lost", (state, status)
        until(lambda: isinstance(session.state(), Lost | Exited), WITHIN, what=session.state)
        assert isinstance(session.state(), Lost), session.state()
    began = time.monotonic()
    registry.remove(name, force=True)
    assert time.monotonic() - began < WITHIN
    return state


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("image", ["tools", "busybox"])
def test_blows_at_a_container(root: Path, docker_host: Dockerd, image: str) -> None:
    """The container, the client, and what holds the session there and here."""
    chance = random.Random(32)
    on = ",".join(
        [f"docker:{docker_host.image(image)}", "network=none", *[f"mount={one}" for one in docker_host.mounts(image)]]
    )
    blows: dict[str, Callable[[Session], object]] = {
        "container": lambda session: [docker_host.remove(one) for one in docker_host.containers()],
        "main": lambda session: kill(*(one.pid for one in docker_host.processes() if "sleep 86400" in line(one))),
        "client": lambda session: kill(*clients(session)),
        "holder here": lambda session: kill(near(session)),
        "everything there": lambda session: kill(*(one.pid for one in docker_host.processes())),
        "something there": lambda session: kill(*one_of(chance, docker_host.processes())),
    }
    rounds_of(root, on, blows, docker_host.containers)


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", ["python", "bare"])
def test_blows_at_a_host(root: Path, sshd: sshds.Sshd, kind: str) -> None:
    """The connection at its far and near end, and what holds the session there and here."""
    chance = random.Random(33)
    host = "far" if kind == "python" else sshd.host("bash", bare=True)
    blows: dict[str, Callable[[Session], object]] = {
        "connection": lambda session: sshd.kill_connections(),
        "ssh": lambda session: kill(*clients(session)),
        "holder here": lambda session: kill(near(session)),
        "everything there": lambda session: kill(*(one.pid for one in sshd.running())),
        "something there": lambda session: kill(*one_of(chance, sshd.running())),
    }
    rounds_of(root, f"ssh:{host},config={sshd.config}", blows, lambda: [line(one) for one in sshd.running()])


def one_of(chance: random.Random, processes: list[psutil.Process]) -> list[int]:
    """The pid of one of them, if there is any."""
    return [process.pid for process in chance.sample(processes, min(1, len(processes)))]


def line(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def rounds_of(
    root: Path, on: str, blows: dict[str, Callable[[Session], object]], left: Callable[[], list[str]]
) -> None:
    generator, ends = random.Random(31), dict.fromkeys(blows, "")
    with sessions(root) as registry:
        for number in range(rounds(len(blows), 25)):
            name = list(blows)[number % len(blows)]
            end = one_round(registry, f"blow{number}", on, blows[name], generator.uniform(0.0, 0.45))  # type: ignore[arg-type]
            ends[name] += " " + end
            until(lambda: not left(), WITHIN, what=lambda name=name, end=end: (name, end, left()))
    sys.stdout.write(f"{on.partition(',')[0]}: {ends}\n")
