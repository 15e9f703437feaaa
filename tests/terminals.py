"""A terminal for a program of a test: a real PTY, and an emulator that shows and answers as a real terminal does."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Sequence

import pyte

from rounds import DEADLINE, until

# Bytes that a PTY holds before it takes no more, or nearly.
FULL = 3500
# What no program prints: it shows that all before it has been read.
END = b"\0" * 8
CLI = (sys.executable, "-m", "session_magics")
# The key that leaves ``attach``.
DETACH = b"\x1c"

# A program of which every key is shown in hex, raw; "q" ends it with status 5.
KEYS = """
import os, sys, termios, tty
tty.setraw(0)
os.write(1, sys.argv[1].encode().decode("unicode_escape").encode("latin-1") + b"ready\\r\\n")
while True:
    data = os.read(0, 4096)
    if data == b"q":
        break
    os.write(1, b"<" + data.hex().encode() + b">\\r\\n")
sys.exit(5)
"""


class Emulator(pyte.Screen):
    """The emulator's screen, with its answers to questions collected, and what it does not know left out."""

    def __init__(self, columns: int, rows: int, answer: Callable[[str], None]) -> None:
        self._answer_with = answer
        super().__init__(columns, rows)

    def write_process_input(self, data: str) -> None:
        self._answer_with(data)


class Terminal:
    """Runs a program on a PTY and reads all it prints, until ``close``. ``stall`` stops the reading."""

    def __init__(
        self, command: Sequence[str], size: tuple[int, int] = (24, 80), *, env: dict[str, str] | None = None
    ) -> None:
        self.pty_fd, self.tty_fd = os.openpty()
        os.set_blocking(self.tty_fd, False)  # ours alone: the program opens one of its own
        self.resize(size, tell=False)
        self.modes = termios.tcgetattr(self.tty_fd)
        self.raw = b""
        self.answers: list[str] = []
        self._screen = Emulator(size[1], size[0], self._answer)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()
        self._reading, self._over = threading.Event(), threading.Event()
        self._reading.set()
        tty = os.ttyname(self.tty_fd)
        code = "import os, sys, fcntl, termios; os.setsid(); fd = os.open(sys.argv[1], os.O_RDWR); "
        code += "[os.dup2(fd, n) for n in (0, 1, 2)]; os.closerange(3, 64); os.execvp(sys.argv[2], sys.argv[2:])"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, tty, *command], env={**os.environ, "TERM": "xterm-256color", **(env or {})}
        )
        self._thread = threading.Thread(target=self._read, name=f"terminal of {command[-1]}")
        self._thread.start()

    def _answer(self, data: str) -> None:
        self.answers.append(data)
        os.write(self.pty_fd, data.encode())

    def _read(self) -> None:
        while not self._over.is_set():
            self._reading.wait()
            if not select.select([self.pty_fd], [], [], 0.02)[0]:
                continue
            with contextlib.suppress(OSError):
                data = os.read(self.pty_fd, 65536)
                with self._lock:
                    self.raw += data
                    with contextlib.suppress(Exception):  # the emulator fails on odd input
                        self._stream.feed(data)

    def type(self, text: str | bytes) -> None:
        os.write(self.pty_fd, text.encode() if isinstance(text, str) else text)

    def resize(self, size: tuple[int, int], *, tell: bool = True) -> None:
        fcntl.ioctl(self.pty_fd, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        if tell:
            with self._lock:
                self._screen.resize(*size)
            os.kill(self.process.pid, signal.SIGWINCH)

    @property
    def lines(self) -> list[str]:
        with self._lock, contextlib.suppress(Exception):
            return [line.rstrip() for line in self._screen.display]
        return []

    @property
    def text(self) -> str:
        return "\n".join(self.lines).rstrip()

    @property
    def cursor(self) -> tuple[int, int]:
        return self._screen.cursor.y, self._screen.cursor.x

    def until(self, *texts: str, gone: str | None = None, limit: float = DEADLINE) -> None:
        """Wait until the screen shows all of these, and no more what should be gone."""
        deadline = time.monotonic() + limit
        while True:
            shown = self.text
            if all(text in shown for text in texts) and (gone is None or gone not in shown):
                return
            assert time.monotonic() < deadline, f"no {texts} without {gone!r} on\n{shown}\n{self.raw[-800:]!r}"
            time.sleep(0.005)

    def told(self, *lines: str) -> None:
        """Wait until ``attach`` has told these in lines of its own: they go away by themselves, seen here or not."""
        wanted = [line.encode() for line in lines]
        until(lambda: all(line in self.raw for line in wanted), what=lambda: f"{lines} in {self.raw[-800:]!r}")

    def stall(self, stalled: bool) -> None:
        """Read no more, as a terminal does that hangs; or go on."""
        if stalled:
            self._reading.clear()
        else:
            self._reading.set()

    def full(self) -> bool:
        """Whether it takes no more of what is printed."""
        room = fcntl.ioctl(self.pty_fd, termios.FIONREAD, b"\0" * 4)
        return int.from_bytes(room, sys.byteorder) >= FULL

    def hang_up(self) -> None:
        """Be gone, as a window that is closed."""
        self._over.set()
        self._reading.set()
        self._thread.join()
        os.close(self.tty_fd)
        os.close(self.pty_fd)
        self.pty_fd = self.tty_fd = -1

    def wait(self, limit: float = DEADLINE) -> int:
        """Wait for the end of the program; its status. What it has printed is read by then."""
        status = self.process.wait(limit)
        self._read_to_the_end(limit)
        return status

    def _read_to_the_end(self, limit: float) -> None:
        if self.tty_fd < 0 or not self._reading.is_set():
            return
        deadline = time.monotonic() + limit
        with contextlib.suppress(BlockingIOError):  # the terminal is held, and shows no more in any case
            os.write(self.tty_fd, END)
            while END not in self.raw:
                assert time.monotonic() < deadline, f"not all was read: {self.raw[-800:]!r}"
                time.sleep(0.001)
            with self._lock:
                self.raw = self.raw.replace(END, b"")

    @property
    def restored(self) -> bool:
        """Whether the terminal's modes are those of the beginning."""
        return termios.tcgetattr(self.tty_fd) == self.modes

    def switched(self) -> dict[bytes, bool]:
        """The private modes that differ from those of a fresh terminal, by all that was printed."""
        import re

        state: dict[bytes, bool] = {}
        for numbers, final in re.findall(rb"\x1b\[\?([0-9;]+)([hl])", self.raw):
            for number in numbers.split(b";"):
                state[number] = final == b"h"
        return {number: on for number, on in state.items() if on != (number in (b"7", b"8", b"25"))}

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reading.set()
        self._over.set()
        self._thread.join()
        for fd in (self.pty_fd, self.tty_fd):
            if fd >= 0:
                os.close(fd)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def attached(name: str, size: tuple[int, int] = (24, 80), *options: str, env: dict[str, str] | None = None) -> Terminal:
    """A terminal on which ``attach NAME`` runs."""
    return Terminal((*CLI, "attach", name, *options), size, env=env)
