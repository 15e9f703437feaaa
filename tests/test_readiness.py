"""Waiting for ports and for silence, on real programs; when silence begins anew, by a clock of the test's own."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from rounds import DEADLINE
from session_magics import Command, Registry, SessionNotRunning, WaitTimeout, readiness
from session_magics.readiness import wait_port, wait_silence

LISTEN = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)"
LATE = f"import time; time.sleep(0.3); {LISTEN}; time.sleep(100)"
PRINTED = r"\d+\n"
"""A whole number: the program listens before it says where."""


def test_a_port_that_is_opened_later_is_waited_for(real: Registry) -> None:
    session = real.start("web", Command(("sh", "-c", f'{sys.executable} -c "{LATE}"; :')))  # a child of the program
    port = wait_port(session, timeout=DEADLINE)
    assert port == int(session.wait_for(PRINTED, DEADLINE))
    assert wait_port(session, port, timeout=DEADLINE) == port


def test_another_port_is_not_taken_for_it(real: Registry) -> None:
    session = real.start("web", Command((sys.executable, "-c", f"{LISTEN}; time.sleep(100)")))
    port = wait_port(session, timeout=DEADLINE)
    with pytest.raises(WaitTimeout, match=f"port {port + 1}"):
        wait_port(session, port + 1, timeout=0.2)


def test_a_port_of_another_session_does_not_count(real: Registry) -> None:
    wait_port(real.start("web", Command((sys.executable, "-c", f"{LISTEN}; time.sleep(100)"))), timeout=DEADLINE)
    with pytest.raises(WaitTimeout, match="a port"):
        wait_port(real.start("none", Command(("sleep", "100"))), timeout=0.2)


def test_a_program_that_ends_without_a_port_is_told(real: Registry) -> None:
    with pytest.raises(SessionNotRunning, match="exited 3 before it listened on a port"):
        wait_port(real.start("one", Command(("sh", "-c", "exit 3"))), timeout=DEADLINE)


def test_silence_is_waited_for(real: Registry) -> None:
    session = real.start("steps", Command(("sh", "-c", "echo over; read x")))
    session.wait_for("over", DEADLINE)
    began = time.monotonic()
    wait_silence(session, 0.4, timeout=DEADLINE)
    assert time.monotonic() - began >= 0.4


def test_the_end_of_a_program_is_silence(real: Registry) -> None:
    began = time.monotonic()
    wait_silence(real.start("one", Command(("sh", "-c", "sleep 0.2"))), 60)
    assert time.monotonic() - began < 30


class Printing:
    """A session whose program prints at given moments, as its News see it, and the clock, which runs by waiting."""

    name, directory, look = "printing", Path("/"), 1.0

    def __init__(self, *moments: float) -> None:
        self._moments, self.now = moments, 0.0

    def monotonic(self) -> float:
        return self.now

    def printed(self, _directory: str) -> int:
        return sum(moment <= self.now for moment in self._moments)

    def news(self) -> contextlib.AbstractContextManager[Printing]:
        return contextlib.nullcontext(self)

    def running(self) -> bool:
        return True

    def wait(self, position: int, deadline: float) -> bool:
        before, self.now = self.now, min([deadline, self.now + self.look, *self._moments[position:]])
        return before < deadline


@pytest.mark.parametrize(
    ("moments", "over"),
    [((), 0.5), ((0.25, 0.5, 0.75), 1.25), ((0.25, 0.875), 0.75), ((0.0, 0.375, 0.5), 1.0)],
    ids=str,
)
def test_each_output_begins_the_silence_anew(
    monkeypatch: pytest.MonkeyPatch, moments: Sequence[float], over: float
) -> None:
    session = Printing(*moments)
    monkeypatch.setattr(readiness, "time", session)
    monkeypatch.setattr(readiness, "log_end", session.printed)
    wait_silence(session, 0.5, timeout=DEADLINE)
    assert session.now == over


def test_a_program_that_goes_on_printing_is_never_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    session = Printing(*(number / 4 for number in range(1000)))
    monkeypatch.setattr(readiness, "time", session)
    monkeypatch.setattr(readiness, "log_end", session.printed)
    with pytest.raises(WaitTimeout, match=r"0\.5 s of silence"):
        wait_silence(session, 0.5, timeout=100)
    assert session.now == 100
