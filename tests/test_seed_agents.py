"""The rows of the comparison with an older manager of agents that no other test has: C2, C3, C4, C6, C7, C13, C14.

C1, C5 and C11 are in ``test_children``, ``test_exits`` and ``test_tmux_actions``, C10 in ``test_tool_sessions``, C12 in
``test_importing`` and ``test_importing_damage``, C8 and C9 in ``agents``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from floods import expected, flood
from holders import holder
from panes import NEEDED
from rounds import rounds, until, until_state
from rounds import sessions as running
from session_magics import Command, Exited, Lost, Registry, Session
from session_magics.display.feed import Feed
from session_magics.holder import processes
from session_magics.store import Store
from terminals import DETACH, attached

pytestmark = NEEDED
MB = 1 << 20
CAT = Command(("cat",))


@pytest.fixture(params=["native", "tmux"])
def registry(root: Path, request: pytest.FixtureRequest) -> Iterator[Registry]:
    opened = Registry(root, backend=request.param)
    yield opened
    opened.stop_all(now=True)


class Flood:
    """A session that prints so many bytes when told; each tells by itself where it belongs."""

    def __init__(self, registry: Registry, name: str = "flood") -> None:
        self.count = registry.store.root / f"count-{name}"
        self.session = registry.start(name, Command(flood(str(self.count))))
        self.printed = 1
        self.arrived()

    def arrived(self) -> None:
        until(lambda: self.session.info().log_bytes >= self.printed, 60, what=self.session.info)

    def more(self, size: int) -> None:
        self.session.send(f"{size}\n")
        self.printed += size


def test_c2_a_mebibyte_of_scrollback_is_kept_to_the_byte(registry: Registry) -> None:
    source = Flood(registry)
    for size in (MB - 1, 1, MB):  # less than it, exactly, and more
        source.more(size)
        source.arrived()
        assert source.session.output() == expected(0, source.printed)
    source.session.stop()
    assert source.session.output(source.printed - MB) == expected(source.printed - MB, MB)


def test_c2_who_attaches_is_shown_what_was_there(registry: Registry) -> None:
    session = registry.start("a", CAT)
    for line in ("the first line", "the last line"):
        session.send(f"{line}\r")
    session.wait_for("the last line\r?\n(.|\n)*the last line", 20)
    with attached("a") as terminal:
        terminal.until("the first line", "the last line")
        terminal.type(DETACH)
        assert terminal.wait() == 0


def test_c3_whoever_comes_while_it_prints_gets_all_of_it_once(registry: Registry) -> None:
    """What is there already, then what comes: no gap and no byte twice, for many who come at odd moments."""
    source, wrong = Flood(registry), []

    def follow(begin: int) -> None:
        at = begin
        for data in source.session.follow(begin):
            if data != expected(at, len(data)):
                wrong.append((begin, at))
                return
            at += len(data)
        if at != source.printed:
            wrong.append((begin, at))

    threads = []
    chance = random.Random(3)
    for _ in range(rounds(8, 40)):
        source.more(MB)  # a machine that stalls has all of it printed before the next follower comes: so there is more
        begin = chance.choice((0, source.session.info().log_bytes, chance.randrange(source.session.info().log_bytes)))
        threads.append(threading.Thread(target=follow, args=(begin,)))
        threads[-1].start()
    source.arrived()
    source.session.stop()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_c4_a_size_is_set_once_kept_and_given_to_the_next_start(registry: Registry) -> None:
    session = registry.start("a", Command((sys.executable, "-c", SIZES)), size=(36, 120))
    session.wait_for("36 120", 20)
    session.resize(40, 100)
    session.wait_for("40 100", 20)
    before = session.info().log_bytes
    registry.restart("a")
    assert session.info().size == (40, 100)
    until(lambda: b"40 100" in session.output(before))


def test_c13_a_size_outlives_a_kill_of_everybody(registry: Registry) -> None:
    session = registry.start("a", CAT, size=(36, 120))
    session.resize(40, 100)
    os.kill(holder(session), signal.SIGKILL)
    until_state(session, Lost)
    assert Registry(registry.store.root).get("a").info().size == (40, 100)
    session.stop()


SIZES = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})  # one that comes just before the wait is not missed
signal.signal(signal.SIGWINCH, lambda *_: None)  # a signal that is ignored by default is not kept
while True:
    os.write(1, b"%d %d\\n" % os.get_terminal_size(0)[::-1])
    signal.sigwait({signal.SIGWINCH})
"""

# A manager: starts two sessions, one idle and one that talks, tells so, and waits to be killed.
MANAGER = """
import sys, time
from session_magics import Command, Registry
registry = Registry(backend=sys.argv[1])
registry.start("idle", Command(("cat",)))
registry.start("chatty", Command(("sh", "-c", "while :; do echo talk; sleep 0.01; done")))
print("up", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize("backend", ["native", "tmux"])
def test_c6_sessions_survive_the_kill_of_who_started_them_and_talk_on(root: Path, backend: str) -> None:
    manager = subprocess.Popen((sys.executable, "-c", MANAGER, backend), stdout=subprocess.PIPE)
    try:
        assert manager.stdout is not None and manager.stdout.readline() == b"up\n"
    finally:
        manager.kill()
        manager.communicate()
    with running(root) as registry:
        idle, chatty = registry.get("idle"), registry.get("chatty")
        seen = chatty.info().log_bytes
        until(lambda: chatty.info().log_bytes > seen + 240)
        assert chatty.output(0, 240) == b"talk\r\n" * 40, "more than the screen: all from the beginning"
        idle.send("are you there\r")
        idle.wait_for("are you there\r?\n(.|\n)*are you there", 20)


@pytest.mark.parametrize("backend", ["native", "tmux"])
def test_c7_nobody_ends_sessions_that_are_not_their_own_or_cannot_be_read(root: Path, backend: str) -> None:
    """A second registry, a broken record and a fresh start with nothing known: all that ran runs on."""
    registry = Registry(root, backend=backend)
    sessions = [registry.start(name, CAT) for name in ("one", "two")]
    pids = {session: (session.info().pid or 0) for session in sessions}
    ticks = {pid: processes.start_tick(pid) for pid in pids.values()}
    other = Registry(root / "other")
    other.store.sweep()
    assert other.infos() == []
    whole = (sessions[0].directory / "spec.json").read_bytes()
    (sessions[0].directory / "spec.json").write_bytes(b"{")
    Store(root).sweep()
    Registry(root).infos()
    assert {pid: processes.start_tick(pid) for pid in ticks} == ticks
    (sessions[0].directory / "spec.json").write_bytes(whole)
    registry.stop_all(now=True)


class Face:
    """A view that notes what it is sent, in order."""

    read_only = False

    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def post(self, content: Mapping[str, Any], *buffers: bytes) -> None:
        self.seen.append(("message", (content, buffers)))

    def show(self, facts: Mapping[str, object]) -> None:
        self.seen.append(("facts", facts["state"]))

    def renew(self, still: str, facts: Mapping[str, object]) -> None:
        self.seen.append(("still", still))


def test_c14_the_end_is_told_with_the_last_output_there(registry: Registry) -> None:
    session: Session = registry.start("a", Command(("sh", "-c", "read line; echo the very last words")))
    face, feed = Face(), Feed(session, lambda: None, lambda: None)
    feed.attach(face)  # type: ignore[arg-type]
    session.send("\r")
    until_state(session, Exited)
    feed.look(1000.0)
    feed.close()
    assert ("facts", "exited") in face.seen
    assert face.seen[-1][0] == "still" and "the very last words" in face.seen[-1][1]
    assert json.dumps(face.seen[-1][1])
