"""Where a program runs: the contract that every sandbox keeps.

A sandbox carries commands to a place (this machine, a container, another host). It turns a command into one that can
be started here (``wrap``), which is all that a live session needs of it, and runs commands that begin, end and leave
nothing behind (``exec``, ``start_process``).

Directories: ``root`` is where commands run that name none. A command's ``cwd`` is below it, or the command is refused
(UsageMistake) and nothing runs: a path that leads out by ``..`` is refused as it is written, one that leads out through
a symbolic link when it is resolved there. A root of "/" holds everything.

Environments: ``env`` of a command is added to what programs have there; None removes a variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import IO, Protocol

from session_magics.model import Command

STDERR_TAIL = 64 * 1024
"""Bytes of a live process's error output that are kept: its newest."""


@dataclass(frozen=True)
class Result:
    """What became of a command that ran to its end. A status other than 0 is a result like any other."""

    code: int
    """Exit status; minus the signal where the program itself was killed by one (as ``subprocess`` has it). Places that
    only tell 128 and the signal (ssh, docker) are told apart where that is certain."""
    stdout: bytes
    stderr: bytes
    duration: float
    """Seconds."""
    timed_out: bool = False
    """Whether its time was over and it was killed, with all that it had started; its output up to then is here."""
    dropped: int = 0
    """Bytes of output beyond the sandbox's limit, which are not here: of each stream the first bytes are kept."""


@dataclass(frozen=True)
class Probe:
    """What there is at a place."""

    system: str
    """As ``uname -s`` has it."""
    home: str
    user: str
    python: str | None
    """Path of a python3 that a holder can run on; None: there is none, or it is too old."""
    shells: Mapping[str, str] = field(default_factory=dict)
    """Path of each shell found, by its name: bash, zsh, fish, dash, sh. For a busybox, "sh" is its own."""


class Process(Protocol):
    """A live program with pipes. Ends by itself, by ``kill``, or with its sandbox; it is always reaped.

    ``stdin`` and ``stdout`` belong to the caller, who closes them. Any thread may wait or kill, as often as it likes.
    """

    stdin: IO[bytes]
    stdout: IO[bytes]

    def stderr(self) -> bytes:
        """The newest STDERR_TAIL bytes of its error output, so far; a program is never held up by it."""

    def poll(self) -> int | None:
        """Its exit status, as in ``Result.code``; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, once it has ended. Raises WaitTimeout after so many seconds."""

    def kill(self) -> None:
        """End it and its whole group there, at once, and return when that is done; harmless after its end."""


class Sandbox(Protocol):
    """A place for commands. Methods may be called from any thread, several at once.

    Errors mean broken machinery (SandboxError: the place cannot be reached, or is gone); nothing about a program that
    ran is an error. ``exec``, ``start_process``, ``wrap`` and ``probe`` make ready what they need when first called:
    making the object does nothing.
    """

    @property
    def place(self) -> str:
        """How it is written, such as ``docker:IMAGE``."""

    @property
    def root(self) -> str:
        """The directory where commands run that name none, and that others are below."""

    def exec(self, command: Command, *, stdin: bytes | None = None, timeout: float | None = None) -> Result:
        """Run a program to its end. ``stdin``: what it reads; None: nothing (an end of file at once).

        ``timeout`` in seconds; after it the program and its whole group are killed there, and the call returns within
        a second or so. A job that the program leaves behind does not hold up the call, even with the output open.
        A program that is not there has the status 127, one that cannot be run 126, as shells have it.
        """

    def start_process(self, command: Command) -> Process:
        """Start a program with live pipes."""

    def wrap(self, command: Command, *, terminal: bool = False) -> Command:
        """The command to be started here, so that the program runs there with the same standard streams.

        ``terminal``: on a terminal of its own there; without it the streams are clean pipes that carry any bytes. The
        far program may outlive the near one: who needs its end sees to it there.
        """

    def probe(self) -> Probe:
        """What there is; asked once and remembered."""

    def cleanup(self) -> tuple[str, ...]:
        """A command to be started here that does what ``close`` does, for others to do later; empty: nothing to do.

        Only for what lives as long as a session: a container made for it. It may be run again, and when all is gone.
        """

    def let_go(self) -> None:
        """Give up what this object has here, and leave what it made there to a session, which ends with ``cleanup``."""

    def close(self) -> None:
        """Kill what still runs through this object, and give up what was made for it; idempotent."""
