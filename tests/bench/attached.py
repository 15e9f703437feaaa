"""The command line as a person feels it: how long it starts, how soon a key is echoed."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from report import Figure, median
from session_magics import Command, Registry
from session_magics.cli.terminal import OwnTerminal
from session_magics.cli.viewer import Viewer
from session_magics.text.screen import picture
from terminals import CLI, Terminal, attached

ROUNDS = 15
KEYS = 300
ECHO = "import os, tty; tty.setraw(0); os.write(1, b'ready')\nwhile True: os.write(1, os.read(0, 100))"
# Seconds until nothing of what is shown at the beginning comes any more.
QUIET = 3.0
TEXT = (b"\x1b[32mhello\x1b[0m " + b"x" * 60 + b"\r\n") * 1000


def command_line() -> Iterator[Figure]:
    """`session-magics list`, `attach` until the screen is there, a key until its echo, and one drawing."""
    os.environ["SESSION_MAGICS_HOME"] = tempfile.mkdtemp(prefix="sm")
    registry = Registry()
    session = registry.start("echo", Command((sys.executable, "-c", ECHO)))
    session.wait_for("ready", 10)
    try:
        yield median("session-magics list", [_seconds_of_list() * 1000 for _ in range(ROUNDS)], "ms", 150)
        yield median("attach until the screen is drawn", [_until_drawn() for _ in range(ROUNDS)], "ms")
        firsts = sorted(_first_bytes(registry))
        yield Figure("the same within a process, log at its cap: 95 of 100", firsts[int(len(firsts) * 0.95)], "ms", 50)
        echoes = sorted(_echoes())
        yield median("a key until its echo, through attach", echoes, "ms", 2)
        yield Figure("the same, 99 of 100", echoes[int(len(echoes) * 0.99)], "ms", 20)
        yield median("drawing the screen of 64 KB of text", [_drawing() for _ in range(ROUNDS)], "ms", 150)
    finally:
        registry.stop_all(now=True)


def _seconds_of_list() -> float:
    began = time.perf_counter()
    subprocess.run((*CLI, "list"), stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def _until_drawn() -> float:
    began = time.perf_counter()
    with attached("echo") as terminal:
        while b"ready" not in terminal.raw:
            time.sleep(0.001)
        taken = (time.perf_counter() - began) * 1000
        _leave(terminal)
    return taken


def _first_bytes(registry: Registry) -> Iterator[float]:
    """Milliseconds from the call until the terminal has a byte of the screen, for a session that printed 100 MB."""
    flood = f"yes {'x' * 69} | head -n 1480000; echo finished; exec sleep 1000"
    session = registry.start("flood", Command(("sh", "-c", flood)))
    session.wait_for("finished", 60)
    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    kept = [os.dup(fd) for fd in (0, 1)]
    try:
        for fd in (0, 1):
            os.dup2(theirs, fd)
        for _ in range(KEYS // 10):
            began = time.perf_counter()
            with contextlib.closing(OwnTerminal(newlines=False)) as terminal:
                viewer = Viewer(session, terminal, read_only=False, detach_key="C-]")
                viewer.begin()
                os.read(ours, 1)
                yield (time.perf_counter() - began) * 1000
                while select.select([ours], [], [], 0.05)[0]:
                    os.read(ours, 65536)
                viewer.close()
    finally:
        for fd, old in enumerate(kept):
            os.dup2(old, fd)


def _leave(terminal: Terminal) -> None:
    terminal.type("\x1c")
    terminal.wait()


def _echoes() -> Iterator[float]:
    with attached("echo") as terminal:
        terminal.until("detaches")
        time.sleep(QUIET)
        terminal.stall(True)  # the bench reads by itself, without the emulator
        while select.select([terminal.pty_fd], [], [], 0.2)[0]:
            os.read(terminal.pty_fd, 65536)
        for _ in range(KEYS):
            began = time.perf_counter()
            terminal.type("x")
            os.read(terminal.pty_fd, 100)
            yield (time.perf_counter() - began) * 1000
            time.sleep(0.002)
        terminal.stall(False)
        _leave(terminal)


def _drawing() -> float:
    began = time.perf_counter()
    picture(TEXT, (24, 80))
    return (time.perf_counter() - began) * 1000
