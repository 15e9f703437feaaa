"""The values that pass between the layers: frozen, without behaviour beyond reading themselves.

What can be saved (``Spec``, the states) is here; what is live (sockets, readers) is not.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from session_magics.errors import UsageMistake
from session_magics.holder.wire import SIZE_MOST

DEFAULT_NAME = "main"
"""The session that cells run in when none is named."""
NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
ENGINE_MARK = "@engine:"
"""Parts a name from the number of the engine whose session it is; no owner has a colon, so it is nobody's name here."""
Lifetime = Literal["detached", "kernel"]
RestartPolicy = Literal["no", "on-failure", "always"]
DEFAULT_SIZE = (24, 80)
AGENT_SIZE = (36, 120)
"""Of the terminal of a known tool: what agents ask is often higher than 24 rows, and a question that is cut is not
answered by rule."""

LOGIN_SHELL = "shell"
"""The known tool that is no agent: the user's own shell."""


@dataclass(frozen=True)
class Command:
    """What to run: argv, directory and environment.

    ``env`` is added to the environment of the process that starts the session; a value of None removes a
    variable. It is kept out of the repr, as values may be secrets.
    """

    argv: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str | None] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class RestartLimit:
    """So many restarts by policy a program may have; it then stays as it is, however it ends.

    ``window``: only those of the last so many seconds count, however long the program ran between them. None: all
    since somebody started it.
    """

    count: int
    window: float | None = None

    def __str__(self) -> str:
        return f"{self.count}" if self.window is None else f"{self.count}/{self.window:g}s"


@dataclass(frozen=True)
class Spec:
    """A session as it was asked for: all that ``spec.json`` keeps. Environment values are not kept."""

    id: str
    name: str
    argv: tuple[str, ...]
    cwd: str
    env_names: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    size: tuple[int, int] = DEFAULT_SIZE
    lifetime: Lifetime = "detached"
    restart: RestartPolicy = "no"
    shell: str | None = None
    """The dialect (bash, zsh, sh, fish) of a shell session; None for a program."""
    owner: str | None = None
    """Token of the kernel that owns a kernel-lifetime session."""
    created: float = 0.0
    """Unix time, for display only."""
    backend: str = "native"
    """Name of what holds it."""
    max_restarts: RestartLimit | None = None
    """When the policy gives up; None: never."""
    tool: str | None = None
    """Name of the known tool that runs, which ``argv`` was made for; None for a program that was named itself."""
    tool_args: tuple[str, ...] = ()
    """The tool's arguments as they were given, with its approval switch if that was asked for."""
    parent: str | None = None
    """Id of the session that this one ends with."""
    on: str | None = None
    """Where its program runs, as ``docker:IMAGE`` or ``ssh:HOST``; None: on this machine."""


@dataclass(frozen=True)
class Running:
    """The holder lives and so does the program."""

    pid: int
    since: float


@dataclass(frozen=True)
class BackingOff:
    """The program has ended; the holder starts it again at ``until`` (Unix time)."""

    until: float
    code: int | None
    signal: int | None


@dataclass(frozen=True)
class Exited:
    """The program has ended: exactly one of ``code`` and ``signal`` is set."""

    code: int | None
    signal: int | None
    at: float
    background: bool = False
    """True while processes that the program left behind still run under the holder."""

    @property
    def status(self) -> int:
        """The code, or minus the signal."""
        return self.code if self.code is not None else -(self.signal or 0)


@dataclass(frozen=True)
class GaveUp(Exited):
    """The program has ended, and was not started again as the limit of ``restarts`` by policy was reached."""

    restarts: int = 0


@dataclass(frozen=True)
class Lost:
    """The holder vanished and left no exit record; the outcome is unknown, never 0."""

    reason: str


@dataclass(frozen=True)
class FailedToStart:
    """The program was never running."""

    reason: str


@dataclass(frozen=True)
class Unknown:
    """The state could not be read; nothing may be cleaned up on it."""

    reason: str


State = Running | BackingOff | Exited | GaveUp | Lost | FailedToStart | Unknown


def describe(state: State) -> str:
    """The state in a few words, as lists and messages show it."""
    match state:
        case Running():
            return "running"
        case BackingOff(code=code, signal=sig):
            return f"backing-off after {_end(code, sig)}"
        case GaveUp(code=code, signal=sig, restarts=count):
            return f"gave up after {count} restart{'s'[: count != 1]}: {_end(code, sig)}"
        case Exited(code=code, signal=None):
            return f"exited {code}"
        case Exited(signal=sig):
            return f"killed by signal {sig}"
        case Lost(reason=reason):
            return f"lost ({reason})"
        case FailedToStart(reason=reason):
            return f"failed to start ({reason})"
        case Unknown(reason=reason):
            return f"unknown ({reason})"


def _end(code: int | None, signal: int | None) -> str:
    return f"exit {code}" if signal is None else f"signal {signal}"


@dataclass(frozen=True)
class SessionInfo:
    """One session as ``list`` and ``info`` report it: read at one moment from its directory."""

    name: str
    """How this process addresses it; a shell of another kernel reads ``main@token``."""
    id: str
    state: State
    argv: tuple[str, ...]
    cwd: str
    labels: Mapping[str, str]
    lifetime: Lifetime
    restart: RestartPolicy
    shell: str | None
    size: tuple[int, int]
    generation: int
    pid: int | None
    created: float
    directory: Path
    log_bytes: int
    backend: str = "native"
    """Name of what holds it."""
    max_restarts: RestartLimit | None = None
    since: float = 0.0
    """Unix time of the newest start of the program; 0 if there was none."""
    tool: str | None = None
    tool_args: tuple[str, ...] = ()
    parent: str | None = None
    on: str | None = None
    """Where its program runs; None: on this machine."""

    @property
    def command_line(self) -> str:
        """What runs, as one would type it; of a known tool, its name and the arguments that it was given."""
        return shlex.join(self.argv if self.tool is None else (self.tool, *self.tool_args))

    @property
    def running(self) -> bool:
        """Whether the program lives now (a program in back-off does not)."""
        return isinstance(self.state, Running)


@dataclass(frozen=True)
class CellResult:
    """What became of one cell command.

    ``begin`` and ``end`` are log offsets in bytes: the output is exactly that slice. ``returncode`` follows
    ``subprocess`` (minus the signal where the *shell* died of one). ``state`` is ``done``, ``exited`` (the
    cell ended the shell), ``replaced`` (``exec``), or ``lost`` (the holder vanished).
    """

    session: str
    text: str
    returncode: int
    state: Literal["done", "exited", "replaced", "lost"]
    begin: int
    end: int
    duration: float
    """Seconds from when the shell was given the command to its end."""
    cwd: str
    restarted: str = ""
    """What a restart of the shell lost, in one line; empty when there was none."""
    exact: bool = True
    """False if the end of the output was found by silence and not by its mark."""
    started: float = 0.0
    """Unix time of when the shell was given the command, by this process's clock."""


def check_name(name: str) -> str:
    """Return ``name`` if a session may have it; raise UsageMistake otherwise."""
    if not NAME_PATTERN.fullmatch(name):
        shown = repr(name if len(name) <= 40 else name[:37] + "…")
        raise UsageMistake(
            f"{shown} is no session name: use 1 to 64 letters, digits, '.', '_' or '-', a letter or digit first"
        )
    return name


def check_limit(limit: RestartLimit) -> RestartLimit:
    """Return ``limit`` if restarts may have it; raise UsageMistake otherwise."""
    if limit.count < 1 or not (limit.window is None or 0 < limit.window < math.inf):
        raise UsageMistake(f"{limit} is no limit of restarts: at least one, and a time above 0, such as 5 or 5/60s")
    return limit


def check_size(size: tuple[int, int]) -> tuple[int, int]:
    """Return (rows, columns) if a terminal may have that size; raise UsageMistake otherwise."""
    rows, columns = size
    most = SIZE_MOST
    if not (1 <= rows <= most[0] and 1 <= columns <= most[1]):
        told = f"rows 1 to {most[0]}, columns 1 to {most[1]}, such as 24x80"
        raise UsageMistake(f"{rows}x{columns} is no terminal size: {told}")
    return size
