"""Lines 26 to 30: what is typed arrives or is refused, and a holder that hangs holds nobody up."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import trees
from floods import flood
from holders import MB, cpu, faults, holder
from rounds import DEADLINE, rounds, some, until, until_state
from session_magics import Command, Exited, Registry, Running, SessionBusy, SessionUnresponsive, WaitTimeout
from session_magics.backends import native
from session_magics.cli.viewer import RESIZE_EVERY
from session_magics.holder import launch
from session_magics.log import EventReader
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_verb
from terminals import DETACH, Terminal, attached
from trees import OBEDIENT, STAY, STUBBORN, Tree

BACKENDS = ("native", "tmux")
# Seconds after which a verb that should take two at most counts as one that hangs.
HANGS = rounds(DEADLINE, 8.0)

grow = trees.grow

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc"),
    pytest.mark.timeout(120),
]

# Reads a known number of bytes in raw mode, waits for the gate first if there is one, and tells their hash.
READER = """
import hashlib, os, sys, tty
tty.setraw(0)
os.write(1, b"ready")
if len(sys.argv) > 2:
    open(sys.argv[2]).read()
left, seen = int(sys.argv[1]), hashlib.sha256()
while left:
    data = os.read(0, min(left, 65536))
    seen.update(data)
    left -= len(data)
os.write(1, b" hash " + seen.hexdigest().encode())
os.read(0, 1)
"""

INPUTS = {
    "one byte": b"x",
    "a semicolon": b";",
    "semicolons": b"hello;\\;b;;",
    "an option": b"-t x",
    "keys of tmux": b"C-c Enter #{pid}%H",
    "NUL": b"\0a\0\0b\0",
    "upper half": bytes(range(128, 256)),
    "every byte": bytes(range(256)) * 16,
    "a paste": b"\x1b[200~pasted;\r\x1b[201~;",
    "controls": b"\x03\x04\x11\x13\x1a\x1c\x7f\r\n",
    "4095 bytes": random.Random(1).randbytes(4095),
    "4096 bytes": random.Random(2).randbytes(4096),
    "65537 bytes": random.Random(3).randbytes(65537),
    "1 MB": random.Random(4).randbytes(MB),
}


def python(code: str, *arguments: object) -> Command:
    return Command((sys.executable, "-I", "-S", "-u", "-c", code, *map(str, arguments)))


def hashed(data: bytes) -> str:
    return f"hash {hashlib.sha256(data).hexdigest()}"


@pytest.mark.parametrize("backend", BACKENDS)
def test_line_26_thurbox_651_a_raw_reader_gets_every_byte(registry: Registry, backend: str) -> None:
    """All together first: whatever one leaves behind would spoil the next."""
    every = b"".join(INPUTS.values())
    session = registry.start("all", python(READER, len(every)), backend=backend)
    session.wait_for("ready", DEADLINE)
    for data in INPUTS.values():
        sent = False
        while not sent:
            with contextlib.suppress(SessionBusy):  # told, and nothing taken
                session.send(data)
                sent = True
    assert session.wait_for("hash [0-9a-f]{64}", DEADLINE) == hashed(every)
    assert faults(session) == []


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("what", INPUTS)
def test_line_26_each_input_arrives_whole(registry: Registry, backend: str, what: str) -> None:
    data = INPUTS[what]
    session = registry.start("reader", python(READER, len(data)), backend=backend)
    session.wait_for("ready", DEADLINE)
    session.send(data)
    assert session.wait_for("hash [0-9a-f]{64}", DEADLINE) == hashed(data)


@pytest.mark.parametrize("backend", BACKENDS)
def test_line_27_a_program_that_does_not_read_makes_its_senders_busy(registry: Registry, backend: str) -> None:
    size, gate = 700_000, registry.store.root / "gate"
    os.mkfifo(gate)
    session = registry.start("deaf", python(READER, size + 5, gate), backend=backend)
    session.wait_for("ready", DEADLINE)
    first = random.Random(1).randbytes(size)
    session.send(first)
    began = time.monotonic()
    with pytest.raises(SessionBusy):
        session.send(b"y" * size)
    assert time.monotonic() - began < HANGS
    assert session.tail() == "ready"
    session.resize(30, 90)
    assert session.info().size == (30, 90)
    gate.write_text("go")
    sent = False
    while not sent:
        with contextlib.suppress(SessionBusy):
            session.send(b"last!")
            sent = True
    assert session.wait_for("hash [0-9a-f]{64}", DEADLINE) == hashed(first + b"last!")


def test_line_28_a_long_log_is_drawn_as_one_screen(
    registry: Registry, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    volume = rounds(32 * MB, 1024 * MB)
    plain = launch.encode
    monkeypatch.setattr(native.launch, "encode", lambda **fields: plain(**fields, cap=b"%d" % (2 * volume)))
    session = registry.start("long", Command(flood(str(root / "count"))))
    until(lambda: session.info().log_bytes == 1)
    session.send(f"{volume}\r")
    until(lambda: session.info().log_bytes == volume + 1, 300, what=session.info)
    with attached("long") as terminal:
        last = session.output(volume - 500).decode()
        until(lambda: "".join(terminal.lines).endswith(last), what=lambda: terminal.text)
        assert len(terminal.raw) <= 64 * 1024
        terminal.type(DETACH)
        assert terminal.wait() == 0


# Changes of the size beside those of the two storms: of the attach, and of the keys.
FEW = 10

STORM_CPU = 0.05
TICKS = 0.03  # processor time is told in hundredths of a second


def test_line_29_a_storm_of_resizes_ends_with_the_size_of_the_last_typist(registry: Registry) -> None:
    session = registry.start("k", python("import time, tty; tty.setraw(0); print('ready'); time.sleep(1000)"))
    session.wait_for("ready", DEADLINE)
    pid = holder(session)
    with attached("k", (20, 70)) as leader, attached("k", (22, 72)) as other:
        for terminal in (leader, other):
            terminal.told("detaches")
        used, began = cpu(pid), time.monotonic()
        storms = [
            threading.Thread(target=storm, args=(terminal, rounds(1500, 20_000), rows))
            for terminal, rows in ((leader, 30), (other, 40))
        ]
        for one in storms:
            one.start()
        for one in storms:
            one.join()
        until(lambda: session.info().size[1] == 109, what=session.info)
        taken = time.monotonic() - began
        other.type("a")
        until(lambda: session.info().size[0] == 40, what=session.info)
        leader.type("a")
        until(lambda: session.info().size == (30, 109), what=session.info)
        changes = [event for event in EventReader(session.directory).events()[0] if event.kind == "resize"]
        assert len(changes) <= 2 * (time.monotonic() - began) / RESIZE_EVERY + FEW
        if rounds(0, 1):  # a figure for a machine that does nothing else
            assert cpu(pid) - used <= STORM_CPU * taken + TICKS
        for terminal in (leader, other):
            terminal.type(DETACH)
            assert terminal.wait() == 0
    assert faults(session) == []


def storm(terminal: Terminal, count: int, rows: int) -> None:
    """Change the size so many times, a thousand times a second; it is 109 columns wide in the end."""
    for number in range(count):
        terminal.resize((rows, 60 + (number + 50 - count) % 50))
        time.sleep(0.001)  # the pace of the storm


# ------------------------------------------------------------ a holder that hangs

UNRESPONSIVE = ("send tree x", "interrupt tree", "resize tree 10x20", "stop tree", "restart tree")
READING = ("list", "info tree", "tail tree", "snapshot tree", "show tree")


@pytest.mark.parametrize("backend", BACKENDS)
def test_line_30_no_verb_hangs_on_a_holder_that_hangs(
    grow: Callable[..., Tree], registry: Registry, backend: str
) -> None:
    tree = grow(OBEDIENT + STAY, 7, backend=backend)
    session, verbs = tree.session, Verbs(registry, lambda *_: None)
    os.kill(tree.holder, signal.SIGSTOP)
    for line in some(UNRESPONSIVE, 2) if backend == "tmux" else UNRESPONSIVE:  # a second each
        with bounded(line), pytest.raises(SessionUnresponsive):
            verbs.call(parse_verb(line))
    for line in READING:
        with bounded(line):
            verbs.call(parse_verb(line))
    assert isinstance(session.state(), Running)
    for wait in (session.wait, lambda timeout: session.wait_for("never", timeout)):
        with bounded("wait"), pytest.raises(WaitTimeout):
            wait(0.5)
    os.kill(tree.holder, signal.SIGCONT)
    session.resize(11, 22)
    session.send("x")
    assert session.info().size == (11, 22)
    assert len(tree.left()) == 7
    session.stop()
    assert tree.left() == []


@pytest.mark.parametrize("backend", BACKENDS)
def test_line_30_a_stop_now_ends_everything_without_a_holder_that_hangs(
    grow: Callable[..., Tree], backend: str
) -> None:
    tree = grow(OBEDIENT + STUBBORN + trees.SCRIPTS["deaf"], 9, backend=backend)
    os.kill(tree.holder, signal.SIGSTOP)
    with bounded("stop --now"):
        tree.session.stop(now=True)
    assert tree.left() == []
    os.kill(tree.holder, signal.SIGCONT)
    state = until_state(tree.session, Exited)
    assert isinstance(state, Exited)
    assert state.signal == signal.SIGKILL


@contextlib.contextmanager
def bounded(what: str) -> Iterator[None]:
    """The block may take a while and may not hang."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < HANGS, what
