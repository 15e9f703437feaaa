"""The process that answers one session's questions by rule: ``python -m session_magics.agents.approver``.

Told on standard input what it may do (see ``grants``), it detaches itself, says ``ok`` or why not, and lives until the
program ends, its time or its answers are used up, it is told to go, or a decision switches it off. It wakes for
output and for what is due, and renders the screen only when that has come to rest.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from session_magics.agents import identity
from session_magics.agents.approval import (
    RETRY,
    STILL,
    WAITS,
    Answer,
    Decision,
    Grant,
    Memory,
    Off,
    Refuse,
    Sight,
    Wait,
    belongs,
    decide,
    encoded,
)
from session_magics.agents.audit import Trail, decode, encode
from session_magics.agents.prompts import Doing, read_screen
from session_magics.agents.standing import RecordWriter, clock, take_lock
from session_magics.backends.choice import Backends
from session_magics.errors import SessionBusy, SessionError, SessionNotRunning, SessionUnresponsive, StoreError
from session_magics.log import LogReader
from session_magics.model import Running, describe
from session_magics.news import RECONNECT, STATE_CHECK
from session_magics.session import Session
from session_magics.store import Store
from session_magics.text import strip_styles

NAP = 0.05
"""Seconds between looks at the length of the log while output comes."""
BUSY_LOOK = 2.0
"""Seconds between looks at a screen that never rests."""
RENDER_SHARE = 50
"""Or so many times as long as one rendering took, if that is more: 2 % of a processor."""
ANSWER_LOOK = 0.1
"""The same while the effect of an answer is awaited."""
NOTHING = Doing("idle", None, "")


class Told:
    """Whether a signal has asked us to go; its descriptor becomes readable then."""

    def __init__(self) -> None:
        self.fd, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.off = False
        signal.signal(signal.SIGTERM, self._hear)
        for ignored in (signal.SIGINT, signal.SIGHUP):
            signal.signal(ignored, signal.SIG_IGN)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def _hear(self, *_: object) -> None:
        self.off = True


@dataclass(frozen=True)
class View:
    """A rendered screen, and what it was rendered from."""

    end: int
    """Of the log."""
    size: tuple[int, int]
    lines: tuple[str, ...]
    row: int
    doing: Doing


class Approver:
    """Watches one session and answers, for ``run`` and until it returns."""

    def __init__(self, session: Session, grant: Grant, told: Told, record: RecordWriter, trail: Trail) -> None:
        self._session, self._grant, self._told = session, grant, told
        self._record, self._trail = record, trail
        self._log, self._news = LogReader(session.directory), session.news()
        self._state = session.state()
        self._memory = Memory()
        self._view: View | None = None
        self._end = -1
        """Of the log, as far as known."""
        self._output_at = self._still_since = self._looked_at = 0.0
        self._stirred_at: float | None = 0.0
        """When the first output came since the last look."""
        self._cost = 0.0
        """Seconds that the last rendering took."""
        self._due: float | None = None
        self._first: tuple[object, ...] = ()
        """The newest question, with the size and the highlighted choice that it came with."""
        self._touched = False

    def run(self) -> str:
        """Answer until there is a reason to stop; that reason."""
        off = ""
        with contextlib.closing(self._log), contextlib.closing(self._news):
            while not off:
                flows, now = self._listen(), clock()
                next_look = self._next_look()
                if self._told.off:
                    off = "switched off"
                elif (state := self._session.state()) != self._state:
                    again = isinstance(state, Running)
                    off = "the program was started anew" if again else f"the program has ended: {describe(state)}"
                elif now >= next_look:
                    off = self._look()
                elif flows:
                    self._sleep(min(NAP, next_look - now))
                else:
                    self._await_output(min(STATE_CHECK, next_look - now))
            with contextlib.suppress(StoreError):
                self._append(kind="off", reason=off)
        self._record.write(off=off, waiting="")
        return off

    # ------------------------------------------------------------------ timing

    def _listen(self) -> bool:
        """Notice output that has come; whether some has."""
        end = self._log.end()
        if end == self._end:
            return False
        self._end, self._output_at = end, clock()
        self._stirred_at = self._stirred_at or self._output_at
        return True

    def _next_look(self) -> float:
        due = self._grant.until
        if self._due is not None:
            due = min(due, self._due)
        if self._stirred_at is not None:
            pause = ANSWER_LOOK if self._memory.pending else max(BUSY_LOOK, RENDER_SHARE * self._cost)
            due = min(due, self._output_at + STILL, max(self._stirred_at, self._looked_at) + pause)
        return due

    def _sleep(self, seconds: float) -> None:
        select.select([self._told.fd], [], [], max(0.0, seconds))

    def _await_output(self, seconds: float) -> None:
        try:
            self._news.watch(self._end)
            link_fd = self._news.link().fileno()
            if link_fd in select.select([link_fd, self._told.fd], [], [], max(0.0, seconds))[0]:
                self._news.take()
        except SessionNotRunning:
            self._news.close()
            self._sleep(RECONNECT)
        except SessionUnresponsive:
            self._news.close()

    # ----------------------------------------------------------------- looking

    def _look(self) -> str:
        """Look at the screen and do what is to be done; why to stop, or nothing."""
        try:
            sight = self._sight()
        except SessionError:  # the holder goes, or hangs: there is nobody to send a key to
            self._news.close()
            self._due = clock() + RETRY
            return ""
        before = self._memory
        decision, memory = decide(self._grant, before, sight)
        self._due = decision.due if isinstance(decision, Wait) else None
        try:
            if before.pending and (isinstance(decision, Off) or not memory.pending):
                self._note_outcome(sent=True, gone=memory.gone, sight=sight)
            if not isinstance(decision, Wait):
                self._note(decision, before, sight)
            if not isinstance(decision, Answer):
                self._memory = memory
            return self._carry_out(decision, memory, sight)
        except StoreError as error:
            return f"what is done cannot be recorded: {error}"

    def _carry_out(self, decision: Decision, memory: Memory, sight: Sight) -> str:
        match decision:
            case Off(reason=reason):
                return reason
            case Answer(keys=keys):
                return self._answer(keys, memory, sight)
            case Refuse(reason=reason):
                self._record.write(waiting=reason)
            case Wait() if not memory.refused:
                self._record.write(waiting="")
        return ""

    def _sight(self) -> Sight:
        """All that a decision depends on; the log has what the program said before it waited."""
        waiting = self._news.link().probe()
        self._listen()
        now = self._looked_at = clock()
        self._stirred_at = None
        masked = waiting.canonical and not waiting.echo
        view = View(self._end, (0, 0), (), 0, NOTHING) if masked else self._rendered(self._end)
        if self._view is None or (view.lines, view.row) != (self._view.lines, self._view.row):
            self._still_since = self._output_at
        self._view = view
        self._notice_touch(view)
        hidden = view.doing.prompt is not None and view.doing.prompt.masked
        return Sight(
            time=now,
            lines=() if hidden else view.lines,
            row=view.row,
            unchanged=now - self._still_since,
            waiting=waiting.kind,
            echo=waiting.echo,
            canonical=waiting.canonical,
            foreground=self._foreground(),
            doing=view.doing,
            touched=self._touched,
        )

    def _rendered(self, end: int) -> View:
        from session_magics.text.screen import SNAPSHOT_BYTES, picture  # the emulator is slow to import

        info = self._session.info()
        if self._view is not None and (self._view.end, self._view.size) == (end, info.size):
            return self._view
        began = time.thread_time()
        data = self._log.bytes(max(0, end - SNAPSHOT_BYTES), end)
        shown = picture(data, info.size, behind=False, returns=info.shell is not None)
        self._cost = time.thread_time() - began
        lines = tuple(strip_styles(line).rstrip() for line in shown.lines)
        doing = read_screen(lines, shown.row, self._grant.prompts, self._grant.version)
        return View(end, info.size, lines, shown.row, doing)

    def _notice_touch(self, view: View) -> None:
        prompt = view.doing.prompt
        if prompt is None:
            self._first, self._touched = (), False
            return
        now = (prompt.digest, view.size, tuple(choice.selected for choice in prompt.choices))
        if not self._first or self._first[0] != now[0]:
            self._first, self._touched = now, False
        self._touched = self._touched or self._first != now

    def _foreground(self) -> tuple[str, ...] | None:
        return identity.foreground(self._state.pid) if isinstance(self._state, Running) else None

    # --------------------------------------------------------------- answering

    def _answer(self, keys: str, memory: Memory, sight: Sight) -> str:
        """Type the keys if nothing has changed since the decision, which is on record by now."""
        link = self._news.link()
        try:
            if not self._as_seen(sight):
                raise SessionBusy(self._session.name, "something else came first")
            link.send(keys.encode())
        except (SessionBusy, SessionNotRunning):  # nothing was sent
            self._note_outcome(sent=False, gone=False, sight=sight)
            self._due = clock() + RETRY
            return ""
        except SessionUnresponsive:
            return "the holder did not answer: whether the key arrived is not known"
        now = clock()
        self._memory = replace(memory, times=(*memory.times[:-1], now))
        self._due = now + ANSWER_LOOK
        self._record.write(answered=memory.answered, left=self._grant.most - memory.answered, waiting="")
        return ""

    def _as_seen(self, sight: Sight) -> bool:
        """Whether all is still as it was when the decision was made."""
        waiting = self._news.link().probe()
        return (
            (waiting.echo, waiting.canonical) == (sight.echo, sight.canonical)
            and waiting.kind in WAITS
            and self._session.state() == self._state
            and self._view is not None
            and self._session.info().size == self._view.size
            and belongs(self._grant, self._foreground())
            and self._log.end() == self._view.end
            and clock() < self._grant.until
            and not self._told.off
        )

    def note_start(self) -> None:
        """Record who switched this on, and what it may do."""
        self._append(kind="on", tool=self._grant.tool, version=self._grant.version, grant=encode(self._grant))

    def _note(self, decision: Decision, memory: Memory, sight: Sight) -> None:
        self._append(
            kind="decision",
            decision=encoded(decision),
            grant=encode(self._grant),
            memory=encode(memory),
            sight=encode(sight),
        )

    def _note_outcome(self, *, sent: bool, gone: bool, sight: Sight) -> None:
        self._append(kind="outcome", sent=sent, gone=gone, screen=list(sight.lines))

    def _append(self, **fields: object) -> None:
        self._trail.append({"time": time.time(), "session": self._session.id, "name": self._session.name, **fields})


def main() -> None:
    """Read the order, detach, answer."""
    order = json.load(sys.stdin.buffer)
    if os.fork():  # whoever started this waits for it, and is left without a child
        os._exit(0)
    told = Told()
    try:
        grant = decode(Grant, order["grant"])
        session = Session(Store(Path(order["root"])), Backends(), order["name"], order["id"])
        lock = take_lock(session.directory)
        record = RecordWriter(session.directory, grant)
        record.write()
        trail = Trail(session.directory)
        approver = Approver(session, grant, told, record, trail)
        approver.note_start()
    except (SessionError, OSError) as error:
        os.write(1, str(error).encode())
        sys.exit(1)
    os.write(1, b"ok")
    _let_go()
    with contextlib.suppress(OSError), contextlib.closing(trail):  # the session's directory may be gone
        try:
            approver.run()
        except Exception as error:
            record.write(off=f"it failed: {error!r}", waiting="")
    os.close(lock)


def _let_go() -> None:
    """Give the standard descriptors back: who started this waits for their end."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    os.close(nowhere)


if __name__ == "__main__":
    main()
