"""Waiting for ports and for silence, on real programs."""

from __future__ import annotations

import sys
import time

import pytest

from session_magics import Command, Registry, SessionNotRunning, WaitTimeout
from session_magics.readiness import wait_port, wait_silence

LISTEN = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)"
LATE = f"import time; time.sleep(0.3); {LISTEN}; time.sleep(100)"


def test_a_port_that_is_opened_later_is_waited_for(real: Registry) -> None:
    session = real.start("web", Command(("sh", "-c", f'{sys.executable} -c "{LATE}"; :')))  # a child of the program
    port = wait_port(session, timeout=20)
    assert port == int(session.tail())
    assert wait_port(session, port, timeout=5) == port


def test_another_port_is_not_taken_for_it(real: Registry) -> None:
    session = real.start("web", Command((sys.executable, "-c", f"{LISTEN}; time.sleep(100)")))
    port = wait_port(session, timeout=20)
    with pytest.raises(WaitTimeout, match=f"port {port + 1}"):
        wait_port(session, port + 1, timeout=0.2)


def test_a_port_of_another_session_does_not_count(real: Registry) -> None:
    wait_port(real.start("web", Command((sys.executable, "-c", f"{LISTEN}; time.sleep(100)"))), timeout=20)
    with pytest.raises(WaitTimeout, match="a port"):
        wait_port(real.start("none", Command(("sleep", "100"))), timeout=0.2)


def test_a_program_that_ends_without_a_port_is_told(real: Registry) -> None:
    with pytest.raises(SessionNotRunning, match="exited 3 before it listened on a port"):
        wait_port(real.start("one", Command(("sh", "-c", "exit 3"))), timeout=20)


def test_silence_is_waited_for(real: Registry) -> None:
    session = real.start(
        "steps", Command(("sh", "-c", "for n in 1 2 3; do echo $n; sleep 0.2; done; echo over; read x"))
    )
    began = time.monotonic()
    wait_silence(session, 0.4, timeout=20)
    assert "over" in session.tail() and time.monotonic() - began > 0.9


def test_a_program_that_goes_on_printing_is_never_silent(real: Registry) -> None:
    session = real.start("loud", Command(("sh", "-c", "while :; do echo x; sleep 0.05; done")))
    with pytest.raises(WaitTimeout, match=r"0\.5 s of silence"):
        wait_silence(session, 0.5, timeout=1)


def test_the_end_of_a_program_is_silence(real: Registry) -> None:
    began = time.monotonic()
    wait_silence(real.start("one", Command(("sh", "-c", "sleep 0.2"))), 60)
    assert time.monotonic() - began < 30
