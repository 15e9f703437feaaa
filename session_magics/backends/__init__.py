"""How sessions are held: the contract that every backend keeps.

A backend starts the program of a session that the store has recorded, and gives a ``Link`` to a session that is
held. Everything that can be read from the session's directory (state, output, events) is read there and is no
business of a backend.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from session_magics.model import Spec


@dataclass(frozen=True)
class Start:
    """One start of a session: what is not, or must not be, on disk."""

    spec: Spec
    directory: Path
    env: Mapping[str, str] = field(repr=False)
    generation: int = 1
    program: str | None = None
    """Path of the shell for a shell session."""
    rc: bool = True
    owner: tuple[int, int] | None = None
    """Pid and start tick of the kernel that the session ends with."""
    name_file: Path | None = None


@dataclass(frozen=True)
class Waiting:
    """Whether the program waits for the terminal.

    ``kind`` is "read" (certain: blocked in a read of the terminal), "poll" (it could take input) or "no".
    """

    kind: str
    echo: bool
    canonical: bool


class Link(Protocol):
    """A live connection to the holder of one session; to be used by one thread at a time, and closed by its owner.

    Every call answers within ANSWER_LIMIT seconds or raises SessionUnresponsive; SessionNotRunning means that the
    program has ended. ``run`` and ``stop`` and ``restart`` take longer by nature and say how long they wait.
    """

    def fileno(self) -> int:
        """A descriptor that becomes readable when ``bells`` or ``finished`` has something."""

    def watch(self, log_end: int, index_size: int) -> None:
        """Ask for one bell as soon as the log or the index is longer than that."""

    def receive(self, timeout: float | None) -> bool:
        """Take in what has come, waiting up to ``timeout`` seconds (None: for ever); False if nothing came."""

    @property
    def log_end(self) -> int:
        """How far the log may be read, as the last bell said; 0 before the first."""

    @property
    def index_size(self) -> int:
        """Size of the index, as the last bell said."""

    def begun(self, ticket: int) -> tuple[int, str] | None:
        """The log offset where a cell's output begins and a line for the person, once they have come."""

    def run(self, text: str, *, hidden: bool = False) -> int:
        """Hand a cell to the shell and watch for its output; the ticket for ``begun`` and ``finished``. SessionBusy."""

    def finished(self, ticket: int) -> Sequence[bytes] | None:
        """The fields of the outcome, once it has come through ``receive``."""

    def send(self, data: bytes, *, secret: bool = False) -> None:
        """Type into the program; all of it or none (SessionBusy). ``secret``: only while the echo is off."""

    def probe(self) -> Waiting:
        """Whether the program waits for input now."""

    def resize(self, rows: int, columns: int) -> None:
        """Set the terminal's size."""

    def interrupt(self) -> None:
        """SIGINT to the foreground job; asked again within two seconds: TERM, then KILL."""

    def stop(self, grace: float, *, hurry: bool = False) -> tuple[int, ...]:
        """End the whole tree and wait for it; the pids that survived everything."""

    def restart(self, grace: float) -> int:
        """Stop, then start the next generation; its number."""

    def close(self) -> None:
        """Hang up; idempotent."""


class Backend(Protocol):
    """Holds sessions."""

    name: str

    def start(self, start: Start) -> None:
        """Start the program; StartFailed says why it never ran. When this returns the session runs."""

    def connect(self, directory: Path, name: str) -> Link:
        """Reach the holder of a running session. SessionNotRunning, SessionUnresponsive."""

    def force(self, directory: Path, id: str) -> tuple[int, ...]:
        """End a session's processes without its holder, which is gone or hangs; the pids that survived."""
