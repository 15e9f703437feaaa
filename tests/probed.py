"""A program on a terminal of its own that is probed for whether it waits for input."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from rounds import DEADLINE
from session_magics.holder import processes, waiting

TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(1, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
)
PYTHON = [sys.executable, "-I", "-S", "-c"]


class OnTerminal:
    """A program on a terminal of its own; ``commands`` is where a shell reads from instead, if that is wanted."""

    def __init__(self, argv: list[str], *, commands: int | None = None) -> None:
        self.pty_fd, tty_fd = os.openpty()
        self.path = os.ttyname(tty_fd)
        stdin, passed = (tty_fd, ()) if commands is None else (commands, (tty_fd,))
        self.argv = [word.replace("TTY_FD", str(tty_fd)) for word in argv]
        self.leader = subprocess.Popen(
            [*PYTHON, TAKE_TERMINAL, *self.argv],
            stdin=stdin,
            stdout=tty_fd,
            stderr=tty_fd,
            pass_fds=passed,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm", "LESS": ""},
        )
        self.tty_fd = tty_fd
        self.seen = b""

    def probe(self) -> tuple[str, bool, bool]:
        self.read()
        return waiting.probe(self.pty_fd, self.path, self.leader.pid)

    def read(self, seconds: float = 0) -> None:
        while select.select([self.pty_fd], [], [], seconds)[0]:
            self.seen += os.read(self.pty_fd, 65536)
            seconds = 0

    def until_shown(self, text: bytes) -> None:
        limit = time.monotonic() + DEADLINE
        while text not in self.seen:
            assert time.monotonic() < limit, self.seen
            self.read(0.1)

    def until_probed(self, *expected: str) -> tuple[str, bool, bool]:
        limit = time.monotonic() + DEADLINE
        while (found := self.probe())[0] not in expected:
            assert time.monotonic() < limit, (found, self.seen)
            self.read(0.01)
        return found

    def assert_never_waits(self) -> None:
        for _ in range(15):
            assert self.probe()[0] == "no", self.seen
            self.read(0.01)

    def close(self) -> None:
        while living := [one for one in processes.table().values() if one.sid == self.leader.pid and not one.gone]:
            for one in living:
                processes.send(one.pid, one.tick, signal.SIGKILL)
        self.leader.wait()
        os.close(self.pty_fd)
        os.close(self.tty_fd)


@pytest.fixture
def launch() -> Iterator[Callable[..., OnTerminal]]:
    programs = []

    def launcher(*argv: str, commands: int | None = None) -> OnTerminal:
        programs.append(OnTerminal(list(argv), commands=commands))
        return programs[-1]

    yield launcher
    for program in programs:
        program.close()
