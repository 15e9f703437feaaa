"""What sessions use, measured on real programs."""

from __future__ import annotations

import sys
import time

import pytest

from rounds import DEADLINE, until
from session_magics import Command, Registry, Session, usage
from session_magics.usage import SHORTEST, Usage, UsageMeter

BURN = "i=0; while :; do i=$((i+1)); done"
LISTEN_ONCE = "import socket; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)"
LISTEN = (
    f"{LISTEN_ONCE}; import subprocess, sys; subprocess.run([sys.executable, '-c', {LISTEN_ONCE + '; s.accept()'!r}])"
)


def measured(meter: UsageMeter, registry: Registry, session: Session) -> Usage:
    return meter.measure(registry.infos())[session.id]


def after(seconds: float, meter: UsageMeter, registry: Registry, session: Session) -> Usage:
    """What it has used in so many seconds from now on."""
    began = time.monotonic()
    until(lambda: time.monotonic() - began > seconds)
    return measured(meter, registry, session)


def test_the_processor_is_measured_between_two_looks(real: Registry) -> None:
    busy = real.start("busy", Command(("sh", "-c", BURN)))
    idle = real.start("idle", Command(("sleep", "100")))
    meter = UsageMeter()
    meter.measure(real.infos())
    # Again where this process or that one was kept from running meanwhile.
    until(lambda: 5 < after(3 * SHORTEST, meter, real, busy).cpu < 130)
    assert measured(meter, real, idle).cpu < 5


def test_children_that_have_ended_count(real: Registry) -> None:
    """A build is made of short processes, each over before the next look."""
    code = "import time\nwhile time.process_time() < 0.05: pass"
    session = real.start("build", Command(("sh", "-c", f"while :; do {sys.executable} -I -S -c '{code}'; done")))
    meter = UsageMeter()
    measured(meter, real, session)
    until(lambda: after(5 * SHORTEST, meter, real, session).cpu > 10)  # the one that runs just then has 5 at most


def test_two_looks_at_once_agree(real: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "SHORTEST", 60.0)
    session = real.start("busy", Command(("sh", "-c", BURN)))
    meter = UsageMeter()
    assert measured(meter, real, session).cpu == measured(meter, real, session).cpu


def test_memory_is_that_of_the_whole_tree(real: Registry) -> None:
    hold = "import sys, time; data = bytearray(60_000_000); print('ready', flush=True); time.sleep(100)"
    session = real.start("two", Command(("sh", "-c", f'{sys.executable} -c "{hold}" & {sys.executable} -c "{hold}"')))
    until(lambda: session.tail().count("ready") == 2)
    assert 120_000_000 < measured(UsageMeter(), real, session).memory < 250_000_000


def test_ports_of_the_whole_tree_are_found(real: Registry) -> None:
    session = real.start("web", Command((sys.executable, "-c", LISTEN)))
    until(lambda: session.output().count(b"\n") == 2)
    ports = sorted(int(port) for port in session.tail().split())
    assert measured(UsageMeter(), real, session).ports == tuple(ports)


def test_a_new_process_is_asked_for_its_ports_at_once(real: Registry) -> None:
    meter = UsageMeter()
    one = real.start("one", Command(("sleep", "100")))
    assert measured(meter, real, one).ports == ()
    web = real.start("web", Command((sys.executable, "-c", LISTEN)))
    until(lambda: web.output().count(b"\n") == 2)
    assert len(measured(meter, real, web).ports) == 2


@pytest.mark.parametrize("what", ["ended", "removed"])
def test_what_is_over_uses_nothing(real: Registry, what: str) -> None:
    session = real.start("one", Command(("true",)))
    session.wait(DEADLINE)
    infos = real.infos()
    if what == "removed":
        real.remove("one")
    assert UsageMeter().measure(infos) == {}


def test_what_a_program_left_behind_counts(real: Registry) -> None:
    session = real.start("left", Command(("sh", "-c", "trap '' HUP; sleep 100 & exit 0")))
    session.wait(DEADLINE)
    assert measured(UsageMeter(), real, session).memory > 0
