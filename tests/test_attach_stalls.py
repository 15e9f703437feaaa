"""``attach``: a terminal, program or holder that hangs slows nobody else, and can be left."""

from __future__ import annotations

import os
import signal
import sys
import time

import psutil
import pytest

import attachable
from attachable import keys, settled
from rounds import DEADLINE, until
from session_magics import Command, Registry
from terminals import DETACH, attached

pytestmark = pytest.mark.timeout(120)
registry = attachable.registry


def test_a_terminal_that_reads_nothing_slows_nobody_and_catches_up(registry: Registry) -> None:
    code = "import sys, time; sys.stdin.readline(); t = time.monotonic()\n"
    code += "for n in range(100_000): sys.stdout.write(f'{n:060d}\\n')\n"
    code += "sys.stdout.flush(); print('took', time.monotonic() - t); sys.stdin.readline()"
    session = registry.start("flood", Command((sys.executable, "-c", code)))
    with attached("flood") as terminal:
        terminal.told("detaches")
        terminal.stall(True)
        terminal.type("\r")  # which takes the line away: from then on output passes as it comes
        until(lambda: b"took" in session.output(max(0, session.info().log_bytes - 99)), 2 * DEADLINE)
        terminal.stall(False)
        terminal.until("took", "99999")
        assert len(terminal.raw) < 2_000_000
        terminal.type(DETACH)
        assert terminal.wait() == 0
        settled(terminal)


def test_a_stalled_terminal_can_still_be_left(registry: Registry) -> None:
    session = registry.start("yes", Command(("sh", "-c", "echo ready; read word; yes | head -c 300000; exec cat")))
    with attached("yes") as terminal:
        terminal.told("detaches")
        terminal.until("ready")
        terminal.stall(True)
        terminal.type("\r")  # which takes the line away: from then on output passes as it comes
        until(terminal.full)
        used, began = psutil.Process(terminal.process.pid).cpu_times().user, time.monotonic()
        terminal.type("z" * 100)  # it is awake, and not busy
        until(lambda: session.output().count(b"z") == 100)
        busy = psutil.Process(terminal.process.pid).cpu_times().user - used
        assert busy < 0.1 + (time.monotonic() - began) / 2
        terminal.type(DETACH)
        assert terminal.wait() == 0
        terminal.stall(False)
        terminal.until("detached:")
        settled(terminal)


def test_a_program_that_does_not_read_keeps_nobody_from_leaving(registry: Registry) -> None:
    code = "import tty, time; tty.setraw(0); print('deaf', flush=True); time.sleep(1000)"
    registry.start("deaf", Command((sys.executable, "-c", code))).wait_for("deaf", DEADLINE)
    with attached("deaf") as terminal:
        terminal.told("detaches")
        for _ in range(600):
            terminal.type(b"x" * 4000)
        terminal.told("the program does not read: what was typed is dropped")
        terminal.type(DETACH)
        assert terminal.wait() == 0
        settled(terminal)


def test_a_stopped_holder_keeps_nobody_from_leaving(registry: Registry) -> None:
    from session_magics.store.records import read_run

    session = keys(registry)
    run = read_run(str(session.directory))
    assert run is not None
    with attached("k") as terminal:
        terminal.told("detaches")
        os.kill(run.holder, signal.SIGSTOP)
        try:
            terminal.type("a")
            terminal.told("keys are dropped", "did not answer")
            terminal.type(DETACH)
            assert terminal.wait() == 0
        finally:
            os.kill(run.holder, signal.SIGCONT)
