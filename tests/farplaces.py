"""A place on this machine that is reached over pipes alone, with a home of its own; and sessions that run there."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil
import pytest

from held import record
from rounds import DEADLINE, until
from session_magics import Registry, Running, Session
from session_magics.backends import Start
from session_magics.backends.far import FarBackend
from session_magics.environment import COOKIE
from session_magics.holder import trees
from session_magics.log import EventReader
from session_magics.model import Command
from session_magics.sandbox import Probe, Sandbox

# Seconds in which a connection is there again, or the session lost: five on a machine that does nothing else.
WITHIN = DEADLINE
SLEEP = Command(("sh", "-c", "echo up; exec sleep 1000"))


@dataclass
class NextDoor:
    """Runs programs on this machine, as ssh and docker do elsewhere; the parts of a sandbox that sessions need."""

    home: Path
    python: str | None = sys.executable
    before: Sequence[str] = ()
    place: str = "next-door"
    root: str = "/"
    cleaning: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    def probe(self) -> Probe:
        return Probe("Linux", str(self.home), "me", self.python, {"bash": "/bin/bash", "sh": "/bin/sh"})

    def wrap(self, command: Command, *, terminal: bool = False) -> Command:
        folders = {"HOME": str(self.home), "TMPDIR": str(self.home), "XDG_STATE_HOME": None}
        env = {**folders, **self.env, **command.env}
        return Command((*self.before, *command.argv), command.cwd or str(self.home), env)

    def cleanup(self) -> tuple[str, ...]:
        return self.cleaning


class PlacedBackend(FarBackend):
    """Starts all sessions at one place, whatever was asked."""

    def __init__(self, place: Sandbox | NextDoor) -> None:
        self.place = place

    def start(self, start: Start) -> None:
        env = {COOKIE: start.spec.id} | {name: start.env[name] for name in ("PS1", "PS2") if name in start.env}
        spec = replace(start.spec, cwd="" if start.spec.cwd == os.getcwd() else start.spec.cwd)
        super().start(replace(start, spec=spec, place=self.place, env=env))  # type: ignore[arg-type]


def far_directories(home: Path) -> list[str]:
    """What sessions have at a place."""
    folder = home / ".local" / "state" / "session-magics-far"
    return sorted(one for one in os.listdir(folder) if not one.startswith("code-")) if folder.is_dir() else []


def far_holders(home: Path) -> list[int]:
    """The holders of the sessions there."""
    found = []
    for name in far_directories(home):
        with contextlib.suppress(OSError, ValueError):  # it ends at this moment
            text = (home / ".local" / "state" / "session-magics-far" / name / "run.json").read_text()
            found.append(int(json.loads(text)["holder"]))
    return found


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """The home of the place next door; no session may have left anything there."""
    yield tmp_path
    until(lambda: not far_directories(tmp_path), what=lambda: far_directories(tmp_path))


@pytest.fixture
def place(home: Path) -> NextDoor:
    return NextDoor(home)


@pytest.fixture
def there(root: Path, place: NextDoor) -> Iterator[Registry]:
    registry = Registry(root, backend=PlacedBackend(place))
    yield registry
    registry.stop_all(now=True)


def connections(session: Session) -> list[int]:
    """The pid of the program that leads to the place, if there is one at this moment."""
    return [one.pid for one in psutil.Process(record(session).holder).children()][:1]


def drop(session: Session, number: int = signal.SIGKILL) -> None:
    """Kill the connection, if there is one."""
    for pid in connections(session):
        with contextlib.suppress(ProcessLookupError):  # it ended by itself
            os.kill(pid, number)


def carrying(session: Session) -> list[int]:
    return list(trees.carrying(f"SESSION_MAGICS_SESSION={session.id}".encode()))


def faults(session: Session) -> list[object]:
    return [event.data for event in EventReader(session.directory).events()[0] if event.kind == "fault"]


def over(session: Session) -> bool:
    return not isinstance(session.state(), Running)
