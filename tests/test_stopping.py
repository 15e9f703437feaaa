"""Stopping a session through its handle: grace, haste, holders that hang or are gone, sessions within sessions."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import trees
from rounds import DEADLINE, alive, rounds, sessions, until, until_state
from session_magics import (
    Command,
    Exited,
    Lost,
    Registry,
    Running,
    Session,
    SessionError,
    SessionNotRunning,
    run_cell,
)
from session_magics.holder.processes import start_tick
from trees import OBEDIENT, SCRIPTS, STAY, STUBBORN, Tree

LONG = 600.0  # a grace, in seconds, that no test sits out
PACKAGES = str(Path(__file__).parents[1])

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers"),
    pytest.mark.timeout(rounds(60, 300)),
]

grow = trees.grow


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    with sessions(root) as opened:
        yield opened


def test_a_stop_ends_all_that_obeys_at_once(grow: Callable[..., Tree]) -> None:
    tree = grow(OBEDIENT + STAY, 7)
    assert len(tree.left()) == 7
    tree.session.stop(LONG)
    assert tree.left() == []
    state = tree.session.state()
    assert isinstance(state, Exited)
    assert state.signal == signal.SIGTERM


def test_a_stop_gives_the_deaf_their_grace_and_then_kills(grow: Callable[..., Tree]) -> None:
    tree = grow(OBEDIENT + STUBBORN + SCRIPTS["deaf"], 9)
    began = time.monotonic()
    tree.session.stop(0.5)
    assert time.monotonic() - began >= 0.5
    assert tree.left() == []
    state = tree.session.state()
    assert isinstance(state, Exited)
    assert state.signal == signal.SIGKILL


def test_a_stop_now_gives_no_grace(grow: Callable[..., Tree]) -> None:
    tree = grow(STUBBORN + SCRIPTS["deaf"], 3)
    tree.session.stop(LONG, now=True)
    assert tree.left() == []


@pytest.mark.parametrize("second", [{"now": True}, {"grace": 0.2}])
def test_supervisor_1073_a_second_stop_cuts_a_long_grace_short(
    grow: Callable[..., Tree], second: dict[str, float]
) -> None:
    tree = grow("sh stay &\n" + STUBBORN + SCRIPTS["deaf"], 4)
    first = threading.Thread(target=lambda: tree.session.stop(LONG))
    first.start()
    until(lambda: len(tree.left()) == 3)  # all were asked, and the one that obeys is gone
    tree.session.stop(**second)
    first.join(DEADLINE)
    assert not first.is_alive()
    assert tree.left() == []


def test_a_stop_ends_what_an_ended_program_left_behind(grow: Callable[..., Tree]) -> None:
    leave = """trap '' HUP; sh stay & setsid sh stay & until [ "$(wc -l <"$PIDS")" = 2 ]; do sleep 0.01; done; exit 6"""
    tree = grow(leave, 2)
    until(lambda: getattr(tree.session.state(), "background", False))
    state = tree.session.stop(LONG)
    assert isinstance(state, Exited)
    assert state.code == 6
    assert tree.left() == []
    until(lambda: not getattr(tree.session.state(), "background", True))


def test_honcho_32_a_term_to_the_holder_is_a_stop(grow: Callable[..., Tree]) -> None:
    tree = grow(OBEDIENT + STAY, 7)
    os.kill(tree.holder, signal.SIGTERM)
    until(lambda: not alive(tree.holder, tree.holder_tick))
    assert tree.left() == []
    state = tree.session.state()
    assert isinstance(state, Exited)
    assert (state.signal, state.background) == (signal.SIGTERM, False)


def test_a_holder_that_is_killed_loses_its_session_alone(grow: Callable[..., Tree], registry: Registry) -> None:
    other = registry.start("other", Command(("sh", "-c", "while :; do echo tick; sleep 0.01; done")))
    untouched = other.state()
    tree = grow(STAY, 1)
    os.kill(tree.holder, signal.SIGKILL)
    until(lambda: tree.session.state() == Lost("holder killed"), what=tree.session.state)
    until(lambda: tree.left() == [])  # the terminal is gone: HUP
    with pytest.raises(SessionNotRunning, match="lost"):
        tree.session.wait(DEADLINE)
    with pytest.raises(SessionNotRunning, match="lost"):
        tree.session.send("x")
    size = other.info().log_bytes
    until(lambda: other.info().log_bytes > size)
    assert other.state() == untouched
    assert registry.start("tree", Command(("true",))).wait(DEADLINE) == 0


def test_what_outlives_its_holder_is_found_by_a_stop(grow: Callable[..., Tree]) -> None:
    tree = grow("trap '' HUP\nsh stay &\nsetsid sh stay &\n" + STUBBORN.splitlines()[1] + "\n" + SCRIPTS["deaf"], 4)
    os.kill(tree.holder, signal.SIGKILL)
    until_state(tree.session, Lost)
    assert len(tree.left()) == 4
    assert tree.session.stop(0.5) == Lost("holder killed")
    assert tree.left() == []


# ---------------------------------------------------------------- sessions within sessions

NEST = """
import sys; sys.path.insert(0, {packages!r})
from session_magics import Command, Registry
command = Command(("sh", "-c", "setsid sleep 1000 & echo up; exec sleep 1000"))
session = Registry().start("inner", command, lifetime={lifetime!r})
session.wait_for("up", 60)
if {lifetime!r} == "kernel":
    import time
    time.sleep(1000)
"""


@pytest.fixture
def outer(registry: Registry) -> Session:
    return registry.shell("outer", lifetime="detached", rc=False)


def nest(registry: Registry, outer: Session) -> Session:
    """Start a detached session from inside another one."""
    code = NEST.format(packages=PACKAGES, lifetime="detached")
    run_cell(outer, f"{sys.executable} - <<'END'\n{code}\nEND")
    return registry.get("inner")


def test_a_session_started_inside_another_is_not_a_part_of_it(registry: Registry, outer: Session) -> None:
    inner = nest(registry, outer)
    state = inner.state()
    assert isinstance(state, Running)
    outer_record, inner_record = registry.store.run(outer.id), registry.store.run(inner.id)
    assert outer_record
    assert inner_record
    assert Path(f"/proc/{inner_record.holder}/stat").read_text().rsplit(")")[1].split()[1] == str(outer_record.holder)
    outer.stop()
    until(lambda: not alive(outer_record.holder, outer_record.holder_tick))
    assert inner.state() == state
    assert alive(state.pid, start_tick(state.pid))
    assert isinstance(inner.stop(), Exited)


@pytest.mark.parametrize("how", ["is stopped by its holder", "is stopped without its holder", "loses its holder"])
def test_an_inner_session_outlives_every_end_of_the_outer(registry: Registry, outer: Session, how: str) -> None:
    inner = nest(registry, outer)
    state = inner.state()
    record = registry.store.run(outer.id)
    assert record
    if how == "is stopped by its holder":
        os.kill(record.holder, signal.SIGTERM)
        until(lambda: not alive(record.holder, record.holder_tick))
    elif how == "is stopped without its holder":
        os.kill(record.holder, signal.SIGSTOP)
        outer.stop(now=True)
        os.kill(record.holder, signal.SIGCONT)
    else:
        os.kill(record.holder, signal.SIGKILL)
        until_state(outer, Lost)
        outer.stop()
    assert inner.state() == state
    inner.stop()
    with pytest.raises(SessionError):
        inner.send("x")


def test_a_kernels_session_within_a_session_goes_with_both(registry: Registry, outer: Session) -> None:
    code = NEST.format(packages=PACKAGES, lifetime="kernel")
    run_cell(outer, f"{sys.executable} - <<'END' &\n{code}\nEND")
    until(lambda: len(registry.infos()) == 2)
    [info] = [one for one in registry.infos() if one.name != "outer"]
    until(lambda: isinstance(registry.store.state(info.id), Running))
    record = registry.store.run(info.id)
    assert record
    outer.stop()
    until(lambda: not info.directory.exists())
    until(lambda: not alive(record.holder, record.holder_tick))


def test_a_stop_without_the_socket_returns_when_the_end_is_on_record(registry: Registry) -> None:
    for _ in range(5):
        session = registry.start("deaf", Command(("sleep", "1000")))
        (session.directory / "sock").unlink()
        state = session.stop(now=True)
        assert isinstance(state, Exited) and not state.background, state
