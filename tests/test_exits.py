"""Callbacks at the end of a session (row C5)."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from queue import Queue

import pytest

from held import record
from holders import holder
from rounds import DEADLINE, until
from session_magics import Command, Exited, Lost, Registry, Session, SessionNotRunning, UsageMistake, exits
from session_magics.backends import Link
from session_magics.exits import ExitWatch
from session_magics.model import State, Unknown
from session_magics.news import News

# How often something quick may be held up by other work of the machine.
TRIES = 5
WAITING = Command(("sh", "-c", "read line; echo over; exit 3"))


def told_after(real: Registry) -> float:
    """Seconds from the end of a program to the call, which finds the end and all that was said on record."""
    session = real.start("a", WAITING)
    told: Queue[tuple[float, Session]] = Queue()
    session.on_exit(lambda ended: told.put((time.time(), ended)))
    session.send("\r")
    at, ended = told.get(timeout=DEADLINE)
    state = ended.state()
    assert isinstance(state, Exited) and state.code == 3 and ended.tail(1) == "over"
    return at - state.at


def test_c5_the_end_is_told_within_half_a_second_with_all_that_was_said(
    real: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exits, "STATE_CHECK", 3 * DEADLINE)  # it is told, and not found at the next look
    assert any(told_after(real) < 0.5 for _ in range(TRIES))


def test_of_what_has_ended_already_it_is_told_at_once(real: Registry) -> None:
    session = real.start("a", Command(("true",)))
    session.wait()
    told = threading.Event()
    session.on_exit(lambda _: told.set())
    assert told.wait(DEADLINE)


def test_what_cannot_be_called_is_refused_at_once(real: Registry) -> None:
    session = real.start("a", WAITING)
    with pytest.raises(UsageMistake, match="on_exit takes a function"):
        session.on_exit("over")  # type: ignore[arg-type]


def test_a_restart_by_policy_is_no_end_and_a_stop_is_one(real: Registry) -> None:
    session = real.start("a", Command(("sleep", "1000")), restart="always")
    told = threading.Event()
    session.on_exit(lambda _: told.set())
    os.kill(record(session).pid, signal.SIGKILL)
    until(lambda: session.info().generation == 2)
    assert not told.is_set()
    session.stop()
    assert told.wait(DEADLINE)


def test_a_killed_holder_is_an_end_too(real: Registry) -> None:
    session = real.start("a", Command(("sleep", "1000")))
    told: Queue[Session] = Queue()
    session.on_exit(told.put)
    os.kill(holder(session), signal.SIGKILL)
    assert isinstance(told.get(timeout=DEADLINE).state(), Lost)
    session.stop()


def test_a_cancelled_watch_is_silent_and_leaves_nothing(real: Registry) -> None:
    session = real.start("a", WAITING)
    told: list[Session] = []
    before = set(threading.enumerate())
    watch = session.on_exit(told.append)
    watch.cancel()
    watch.cancel()
    assert set(threading.enumerate()) <= before
    session.send("\r")
    session.wait()
    assert told == []


def test_a_watch_may_be_cancelled_from_its_call(real: Registry) -> None:
    session = real.start("a", WAITING)
    done = threading.Event()
    watch = session.on_exit(lambda _: (watch.cancel(), done.set()))
    session.send("\r")
    assert done.wait(DEADLINE)


def test_a_watch_that_is_cancelled_while_it_calls_writes_to_no_descriptor_of_others(real: Registry) -> None:
    session = real.start("a", Command(("true",)))
    session.wait()
    opened: Queue[tuple[int, int]] = Queue()
    go_on = threading.Event()

    def call(_: Session) -> None:
        opened.put(os.pipe())  # it gets the numbers of those that the watch has given up
        go_on.wait(DEADLINE)

    watch = session.on_exit(call)
    reading, writing = opened.get(timeout=DEADLINE)
    cancelling = threading.Thread(target=watch.cancel)
    cancelling.start()
    assert select.select([reading], [], [], 0.3)[0] == []
    go_on.set()
    cancelling.join()
    os.close(reading)
    os.close(writing)


def test_a_state_that_cannot_be_read_is_no_end() -> None:
    states: list[State] = [Exited(0, None, 1.0), *[Unknown("too many open files")] * 6]
    told: Queue[int] = Queue()

    def state() -> State:
        return states.pop() if len(states) > 1 else states[0]

    def connect() -> Link:
        raise SessionNotRunning("a", "unknown")

    ExitWatch(lambda: News(connect, state), "a", lambda: told.put(len(states)))
    assert told.get(timeout=DEADLINE) == 1
