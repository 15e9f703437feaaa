"""Running a cell in the foreground: output, prompts, interrupts and the time limit, until its end."""

from __future__ import annotations

import contextlib
import math
import select
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from session_magics import text
from session_magics.backends import Waiting
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
SAME_PRESS = 0.25
"""Seconds in which further interrupts are the same gesture: a double click is not to kill what the first one ends."""
ASK_POLL = 0.05
"""Seconds between looks for an answer while a question is open."""
LOOK_AGAIN, LOOKS = 0.05, 6
"""Seconds between looks, and how many in a row decide that a command reads no more: a signal, such as that of a child's
end, wakes it from its read, which it goes back to once the processor is free."""
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


@dataclass
class _Question:
    """A question that is open. It cannot be withdrawn, so an answer is given only to what asked it."""

    masked: bool
    canonical: bool
    end: int
    """How far the output had come when it was put."""
    missed: int = 0
    """How many looks in a row have found the command doing something else; once is a signal that it takes."""
    stale: bool = False
    """Whether it has done something else in between."""

    def seen(self, *, waiting: bool) -> None:
        """Take note of a look."""
        self.missed = 0 if waiting else self.missed + 1
        self.stale = self.stale or self.missed > 1


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
        self.interrupted = False
        """Whether the person interrupted it."""
        self.timed_out = False
        self.wanted_input = False
        """Whether it asked for input that nobody could give."""
        now = time.monotonic()
        self._deadline = math.inf if timeout is None else now + timeout
        self._insist = math.inf  # when to interrupt by ourselves
        self._question: _Question | None = None
        self._wait = _Wait()
        self._shown = self._seen = 0  # log offsets
        self._quiet_since = self._next_look = now
        self._pressed = -math.inf
        self._press_at_begin = False

    def run(self) -> CellResult:
        """Return the result when the command has ended and all its output is shown."""
        cell = self._cell
        poll = select.poll()
        poll.register(cell, select.POLLIN)
        poll.register(self._interrupts, select.POLLIN)
        while cell.result is None:
            now = time.monotonic()
            self._tell()
            if cell.begin is not None:
                self._show(now)
            self._press(now)
            poll.poll(self._patience(now) * 1000)
            cell.receive(0)
            self._take_interrupts()
        self._tell()
        self._sink.finish(cell, cell.result.end)
        if self._question is not None:
            self._sink.notice("the question was not answered in time: an answer that comes now is dropped")
        return cell.result

    def _tell(self) -> None:
        if self._cell.notice:
            self._sink.notice(self._cell.notice)
            self._cell.notice = ""

    # ---- output

    def _show(self, now: float) -> None:
        """Let the sink show what it wants to show now; while it wants nothing, find out whether more comes."""
        cell = self._cell
        if cell.available > self._seen:
            self._seen, self._quiet_since = cell.available, now
            self._wait.since, self._wait.kind = 0.0, "no"
        if self._seen > self._shown and now >= self._sink.due(now):
            self._advance()
        elif self._seen > self._shown and now >= self._next_look:
            self._watch()
            self._next_look = now + PROBE_QUIET

    def _advance(self) -> None:
        self._sink.advance(self._cell, self._seen)
        self._shown = self._seen
        self._watch()

    def _watch(self) -> None:
        with contextlib.suppress(SessionNotRunning):  # then ``receive`` has the outcome
            self._cell.watch(self._seen)

    def _patience(self, now: float) -> float:
        """Seconds until something is due even if nothing comes."""
        times = [now + 3600.0, self._deadline, self._insist]
        if self._cell.begin is not None:
            if self._seen > self._shown:
                times += [self._sink.due(now), max(self._next_look, now)]
            if self._insist == math.inf:
                times.append(max(self._wait.next_probe, self._quiet_since + PROBE_QUIET))
        if self._question is not None:
            times.append(now + ASK_POLL)
        return max(0.0, min(times) - now)

    # ---- interrupts

    def _press(self, now: float) -> None:
        """Interrupt what is over its time, or takes no answer, harder and harder."""
        if now >= self._deadline:
            self.timed_out, self._deadline, self._insist = True, math.inf, now
        if self._press_at_begin and self._cell.begin is not None:
            self._press_at_begin = False
            self._interrupt()
        if now >= self._insist:
            self._interrupt()
            self._insist = now + INSIST
        if self._cell.begin is not None and self._insist == math.inf and self._waits(now):
            self._insist = now

    def _take_interrupts(self) -> None:
        """Hand on what the person has pressed. Before the begin something of ours runs, which a first press spares."""
        if not self._interrupts.take():
            return
        now, first = time.monotonic(), not self.interrupted
        self.interrupted = True
        if self._cell.result is not None or now - self._pressed < SAME_PRESS:
            return
        self._pressed = now
        if self._cell.begin is None:
            self._press_at_begin = True
        if self._cell.begin is not None or not first:
            self._interrupt()

    def _interrupt(self) -> None:
        with contextlib.suppress(SessionNotRunning):  # then ``receive`` has the outcome
            self._cell.interrupt()

    # ---- input

    def _waits(self, now: float) -> bool:
        """Look whether the command waits for input, and see to it; True if it has to be interrupted."""
        wait = self._wait
        if self._question is not None:
            self._fetch_answer(self._question)
        if now < max(wait.next_probe, self._quiet_since + PROBE_QUIET):
            return False
        calm = self._question is None and now - self._quiet_since > PROBE_CALM
        wait.next_probe = now + (PROBE_LATER if calm else PROBE_QUIET)
        self._at_hand(False)
        try:
            state = self._cell.probe()
        except SessionNotRunning:
            return False
        wanted = state.kind == "read" or (state.kind == "poll" and not state.canonical and self._asker is None)
        if self._question is not None:
            self._question.seen(waiting=wanted)
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
        if self._question is None and not self._at_hand(True):
            self._ask(self._asker, masked=not state.echo, canonical=state.canonical)
        return False

    def _ask(self, asker: Asker, *, masked: bool, canonical: bool) -> None:
        if self._seen > self._shown:
            self._advance()
        self._question = _Question(masked, canonical, self._seen)
        asker.ask(self._prompt(), masked=masked)

    def _prompt(self) -> str:
        """The last line of the output; where that one is empty, the cursor is below the line that asks."""
        lines = self._text(max(self._cell.begin or 0, self._seen - PROMPT_BYTES), self._seen).split("\n")
        return lines[-1] or lines[-2] if len(lines) > 1 else lines[-1]

    def _text(self, begin: int, end: int) -> str:
        return text.plain(self._cell.log.bytes(begin, end))

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

    def _fetch_answer(self, question: _Question) -> None:
        assert self._asker is not None
        answer = self._asker.answer()
        if answer is None:
            return
        self._question = None
        self._wait.since, self._wait.kind = 0.0, "no"
        why = self._refusal(question, answer)
        if why:
            self._sink.notice(f"{why}: the answer was dropped")

    def _refusal(self, question: _Question, answer: str) -> str:
        """Type the answer; or say why that was not done.

        Lines that were printed meanwhile may be a background job's. What ends in the middle of a line is taken for
        another question.
        """
        try:
            state = self._looked(self._cell.probe())
            if state.kind == "no":
                return "the command no longer waits for input"
            modes = (not state.echo, state.canonical)
            # The probe has had the holder log all that was said before the read began; no bell need have told of it.
            in_a_line = self._text(question.end, self._cell.log.end()).rpartition("\n")[2]
            if question.stale or modes != (question.masked, question.canonical) or in_a_line:
                return "the command went on and asks something else"
            self._cell.send(_typed(answer, canonical=state.canonical), secret=question.masked)
        except SessionError:
            return "the command no longer asks in the same way"
        return ""

    def _looked(self, state: Waiting) -> Waiting:
        """A state that is not only that of the moment in which a signal is taken."""
        for _ in range(LOOKS - 1):
            if state.kind != "no":
                break
            time.sleep(LOOK_AGAIN)
            state = self._cell.probe()
        return state


def _typed(answer: str, *, canonical: bool) -> bytes:
    """The keys for an answer; a program that takes single keys gets a single one without Enter."""
    if answer == EOF:
        return b"\x04"
    data = answer.encode("utf-8", "surrogateescape")
    if canonical:
        return data + b"\n"
    return data if len(answer) == 1 else data + b"\r"
