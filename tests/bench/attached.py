"""The command line as a person feels it: how long it starts, how soon a key is echoed."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from report import Figure, median
from session_magics import Command, Registry
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
