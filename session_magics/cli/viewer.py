"""A session on the person's own terminal: what it shows, and what is typed.

While both have one size, output passes as it comes. A terminal of another size, which only looks or has not been
typed into yet, is drawn the session's screen instead, as often as that costs little. Output is read from the log when
the terminal has taken what came before; one that does not read holds nobody up, and is drawn the screen later.
"""

from __future__ import annotations

import copy
import enum
import time
from dataclasses import dataclass, field

from session_magics.agents.standing import standing
from session_magics.cli import scene
from session_magics.cli.terminal import OwnTerminal
from session_magics.cli.typing_in import DetachKey, Typist
from session_magics.errors import SessionError, SessionNotRunning
from session_magics.log import INDEX_TAIL, Event, EventReader, LogReader
from session_magics.model import BackingOff, describe
from session_magics.session import Session
from session_magics.text.modes import MODE_BYTES, Modes
from session_magics.text.queries import QueryFilter
from session_magics.text.screen import SNAPSHOT_BYTES, picture

SKIP_BYTES = 1024 * 1024
"""Bytes that the terminal may be behind before it is drawn the screen: they would scroll by unseen."""
CHUNK_BYTES = 64 * 1024
"""Bytes given to the terminal at once."""
NOTICE_SECONDS = 2.0
"""How long a line of ours stays where the program says nothing."""
DRAW_EVERY = 0.1
"""Seconds between two drawings of a screen of another size, or of one that runs ahead."""
DRAW_SHARE = 4
"""A drawing that took long is followed by a pause of so many times that long."""
RESIZE_EVERY = 0.05
"""Seconds between two changes of the session's size: a window that is dragged changes hundreds of times."""


class Next(enum.Enum):
    """What is to come after a step."""

    MORE = "another step, at once"
    NEWS = "whatever happens first"
    OVER = "nothing: the program has ended, and all is shown"


@dataclass
class _Output:
    """How far the output is shown, and what that has made of the terminal."""

    at: int
    begin: int
    """Where the output of this generation begins."""
    modes: Modes
    """Those of the program."""
    filter: QueryFilter = field(default_factory=QueryFilter)
    shown: Modes | None = None
    """Those of the terminal; None: nothing was drawn yet."""
    scrolled: bool = False
    """Whether what the person had on the main screen has been moved out of the way."""


class Viewer:
    """Shows one session. ``step`` after anything happened, and at ``due``; not to be used by several threads."""

    def __init__(self, session: Session, terminal: OwnTerminal, *, read_only: bool, detach_key: str) -> None:
        self._session, self._terminal, self._read_only = session, terminal, read_only
        self._detach_name, self._detach = detach_key, DetachKey(detach_key)
        info = session.info()
        self._shell = info.shell is not None
        self._command = session.command() if self._shell else None
        self._session_size, self._size = info.size, terminal.size()
        self._told_size = info.size  # by the last event; that of the output which is shown may be another
        self._log, self.news = LogReader(session.directory), session.news()
        self._typist = Typist(self.news)
        self._events = EventReader(session.directory)
        self._due: list[Event] = []
        begin = self._begin_events()
        end = self._log.end()
        self._output = _Output(end, begin, scene.modes_at(self._log, begin, end))
        self._notice = ""
        self._notice_until = 0.0
        self._dirty = True
        self._next_draw = self._next_resize = 0.0
        self._resized = self._ended = False

    def _begin_events(self) -> int:
        """Go to the end of the index; where the last start is, as far as is known."""
        try:
            size = (self._session.directory / "log.idx").stat().st_size
        except OSError:
            size = 0
        events, self._index = self._events.events(max(0, size - INDEX_TAIL))
        return max((event.at for event in events if event.kind == "restart"), default=0)

    # ---- beginning and end

    def begin(self) -> None:
        """Show the screen as it is now, and take the session's size."""
        drawn_size = self._session_size
        if not self._read_only:
            # Programs that draw on the whole screen seldom draw all of it; they do when its size changes.
            self._claim_size(nudge=self._output.modes.alternate or not self._output.modes.cursor_shown)
        end_key = f"{self._detach_name} detaches"
        self._draw(drawn_size if self._output.modes.alternate or self._mirrors else self._size)
        approval = standing(self._session.directory)
        badge = f" · {approval.badge}" if approval is not None and approval.on else ""
        self.tell(f"{self._session.name}: {'looking only, ' if self._read_only else ''}{end_key}{badge}")

    def farewell(self) -> bytes:
        """What brings the terminal back."""
        shown = self._output.shown
        if shown is None:
            return b""
        string = b"\x1b\\" if self._output.filter.inside else b""
        low = b"\x1b[%d;1H" % self._size[0] if self._mirrors and not shown.alternate else b""
        return string + shown.leave() + low + b"\x1b[?25h"

    def forget(self) -> None:
        """The terminal has been given back meanwhile, and is to be drawn anew."""
        self._output.shown, self._output.scrolled = None, False
        self._dirty, self._next_draw = True, 0.0
        self.resized()

    def close(self) -> None:
        """Give all back but the terminal."""
        self.news.close()
        self._log.close()

    # ---- what happens

    def resized(self) -> None:
        """The terminal may have another size."""
        self._resized = True

    def typed(self, data: bytes) -> bool:
        """Keys were pressed; True if they leave the session."""
        keys, leave = self._detach.part(data)
        if keys:
            if self._notice:
                self._hush()
            self._type(keys)
        return leave

    def _type(self, keys: bytes) -> None:
        if self._read_only:
            if keys[:1] != b"\x1b":  # reports of the mouse and the focus come by themselves
                self.tell(f"looking only: no keys; {self._detach_name} detaches")
            return
        self._take_events()  # another terminal may have set the size, or a command ended, since the last step
        if self._shell and self._command is None:
            self.tell(f"no command runs; this shell takes commands from cells: %%sh_session {self._session.name}")
            return
        try:
            self._size = self._terminal.size()  # a change may not have been taken up yet
            self._claim_size()
            if not self._typist.type(keys):
                self.tell("the program does not read: what was typed is dropped")
        except SessionError as error:
            self._lost_link(error)

    def _lost_link(self, error: SessionError) -> None:
        self.news.close()
        if not isinstance(error, SessionNotRunning) or self._session.info().running:  # an end is told by the state
            self.tell(f"keys are dropped: {error}".replace("%session ", "session-magics "))

    def _claim_size(self, *, nudge: bool = False) -> None:
        """Have the session take this terminal's size: the last typist sets it.

        ``nudge``: where it has it already, have the program draw its screen anew all the same.
        """
        rows, columns = self._size
        try:
            if nudge and self._session_size == self._size:
                self.news.link().resize(max(1, rows - 1), columns)
            elif self._session_size == self._told_size == self._size:
                return
            self.news.link().resize(rows, columns)
            self._session_size = self._told_size = self._size
        except SessionError as error:
            self._lost_link(error)

    def tell(self, text: str) -> None:
        """Show a line of ours for a while."""
        self._notice, self._notice_until = text, time.monotonic() + NOTICE_SECONDS
        self._terminal.write(scene.notice(text, self._size))

    def _hush(self) -> None:
        """Take the line of ours away."""
        self._notice, self._dirty, self._next_draw = "", True, 0.0

    # ---- showing

    @property
    def listens(self) -> bool:
        """Whether more output would make a difference now."""
        waits = self._dirty and self._next_draw > time.monotonic()
        return not (waits or self._terminal.pending)

    @property
    def position(self) -> int:
        """The log offset up to which all is shown."""
        return self._output.at

    @property
    def _mirrors(self) -> bool:
        """Whether the screen is drawn, as output for another size would make no sense here."""
        return self._session_size != self._size

    def due(self) -> float | None:
        """Seconds until ``step`` has something to do by itself; None: when something happens."""
        now = time.monotonic()
        times = []
        if self._notice and not self._terminal.pending:
            times.append(self._notice_until)
        if self._dirty and not self._terminal.pending:
            times.append(self._next_draw)
        if self._resized:
            times.append(self._next_resize)
        if self._typist.waiting:
            times.append(now + 0.05)
        return max(0.0, min(times) - now) if times else None

    def step(self) -> Next:
        """Show what is due, one piece at most."""
        now = time.monotonic()
        if self._typist.waiting:
            try:
                self._typist.go_on()
            except SessionError as error:
                self._lost_link(error)
        if self._resized and now >= self._next_resize:
            self._take_size(now)
        if self._terminal.pending:
            return Next.NEWS
        running = self.news.running()  # first, so that what was written before the end is seen below
        self._take_events()
        if self._ended and isinstance(state := self._session.state(), BackingOff):
            self._ended = False
            self.tell(f"{self._session.name}: {describe(state)}")
        end = self._log.end()
        self._apply_events()
        if self._notice and now >= self._notice_until:
            self._hush()
        if self._dirty or self._notice or self._mirrors or end - self._output.at > SKIP_BYTES:
            following = self._step_drawing(end, now, last=not running)
        else:
            following = self._pass_on(end)
        return Next.OVER if following is Next.NEWS and not running else following

    def _take_size(self, now: float) -> None:
        self._resized, self._next_resize = False, now + RESIZE_EVERY
        before, self._size = self._size, self._terminal.size()
        if before == self._size:
            return
        self._take_events()  # another terminal may have set the size
        mirrored = self._told_size != before
        if not mirrored and not self._read_only:
            self._claim_size()
        if mirrored or self._mirrors:
            self._dirty, self._next_draw = True, 0.0

    def _take_events(self) -> None:
        events, self._index = self._events.events(self._index)
        for event in events:
            if event.kind in ("begin", "end"):
                self._command = str(event.data.get("text", "")) if event.kind == "begin" else None
            elif event.kind == "resize":  # only the last one counts
                self._told_size = _size_of(event) or self._told_size
                self._due = [*(one for one in self._due if one.kind != "resize"), event]
            elif event.kind == "restart":
                self._due.append(event)
            self._ended = event.kind == "exit"

    def _apply_events(self) -> None:
        mirrored = self._mirrors
        while self._due and self._due[0].at <= self._output.at:
            event = self._due.pop(0)
            if event.kind == "resize":
                self._session_size = _size_of(event) or self._session_size
            else:
                out = self._output
                out.begin, out.modes, out.filter = event.at, Modes(), QueryFilter()
                self._dirty, self._next_draw = True, 0.0
        if self._mirrors != mirrored:
            self._dirty, self._next_draw = True, 0.0

    def _pass_on(self, end: int) -> Next:
        """Give the terminal the next piece of the output."""
        out, shown = self._output, self._output.shown
        assert shown is not None  # it is drawn first
        before, stop = out.at, min(end, out.at + CHUNK_BYTES, self._due[0].at if self._due else end)
        for offset, data in self._log.read(before, stop):
            out.at = offset + len(data)
            safe = out.filter.feed(data)
            out.modes.see(safe)
            shown.see(safe)
            self._terminal.write(safe)
        out.at = max(out.at, stop)  # a gap
        return Next.MORE if out.at > before or self._due else Next.NEWS

    def _step_drawing(self, end: int, now: float, *, last: bool) -> Next:
        """Draw the screen if it is time, or if it is the last."""
        out = self._output
        if end > out.at:
            out.modes.see(self._log.bytes(max(out.at, end - MODE_BYTES), end))
            out.at, self._dirty = end, True
            self._apply_events()
        if self._dirty and (last or now >= self._next_draw):
            self._draw(self._session_size)
        return Next.NEWS

    def _draw(self, size: scene.Size) -> None:
        """Draw the screen of a session of that size, as it is at the offset that has been reached."""
        began = time.monotonic()
        out = self._output
        data = self._log.bytes(max(out.begin, out.at - SNAPSHOT_BYTES), out.at)
        shown = picture(data, size, behind=out.shown is None, returns=self._shell)
        self._terminal.write(scene.draw(shown, self._size, out.modes, out.shown, scroll=not out.scrolled))
        behind = shown.behind is not None and any(shown.behind.lines)
        out.scrolled = out.scrolled or not out.modes.alternate or behind
        out.shown = copy.deepcopy(out.modes)
        out.filter = QueryFilter()
        out.filter.feed(data)  # what is cut off at the end goes on in what comes next
        self._dirty = False
        if self._notice:
            self._terminal.write(scene.notice(self._notice, self._size))
        taken = time.monotonic() - began
        self._next_draw = time.monotonic() + max(DRAW_EVERY, DRAW_SHARE * taken)


def _size_of(event: Event) -> scene.Size | None:
    """The rows and columns that an event of a resize tells."""
    rows, columns = event.data.get("rows"), event.data.get("columns")
    return (rows, columns) if isinstance(rows, int) and isinstance(columns, int) else None
