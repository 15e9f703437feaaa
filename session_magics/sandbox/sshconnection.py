"""One connection to a host through the system's OpenSSH client, which many commands share."""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import shutil
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Sequence
from pathlib import Path

from session_magics.errors import SandboxError
from session_magics.sandbox import sshscripts
from session_magics.sandbox.children import CHUNK
from session_magics.sandbox.families import kill_group

CONNECT = 10
"""Seconds for each step of reaching a host, such as a TCP connection."""
READY = 60.0
"""Seconds until our first command there runs: jump hosts and slow start-up files included."""
ALIVE_INTERVAL, ALIVE_COUNT = 1, 3
"""Seconds between questions to a host that is silent, and how many stay unanswered: a dead one is noticed after 4."""
ANSWER = 10.0
"""Seconds that the far side may take to kill a command; without a connection it ends after those above."""
CLOSE = 2.0
"""Seconds that it may take to kill all that runs when a connection is closed."""
LAST_WORDS = 0.5
"""Seconds for ssh to end after its connection has: what hangs on it notices first."""
LONGEST_FOLDER = 70
"""Bytes of the temporary directory's path: a socket's may have 103 on macOS, and ssh adds 17 to it for a while."""
NOISE_LIMIT = 1 << 20
"""Bytes that start-up files may print before our first command runs."""

SETTINGS = (
    "BatchMode=yes",
    f"ConnectTimeout={CONNECT}",
    f"ServerAliveInterval={ALIVE_INTERVAL}",
    f"ServerAliveCountMax={ALIVE_COUNT}",
    "ControlPersist=no",
    "RemoteCommand=none",
    "PermitLocalCommand=no",
    "ClearAllForwardings=yes",
    "ForwardX11=no",
    "EscapeChar=none",
)


def client(config: Path | None, options: Sequence[str], *, log: str = "INFO") -> list[str]:
    """The words of every ssh of ours; of an option that is given twice, ssh takes the first."""
    words = ["ssh", *(["-F", str(config)] if config is not None else [])]
    for option in (*options, *SETTINGS, f"LogLevel={log}"):
        words += ["-o", option]
    return words


class Connection:
    """A connection that is up. Its socket lies in a folder of its own that nobody else can enter.

    It ends when it is closed, when the host is gone, or with this process, however that ends: its master is an ssh
    whose far program reads from us. That far program is the watchdog of all commands that use the connection.
    """

    def __init__(self, place: str, host: str, words: Sequence[str]) -> None:
        self._place, self._host, self._words = place, host, list(words)
        self._lock = threading.Lock()
        self.closed = False
        self._said = ""
        longer = len(tempfile.gettempdir()) > LONGEST_FOLDER
        self._folder = Path(tempfile.mkdtemp(prefix="sm", dir="/tmp" if longer else None))
        self._discard = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._mark = secrets.token_hex(16)
        self._master = self._start()
        try:
            self.noisy = self._greeted()
            """Whether the login shell's start-up files print."""
        except BaseException:
            self._end()
            raise

    def _start(self) -> subprocess.Popen[bytes]:
        with open(self._folder / "errors", "wb") as errors:
            try:
                return subprocess.Popen(
                    [
                        *self._words,
                        "-M",
                        "-S",
                        self._socket,
                        "-T",
                        "--",
                        self._host,
                        sshscripts.watchdog_line(self._mark),
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    bufsize=0,
                    start_new_session=True,
                )
            except OSError as error:
                self._discard()
                hint = "install the OpenSSH client" if isinstance(error, FileNotFoundError) else error.strerror
                raise SandboxError(self._place, f"ssh cannot be started: {hint}") from None

    @property
    def _socket(self) -> str:
        return str(self._folder / "c")

    def _greeted(self) -> bool:
        """Wait for the watchdog; whether anything came before it."""
        wanted, seen, deadline = f"{self._mark} up\n".encode(), b"", time.monotonic() + READY
        while wanted not in seen:
            piece = self._read(deadline)
            if piece is None or len(seen) > NOISE_LIMIT:
                raise SandboxError(
                    self._place,
                    f"connected, but no command ran there within {READY:g} s: look at what the login shell's start-up"
                    " files do",
                )
            if not piece:
                raise SandboxError(self._place, explained(self.errors(), self._host))
            seen += piece
        return not seen.startswith(wanted)

    def _read(self, deadline: float) -> bytes | None:
        """What the watchdog says next; nothing: it has ended; None: nothing until then."""
        assert self._master.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._master.stdout, selectors.EVENT_READ)
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return None
        return os.read(self._master.stdout.fileno(), CHUNK)

    def errors(self) -> str:
        """What ssh has said about a connection that is lost."""
        if not self.closed:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._master.wait(LAST_WORDS)
            self._said = (self._folder / "errors").read_text(errors="replace")
        return self._said

    def alive(self) -> bool:
        """Whether it can be used, as far as is known here."""
        return self._master.poll() is None

    def words(self, line: str) -> list[str]:
        """The command that runs a command line there over this connection.

        Where the host takes no more commands on one connection, ssh makes another for it.
        """
        return [*self._words, "-S", self._socket, "-o", "ControlMaster=no", "-T", "--", self._host, line]

    def begin(self, run: str) -> None:
        """Have the watchdog kill a command with the connection."""
        with self._lock:
            self._tell(f"begin {run}")

    def end(self, run: str) -> None:
        """The command has ended, what it has left running is nobody's concern."""
        with self._lock:
            self._tell(f"end {run}")

    def kill(self, run: str, group: str = "") -> bool:
        """Kill a command and all that it has started; whether the far side says that this is done."""
        answer, seen, deadline = f"killed {run}\n".encode(), b"", time.monotonic() + ANSWER
        with self._lock:
            if not self._tell(f"kill {run} {group}"):
                return False
            while answer not in seen:
                piece = self._read(deadline)
                if not piece:
                    return False
                seen += piece
        return True

    def _tell(self, line: str) -> bool:
        assert self._master.stdin is not None
        try:
            self._master.stdin.write(f"{line}\n".encode())
        except (OSError, ValueError):  # it has ended, or was closed
            return False
        return True

    def close(self) -> None:
        """Kill what runs over it, there and here; idempotent."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
            assert self._master.stdin is not None
            self._master.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._master.wait(CLOSE)
            self._end()

    def _end(self) -> None:
        if self._master.poll() is None:
            kill_group(self._master.pid)
        self._master.wait()
        for stream in (self._master.stdin, self._master.stdout):
            if stream is not None:
                stream.close()
        self._discard()


def explained(errors: str, host: str) -> str:
    """What ssh has said, as one line that says what to do."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    said = lines[-1] if lines else "ssh ended and said nothing"
    if "Permission denied" in errors or "Too many authentication failures" in errors:
        return f"{said}; no password can be asked for here: set up a key (ssh-copy-id {host}) or an agent (ssh-add)"
    if "Host key verification failed" in errors:
        return f"{said}; connect once by hand to see and accept its key: ssh {host}"
    if "Could not resolve" in errors:
        return f"{said}; look at the name, or give it a Host entry in the ssh configuration"
    return f"{said}; try it by hand: ssh {host}"
