"""How sessions are held: the contract that every backend keeps.

A backend starts the program of a session that the store has recorded, and gives a ``Link`` to a session that is
held. Everything that can be read from the session's directory (state, output, events) is read there and is no
business of a backend's callers; so whatever holds a session keeps these files, in the formats of ``store``, ``log``
and ``holder.record``:

* ``alive`` is locked (flock) from before the program starts until after the last byte and the end are on record;
* ``run.json`` says which generation runs, and is replaced at each;
* ``log.*`` has every byte that the program writes, from the first one on, and ``log.idx`` the events;
* ``exit`` has the end of a generation, written after its last byte.

``session_magics.testing`` has checks that any backend has to pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from session_magics.model import Spec
from session_magics.sandbox import Sandbox


@dataclass(frozen=True)
class Start:
    """One start of a session: what is not, or must not be, on disk."""

    spec: Spec
    directory: Path
    env: Mapping[str, str] = field(repr=False)
    """The whole environment of the program."""
    generation: int = 1
    """Number of the start; above those that the directory has records of."""
    program: str | None = None
    """Path of the shell for a shell session; its dialect is ``spec.shell``."""
    rc: bool = True
    """Whether a shell reads its start-up file."""
    owner: tuple[int, int] | None = None
    """Pid and start tick of the kernel that the session ends with."""
    name_file: Path | None = None
    """The claim of the name, to be removed together with the directory when the owner is gone."""
    again: tuple[str, ...] = ()
    """The argv of later generations, where it is another one."""
    parent: tuple[int, int] | None = None
    """Pid and start tick of the program whose end stops this session."""
    place: Sandbox | None = None
    """Where the program runs; None: here. There ``env`` is added to what programs have, ``program`` and the directory
    of ``spec`` are paths (no directory: where the place begins)."""
    unset: tuple[str, ...] = ()
    """Variables of the place that the program is not to have."""


@dataclass(frozen=True)
class Waiting:
    """Whether the program waits for the terminal.

    ``kind`` is "read" (certain: blocked in a read of the terminal), "poll" (it could take input) or "no". ``echo``:
    the terminal shows what is typed. ``canonical``: it hands over whole lines.
    """

    kind: str
    echo: bool
    canonical: bool


class Link(Protocol):
    """A live connection to the holder of one session; to be used by one thread at a time, and closed by its owner.

    Any number of links to one session may exist, in any processes, and none sees what another asked. A link is called
    by ``Session`` for one request, by ``News`` for a whole wait, and by ``Attachment`` for many cells; always from
    the caller's thread, and no call is made from a signal handler.

    The end: when the holder goes, ``fileno`` becomes readable and stays so, ``receive`` raises SessionNotRunning once
    what came before is taken in, and so does every other call. It goes when the program has ended and nothing of it
    lives on; the end is on record before.

    Failure: a call is answered within a second or raises SessionUnresponsive (the holder is stopped or hangs); whether
    it was carried out is not known then, and the link is to be closed. ``stop`` and ``restart`` take up to their grace
    longer, ``run`` does not wait for anything. A request that is refused raises one of our errors, and has done
    nothing; the link is as good as before.
    """

    def fileno(self) -> int:
        """A descriptor that becomes readable when ``receive`` has something to take in."""

    def watch(self, log_end: int, index_size: int) -> None:
        """Ask for one bell as soon as the log or the index is longer than that; at once if it is so already.

        A new watch replaces the one before. After its bell nothing rings until the next watch. Does not wait.
        """

    def receive(self, timeout: float | None) -> bool:
        """Take in what has come, waiting up to ``timeout`` seconds (None: for ever); False if nothing came.

        True means only that something came: look at ``log_end``, ``index_size``, ``begun`` and ``finished``.
        """

    @property
    def log_end(self) -> int:
        """How far the log may be read, as the last bell said; 0 before the first."""

    @property
    def index_size(self) -> int:
        """Size of the index in bytes, as the last bell said; 0 before the first."""

    def run(self, text: str, *, hidden: bool = False) -> int:
        """Hand a cell to the shell and watch for its output; the ticket under which ``begun`` and ``finished`` tell.

        A refusal comes through ``finished`` too: SessionBusy, SessionNotRunning, UsageMistake (no shell, a NUL).
        ``hidden``: a command of ours; it leaves no events, and its values come behind the outcome.
        """

    def begun(self, ticket: int) -> tuple[int, str] | None:
        """The log offset where a cell's output begins and a line for the person, once they have come."""

    def finished(self, ticket: int) -> Sequence[bytes] | None:
        """The outcome, once it has come through ``receive``; it is handed out once.

        Fields: number, begin, end, status, state, seconds, exact, directory, notice, then values (see ``CellResult``).
        """

    def send(self, data: bytes, *, secret: bool = False) -> None:
        """Type into the program; all of it or none (SessionBusy). ``secret``: only while the echo is off."""

    def probe(self) -> Waiting:
        """Whether the program waits for input now."""

    def resize(self, rows: int, columns: int) -> None:
        """Set the terminal's size, for later generations too; the program is told as terminals do (SIGWINCH)."""

    def interrupt(self) -> None:
        """SIGINT to the foreground job; asked again within two seconds: TERM, then KILL. An idle shell: nothing.

        A program that has switched the terminal's signals off (an editor) gets Ctrl-C as a key, as at any terminal.
        """

    def stop(self, grace: float, *, hurry: bool = False) -> tuple[int, ...]:
        """End the whole tree: TERM, ``grace`` seconds, KILL; returns when all is gone and the end on record.

        Gives the pids that survived everything. Asked again meanwhile, it joins the stop that runs; ``hurry`` cuts
        the grace of that one short.
        """

    def restart(self, grace: float, argv: Sequence[str] = ()) -> int:
        """Stop, then start the next generation; its number. StopIncomplete: something survived, nothing was started.

        ``argv``: what to run from now on, where it is not the same. Links stay connected. StartFailed: it was stopped
        and could not be started again, which is on record.
        """

    def close(self) -> None:
        """Hang up; idempotent. What runs goes on."""


class Backend(Protocol):
    """Holds sessions. Called by ``Registry`` and ``Session``, from any thread and from several at once."""

    name: str
    """One word for messages."""

    def start(self, start: Start) -> None:
        """Start the program. When this returns it runs, its state is on disk, and ``connect`` succeeds.

        StartFailed says why it never ran; nothing of it is left then, and the caller records the reason.
        """

    def connect(self, directory: Path, name: str) -> Link:
        """Reach the holder of a session; ``name`` is for messages.

        SessionNotRunning: nobody holds it. SessionUnresponsive: a holder is there and does not answer.
        """

    def force(self, directory: Path, id: str) -> tuple[int, ...]:
        """End a session's processes without its holder, which is gone or hangs; the pids that survived.

        Waits for seconds at most. Harmless where nothing is left; a damaged record is no obstacle.
        """
