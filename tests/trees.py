"""Sessions whose program has started others in every way that is known to outlive a stop, and what is left of them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from rounds import alive, until
from session_magics import Command, Registry
from session_magics.holder.processes import start_tick

# Started by the program of a session: each writes its pid to $PIDS once it is as it is meant to be.
STAY = 'echo $$ >>"$PIDS"; exec sleep 1000'
OBEDIENT = """
sh stay &
nohup sh stay >/dev/null 2>&1 &
setsid sh stay &
(setsid nohup sh stay >/dev/null 2>&1 &)
(setsid env -i PIDS="$PIDS" PATH="$PATH" sh stay >/dev/null 2>&1 &)
sh -c 'echo $$ >>"$PIDS"; kill -STOP $$; sleep 1000' &
"""
STUBBORN = """
sh deaf &
(setsid env -i PIDS="$PIDS" PATH="$PATH" nohup sh deaf >/dev/null 2>&1 &)
"""
SCRIPTS = {"stay": STAY, "deaf": f"trap '' INT TERM HUP; {STAY}"}

# Up to as many as the first argument says hold a slot and fork without end, each for a child that takes a slot or
# exits; the slot of one that is killed is free for the next. All are deaf, and in sessions of their own.
BOMB = """
import fcntl, os, random, sys, time, _signal
for signum in (1, 2, 15, 17):
    _signal.signal(signum, _signal.SIG_IGN)
slots = os.open("slots", os.O_RDWR | os.O_CREAT)
open("pids", "a").write(f"{os.getpid()}\\n")
limit = time.monotonic() + 40  # should the test fail
while time.monotonic() < limit:
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        os.read(reading, 1)
        os.close(reading)
        continue
    random.seed()
    for _ in range(20):
        try:
            fcntl.lockf(slots, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, random.randrange(int(sys.argv[1])))
            break
        except OSError:
            pass
    else:
        os._exit(0)
    os.setsid()
    os.close(reading)
    os.close(writing)
"""


class Tree:
    """A session whose program has started others, and what is left of them."""

    def __init__(self, registry: Registry, place: Path, script: str, count: int, *, backend: str = "native") -> None:
        for name, text in SCRIPTS.items():
            (place / name).write_text(text)
        pids = place / "pids"
        pids.write_text("")
        command = Command(("sh", "-c", script), cwd=str(place), env={"PIDS": str(pids)})
        self.session = registry.start("tree", command, backend=backend)
        until(lambda: len(pids.read_text().splitlines()) >= count, what=pids.read_text)
        leader = self.session.info().pid
        members = [int(line) for line in pids.read_text().splitlines()]
        self.started = {pid: start_tick(pid) for pid in [*members, *([leader] if leader else [])]}
        record = registry.store.run(self.session.id)
        assert record
        self.holder, self.holder_tick = record.holder, record.holder_tick

    def left(self) -> list[int]:
        return [pid for pid, tick in self.started.items() if alive(pid, tick)]

    def kill(self) -> None:
        for pid in self.left():
            with contextlib.suppress(ProcessLookupError):  # gone meanwhile
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def grow(registry: Registry, tmp_path: Path) -> Iterator[Callable[..., Tree]]:
    """Start a tree; whatever becomes of the test, nothing of it is left."""
    grown: list[Tree] = []

    def start(script: str, count: int, *, backend: str = "native") -> Tree:
        grown.append(Tree(registry, tmp_path, script, count, backend=backend))
        return grown[-1]

    yield start
    for tree in grown:
        if alive(tree.holder, tree.holder_tick):
            with contextlib.suppress(ProcessLookupError):
                os.kill(tree.holder, signal.SIGCONT)
        tree.kill()
