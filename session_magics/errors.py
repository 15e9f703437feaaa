"""Every error the package raises.

SessionError
├── UsageMistake (ValueError)      the caller's words are off: a bad name, option or value
├── SessionNotFound (LookupError)  no session of that name; carries the names that exist
├── SessionExists                  the name is taken by a session that still runs
├── SessionBusy                    a command runs already, or the program takes no more input
├── SessionNotRunning              the verb needs a running program
├── SessionUnresponsive            the holder did not answer in time
├── StartFailed                    the program could not be started
├── StoreError                     the directory of the registry cannot be used or is damaged
├── SandboxError                   the place where a program was to run cannot be reached, or is gone
├── WaitTimeout (TimeoutError)     the awaited thing has not happened yet
├── StopIncomplete                 some processes survived the stop
├── CheckFailed                    what a lesson expects of a command does not hold
└── CellCommandError (CalledProcessError)  a cell's command failed

Each carries its data as attributes and builds its own sentence: what, why, what to do next.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from session_magics.model import CellResult


class SessionError(Exception):
    """Root of the tree; its text is one line, fit to be shown to a person."""


class UsageMistake(SessionError, ValueError):
    """The request itself is wrong; nothing was done."""


class SessionNotFound(SessionError, LookupError):
    """There is no session of that name."""

    def __init__(self, name: str, known: Iterable[str] = ()) -> None:
        self.name = name
        self.known = sorted(known)
        listed = ", ".join(self.known[:12]) + (" …" if len(self.known) > 12 else "")
        super().__init__(
            f"no session named {name!r}; "
            + (f"known: {listed}" if listed else "none exists yet: %session start NAME PROGRAM")
        )


class SessionExists(SessionError):
    """The name belongs to a session that is still running."""

    def __init__(self, name: str, state: str, *, kept: bool = False) -> None:
        """``kept``: it was to be removed; else its name was to be taken."""
        self.name, self.state = name, state
        super().__init__(
            f"session {name!r} cannot be removed ({state}): stop it, or remove --force"
            if kept
            else f"session {name!r} exists ({state}): stop or restart it, or take another name"
        )


class SessionBusy(SessionError):
    """The session cannot take the request now; nothing was sent.

    ``running`` is the first line of the command that runs, or the text of what fills the queue.
    """

    def __init__(self, name: str, running: str) -> None:
        self.name, self.running = name, running
        super().__init__(f"session {name!r} is busy ({running}): wait for it, or %session interrupt {name}")


class SessionNotRunning(SessionError):
    """The session's program does not run."""

    def __init__(self, name: str, state: str) -> None:
        self.name, self.state = name, state
        super().__init__(f"session {name!r} is not running ({state}): %session restart {name}")


class SessionUnresponsive(SessionError):
    """The holder took the connection and did not answer."""

    def __init__(self, name: str, waited: float) -> None:
        self.name, self.waited = name, waited
        super().__init__(
            f"the holder of session {name!r} did not answer within {waited:g} s (stopped or hung): "
            f"%session stop {name} --now ends its processes without it"
        )


class StartFailed(SessionError):
    """The program was never running; the session's record says why."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"session {name!r} failed to start: {reason}")


class StoreError(SessionError):
    """The registry's directory cannot be used; ``path`` names the place."""

    def __init__(self, path: object, reason: str) -> None:
        self.path, self.reason = str(path), reason
        super().__init__(f"{self.path}: {reason}")


class SandboxError(SessionError):
    """The machinery between here and a place failed; carries the place. What ran there may still run."""

    def __init__(self, place: str, reason: str) -> None:
        self.place, self.reason = place, reason
        super().__init__(f"{place}: {reason}")


class WaitTimeout(SessionError, TimeoutError):
    """The time to wait is over; the session goes on as before."""

    def __init__(self, name: str, what: str, seconds: float) -> None:
        self.name, self.what, self.seconds = name, what, seconds
        super().__init__(f"session {name!r}: {what} not seen within {seconds:g} s; it goes on")


class StopIncomplete(SessionError):
    """Processes that outlived the whole ladder; ``survivors`` are their pids."""

    def __init__(self, name: str, survivors: Iterable[int]) -> None:
        self.name, self.survivors = name, tuple(survivors)
        pids = " ".join(map(str, self.survivors))
        super().__init__(f"session {name!r}: still running after KILL: {pids}")


class CheckFailed(SessionError):
    """``%session expect --strict``: not everything holds."""

    def _render_traceback_(self) -> list[str]:
        """IPython's hook: one line; it stays an error of the cell, which is what graders look for."""
        return [f"\x1b[31m{type(self).__name__}\x1b[0m: {self}"]


class CellCommandError(SessionError, subprocess.CalledProcessError):
    """A cell's command ended with a status other than 0, or could not go on.

    ``returncode`` follows ``subprocess``: the code, or minus the signal that ended the *shell*.
    ``why`` is a clause for the reader ("timed out after 1 s", "the shell was killed by signal 9"), or "".
    """

    def __init__(
        self,
        session: str,
        returncode: int,
        command: str,
        *,
        why: str = "",
        output: str = "",
        result: CellResult | None = None,
    ) -> None:
        subprocess.CalledProcessError.__init__(self, returncode, command, output)
        self.session, self.why, self.result = session, why, result

    def __str__(self) -> str:
        what = f"exit status {self.returncode}" if self.returncode >= 0 else f"ended by signal {-self.returncode}"
        return f"{what} in session {self.session!r}" + (f": {self.why}" if self.why else "")

    def _render_traceback_(self) -> list[str]:
        """IPython's hook: two lines, as the traceback of a shell command has nothing to say."""
        first = self.cmd.strip().splitlines()[0][:100] if self.cmd.strip() else ""
        return [f"\x1b[31m{type(self).__name__}\x1b[0m: {self}", f"  in: {first}"]
