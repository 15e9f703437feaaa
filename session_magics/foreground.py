"""Running a cell in the foreground: output, prompts, interrupts and the time limit, until its end."""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from session_magics import text
from session_magics.errors import SessionError, SessionNotRunning
from session_magics.interrupts import Interrupts
from session_magics.model import CellResult
from session_magics.shell import Cell

PROBE_QUIET = 0.1
"""Seconds without output before it is asked whether the command waits for input, and between two askings."""
PROBE_LATER = 0.3
"""The same once the command has been quiet for PROBE_CALM seconds: a long silent job should cost nothing."""
PROBE_CALM = 5.0
CERTAIN = 0.3
"""Seconds for which a blocked read must have lasted before it is taken for a question."""
ENDS_OF_FILE = 3
"""Times that a command which may not ask is told end-of-file before it is interrupted."""
INSIST = 1.5
"""Seconds between two interrupts of a command that does not end; within the two seconds that make them harder."""
HUNDRED_MS = 0.1
ASK_POLL = 0.05
"""Seconds between looks for an answer while a question is open."""
EOF = "\x04"
"""What a front end sends for end-of-file."""
PROMPT_BYTES = 2048


class Sink(Protocol):
    """Where output is shown. All calls come from the thread that runs the cell."""

    def due(self, now: float) -> float:
        """The monotonic time from which on the next ``advance`` is welcome."""

    def advance(self, cell: Cell, upto: int) -> None:
        """Show the output up to a log offset; it is for the sink to read it."""

    def finish(self, cell: Cell, end: int) -> None:
        """Show the rest of it."""

    def notice(self, line: str) -> None:
        """Show a line of ours."""


class Asker(Protocol):
    """Asks the person at the notebook."""

    def ask(self, prompt: str, *, masked: bool) -> None:
        """Put a question; the answer is fetched by ``answer``."""

    def answer(self) -> str | None:
        """The answer, once there is one."""


@dataclass
class _Wait:
    """How long the command has been seen waiting, without output in between."""

    since: float = 0.0
    next_probe: float = 0.0
    kind: str = "no"
    ends_of_file: int = 0


class Foreground:
    """Drives one cell to its end. ``asker`` is None where nobody can answer."""

    def __init__(
        self,
        cell: Cell,
        sink: Sink,
        interrupts: Interrupts,
        *,
        asker: Asker | None,
        timeout: float | None = None,
        at_hand: Callable[[bool], bool] = lambda asks: False,
    ) -> None:
        """``at_hand`` says whether the person can type into the program itself; then nothing is asked.

        It is called when nothing has come for a moment, with whether the command certainly asks for something.
        """
        self._at_hand = at_hand
        self._cell, self._sink, self._interrupts, self._asker = cell, sink, interrupts, asker
        self._timeout = timeout
        self.interrupted = False
        """Whether the person interrupted it."""
        self.timed_out = False
        self.wanted_input = False
        """Whether it asked for input that nobody could give."""
        self._asking: bool | None = None  # masked, while a question is open
        self._wait = _Wait()
        self._shown = 0

    def run(self) -> CellResult:
        """Return the result when the command has ended and all its output is shown."""
        cell, begun = self._cell, time.monotonic()
        deadline = None if self._timeout is None else begun + self._timeout
        quiet_since = begun
        insist: float | None = None
        poll = select.poll()
        poll.register(cell, select.POLLIN)
        poll.register(self._interrupts, select.POLLIN)
        while cell.result is None:
            now = time.monotonic()
            self._tell()
            if cell.available > self._shown and cell.begin is not None and now >= self._sink.due(now):
                self._sink.advance(cell, cell.available)
                self._shown, quiet_since = cell.available, now
                self._wait.since, self._wait.kind = 0.0, "no"
                cell.watch(self._shown)
            if deadline is not None and now >= deadline:
                self.timed_out, deadline, insist = True, None, now
            if insist is not None and now >= insist:
                cell.interrupt()
                insist = now + INSIST
            quiet = cell.begin is not None and cell.available <= self._shown and insist is None
            if quiet and self._waits(now, quiet_since):
                insist = now
            poll.poll(self._patience(now, deadline, insist, quiet_since) * 1000)
            cell.receive(0)
            for _ in range(self._interrupts.take()):
                self.interrupted = True
                if cell.result is None:
                    cell.interrupt()
        self._tell()
        self._sink.finish(cell, cell.result.end)
        if self._asking is not None:
            self._sink.notice("the question was not answered in time: an answer that comes now is dropped")
        return cell.result

    def _tell(self) -> None:
        if self._cell.notice:
            self._sink.notice(self._cell.notice)
            self._cell.notice = ""

    def _patience(self, now: float, deadline: float | None, insist: float | None, quiet_since: float) -> float:
        """Seconds until something is due even if nothing comes."""
        times = [now + 3600.0, *[one for one in (deadline, insist) if one is not None]]
        if self._cell.begin is not None:
            if self._cell.available > self._shown:
                times.append(self._sink.due(now))
            elif insist is None:
                times.append(max(self._wait.next_probe, quiet_since + PROBE_QUIET))
        if self._asking is not None:
            times.append(now + ASK_POLL)
        return max(0.0, min(times) - now)

    def _waits(self, now: float, quiet_since: float) -> bool:
        """Look whether the command waits for input, and see to it; True if it has to be interrupted."""
        wait = self._wait
        if self._asking is not None:
            self._fetch_answer()
        if now < max(wait.next_probe, quiet_since + PROBE_QUIET):
            return False
        wait.next_probe = now + (PROBE_LATER if now - quiet_since > PROBE_CALM else PROBE_QUIET)
        self._at_hand(False)
        try:
            state = self._cell.probe()
        except SessionNotRunning:
            return False
        wanted = state.kind == "read" or (state.kind == "poll" and not state.canonical and self._asker is None)
        if not wanted:
            wait.since, wait.kind = 0.0, "no"
            return False
        if wait.kind == "no":
            wait.since, wait.kind = now, state.kind
            return False
        if now - wait.since < CERTAIN:
            return False
        if self._asker is None:
            return self._end_of_file(now)
        if self._asking is None and not self._at_hand(True):
            self._asking = not state.echo
            self._asker.ask(self._prompt(), masked=not state.echo)
        return False

    def _prompt(self) -> str:
        cell = self._cell
        data = cell.log.bytes(max(cell.begin or 0, self._shown - PROMPT_BYTES), self._shown)
        lines = text.plain(data).rsplit("\n", 1)
        return lines[-1]

    def _end_of_file(self, now: float) -> bool:
        """Nobody may answer: say end-of-file, and if that is ignored let the command be interrupted."""
        self.wanted_input = True
        self._wait.ends_of_file += 1
        if self._wait.ends_of_file > ENDS_OF_FILE:
            return True
        with contextlib.suppress(SessionError):
            self._cell.send(b"\x04")
        self._wait.since = now
        return False

    def _fetch_answer(self) -> None:
        assert self._asker is not None
        answer = self._asker.answer()
        if answer is None:
            return
        masked, self._asking = self._asking, None
        self._wait.since, self._wait.kind = 0.0, "no"
        try:
            state = self._cell.probe()
            if state.kind == "no":
                self._sink.notice("the command no longer waits for input: the answer was dropped")
                return
            self._cell.send(_typed(answer, canonical=state.canonical), secret=bool(masked))
        except SessionError:
            self._sink.notice("the command no longer asks in the same way: the answer was dropped")


def _typed(answer: str, *, canonical: bool) -> bytes:
    """The keys for an answer; a program that takes single keys gets a single one without Enter."""
    if answer == EOF:
        return b"\x04"
    data = answer.encode("utf-8", "surrogateescape")
    if canonical:
        return data + b"\n"
    return data if len(answer) == 1 else data + b"\r"
