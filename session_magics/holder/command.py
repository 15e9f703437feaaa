"""One command of a shell session: what is asked, how far it is, how it ended."""

from __future__ import annotations

import os
import time

from session_magics.holder import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from session_magics.holder.dialects import Cell
    from session_magics.holder.loop import Timer
    from session_magics.holder.server import Client

FIRST_LINE = 200
"""Bytes of a command's first line that the index keeps."""


class Request:
    """A cell that waits to be run, or is. ``hidden`` marks those of ours."""

    def __init__(
        self,
        text: bytes,
        *,
        hidden: bool,
        done: Callable[[Finished], None],
        begun: Callable[[int, int, bytes], None] = lambda _number, _begin, _notice: None,
    ) -> None:
        self.text, self.hidden, self.done, self.begun = text, hidden, done, begun
        self.put_back = False  # after a shell that never read it

    @property
    def title(self) -> bytes:
        """The first line, for people who want to know what runs."""
        return self.text.strip().partition(b"\n")[0][:FIRST_LINE]


class Finished:
    """How a command ended, in values that fit a frame."""

    def __init__(self, number: int, begin: int, end: int) -> None:
        self.number, self.begin, self.end = number, begin, end
        self.status = 0
        self.state = "done"
        self.cwd = b""
        self.duration = 0.0
        self.restarted = b""
        self.exact = True
        self.values: list[bytes] = []

    @classmethod
    def of_none(cls, number: int, end: int, cwd: bytes) -> Finished:
        """What becomes of a command for which there is no shell any more."""
        finished = cls(number, end, end)
        finished.status, finished.state, finished.cwd = 127, "exited", cwd
        return finished

    def fields(self) -> list[bytes]:
        """The fields of a DONE frame behind the request's id."""
        plain = (self.number, self.begin, self.end, self.status, self.state, f"{self.duration:.6f}", int(self.exact))
        return [*[str(one).encode() for one in plain], self.cwd, self.restarted, *self.values]

    def record(self) -> dict[str, str | int | float]:
        """What the index keeps of it."""
        return {
            "n": self.number, "begin": self.begin, "status": self.status, "state": self.state,
            "seconds": round(self.duration, 6), "cwd": self.cwd.decode("utf-8", "surrogateescape"),
        }  # fmt: skip


class Active:
    """The command that runs. ``second`` is what the shell gets once it has begun."""

    def __init__(self, request: Request, cell: Cell, second: bytes) -> None:
        self.request, self.cell, self.second = request, cell, second
        self.begin: int | None = None
        self.end: int | None = None
        self.started = time.monotonic()
        self.told = False  # record B has come
        self.leaves = False  # the shell has told that it ends itself
        self.body: bytes | None = None  # of record E
        self.ended = 0.0
        self.exit_status = 0  # that the shell is going to end with, of one whose process does not tell
        self.traps = cell.traps if request.hidden else b""  # a command of ours may not see all, and sets none
        self.exact = True
        self.interrupted = False
        self.interrupt_at_begin = False
        self.values: list[bytes] = []
        self.announced = False
        self.timer: Timer | None = None
        self.news: Timer | None = None
        self.check: Timer | None = None
        self.unheard = 0.0  # when the shell had first read all it was given and not reported; 0 for never

    def announce(self) -> dict[str, str | int]:
        """What the index keeps of its begin, which is told now."""
        self.announced = True
        return {"n": self.cell.number, "text": self.request.title.decode("utf-8", "replace")}

    def hear(self, kind: bytes, body: bytes) -> None:
        """Take what its shell says beside its begin and its end."""
        if kind == b"T":
            self.traps = (self.request.hidden and self.traps) or body
        elif kind == b"S":
            self.exit_status = int(body) if body.isdigit() else 0
        elif kind == b"G":
            self.values.append(body)

    def outcome(self) -> Finished | None:
        """How it ended, as far as the shell says so; None while a part of the report is missing."""
        if self.body is None or self.end is None or self.begin is None:
            return None
        status, _, rest = self.body.partition(b"\t")
        code = int(status.lstrip(b"A") or 0)
        code = code if code < 256 else 128 + (code & 127)  # ksh counts signals from 256
        if status.startswith(b"A"):  # the line was given up: a failure, whatever ``$?`` was
            code = 130 if self.interrupted else code or 2
        finished = Finished(self.cell.number, self.begin, self.end)
        finished.status, finished.cwd, finished.exact = code, rest.partition(b"\t")[2], self.exact
        finished.duration, finished.values = self.ended - self.started, self.values
        return finished

    @property
    def replaced_itself(self) -> bool:
        """Whether the shell that is gone had become another program: it had no last word, and the text says so.

        Its silence alone does not tell, as a trap of the user's may have taken the place of ours.
        """
        return self.begin is not None and not self.leaves and b"exec" in self.request.text

    def cut_short(self, log_end: int, cwd: bytes) -> Finished:
        """How it ended with its shell; status and state are still to be told."""
        begin = log_end if self.begin is None else self.begin
        finished = Finished(self.cell.number, begin, log_end if self.end is None else self.end)
        finished.cwd, finished.duration = cwd, time.monotonic() - self.started
        return finished

    @property
    def flags(self) -> bytes:
        """The letters of ``$-`` that record E reported."""
        return (self.body or b"").partition(b"\t")[2].partition(b"\t")[0]


class Notice:
    """What who runs the next command is to be told: that its shell is not the one from before, and why."""

    def __init__(self) -> None:
        self._text = ""

    def take(self) -> bytes:
        """The text, once; empty if there is nothing to be told."""
        text, self._text = self._text, ""
        return os.fsencode(text)

    def ended(self, how: str, cwd: bytes, lost: str, *, replaced: bool) -> None:
        """It has ended like this; why it was ended was told before, if it was."""
        what = "the program that replaced the shell" if replaced else "the shell"
        self._text = self._text or f"{what} {how}; {_again(cwd, lost)}"

    def without_rc(self, how: str) -> None:
        """Its start-up file has ended it."""
        self._text = f"the start-up file ended the shell ({how}): it runs without it"

    def deaf(self, cwd: bytes, lost: str) -> None:
        """It has to be ended."""
        why = "the shell could not report any more, as functions or limits that it needs were changed"
        self._text = f"{why}; {_again(cwd, lost)}"


def _again(cwd: bytes, lost: str) -> str:
    return f"it was restarted in {os.fsdecode(cwd)} with its exported environment, but lost its {lost}"


class Caller:
    """Whoever asked for a command, and is told of its begin and its end.

    A relay whose connection has dropped comes back over another one, and is told all of it there.
    """

    def __init__(self, client: Client, request: bytes) -> None:
        self._client, self._request = client, request
        self._told: list[tuple[bytes, list[bytes]]] = []

    def begun(self, number: int, begin: int, notice: bytes) -> None:
        """The command has begun."""
        self._tell(wire.BEGUN, [b"%d" % number, b"%d" % begin, notice])

    def done(self, finished: Finished) -> None:
        """The command has ended."""
        self._tell(wire.DONE, finished.fields())

    def _tell(self, kind: bytes, fields: list[bytes]) -> None:
        self._told.append((kind, fields))
        self._client.send(kind, self._request, *fields)

    def moved(self, client: Client, request: bytes) -> None:
        """The one who asked is there again, under another request: tell all of it there."""
        self._client, self._request = client, request
        for kind, fields in self._told:
            client.send(kind, request, *fields)
