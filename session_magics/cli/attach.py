"""``attach``: the person's terminal becomes the session's, until the detach key or the end of the program."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys

from session_magics.cli.terminal import ENDING, OwnTerminal, Signals
from session_magics.cli.viewer import Next, Viewer
from session_magics.cli.words import DETACH_KEY, PROGRAM
from session_magics.environment import COOKIE
from session_magics.errors import SessionError, SessionNotRunning, UsageMistake
from session_magics.model import BackingOff, Exited, Running, State, describe
from session_magics.news import STATE_CHECK
from session_magics.session import Session

DETACHED = 0
"""What the loop gives for the detach key; other numbers are those of signals."""


def attach(session: Session, *, read_only: bool = False, detach_key: str = DETACH_KEY) -> int:
    """Show the session on this terminal and type into it; the exit status.

    0 after the detach key, the program's own status (or 128 and its signal) after its end, 128 and the signal that
    ended this process. A program that has failed already gives its status too, however often one comes. Only for the
    main thread. Raises SessionNotRunning, UsageMistake, SessionError (no terminal).
    """
    info = session.info()
    if not isinstance(info.state, Running | BackingOff):
        return _too_late(session.name, info.state)
    if os.environ.get(COOKIE) == session.id:
        raise UsageMistake(f"this terminal is session {session.name!r} itself, and would show itself for ever")
    with contextlib.ExitStack() as stack:
        signals = stack.enter_context(Signals())  # first and last: none may end this process in between
        terminal = stack.enter_context(contextlib.closing(OwnTerminal(newlines=info.shell is not None)))
        viewer = Viewer(session, terminal, read_only=read_only, detach_key=detach_key)
        stack.callback(viewer.close)
        stack.callback(lambda: terminal.close(viewer.farewell()))
        viewer.begin()
        ended_by = _Loop(viewer, terminal, signals).run()
    return _goodbye(session, ended_by)


class _Loop:
    """Waits for keys, signals, output, and room in the terminal, all at once."""

    def __init__(self, viewer: Viewer, terminal: OwnTerminal, signals: Signals) -> None:
        self._viewer, self._terminal, self._signals = viewer, terminal, signals

    def run(self) -> int | None:
        """Go on until the detach key (DETACHED), a signal (its number) or the end of the program (None)."""
        while True:
            following = self._viewer.step()
            if following is Next.OVER and not self._terminal.pending:
                return None
            happened = self._wait(0.0 if following is Next.MORE else self._viewer.due())
            if self._signals.fileno() in happened and (number := self._signalled()):
                return number
            if happened.get(self._terminal.fileno(), 0) & select.POLLOUT:
                self._terminal.flush()
            if happened.get(self._terminal.fileno(), 0) & ~select.POLLOUT:
                keys = self._terminal.read()
                if keys is None:
                    return signal.SIGHUP
                if self._viewer.typed(keys):
                    return DETACHED

    def _wait(self, seconds: float | None) -> dict[int, int]:
        """What has happened within so many seconds (None: whenever), as descriptors with their events."""
        terminal, poll = self._terminal, select.poll()
        poll.register(self._signals.fileno(), select.POLLIN)
        poll.register(terminal.fileno(), select.POLLIN | (select.POLLOUT if terminal.pending else 0))
        link = self._link()
        if link >= 0:
            poll.register(link, select.POLLIN)
        elif self._viewer.listens:
            seconds = STATE_CHECK if seconds is None else min(seconds, STATE_CHECK)
        happened = dict(poll.poll(None if seconds is None else seconds * 1000))
        if link in happened:
            try:
                self._viewer.news.take()
            except SessionError:
                self._viewer.news.close()
        return happened

    def _link(self) -> int:
        """The descriptor that tells of output; -1 while no holder answers."""
        news = self._viewer.news
        try:
            if self._viewer.listens:  # each time: a bell may have been taken in by a request of ours
                news.watch(self._viewer.position)
            return news.link().fileno()
        except SessionError:  # the state tells what has become of it
            news.close()
            return -1

    def _signalled(self) -> int | None:
        """Do what signals ask for; the number of one that ends it all."""
        taken = self._signals.take()
        ending = next((number for number in ENDING if number in taken), None)
        if ending is not None:
            return ending
        if signal.SIGTSTP in taken:
            self._terminal.release(self._viewer.farewell())
            self._signals.stop()
        if signal.SIGTSTP in taken or signal.SIGCONT in taken:
            self._terminal.take()
            self._viewer.forget()
        if signal.SIGWINCH in taken:
            self._viewer.resized()
        return None


def _too_late(name: str, state: State) -> int:
    """Say that there is nothing to attach to; the status of a program that failed. Else it is an error: no success."""
    error = SessionNotRunning(name, describe(state))
    status = _status(state) if isinstance(state, Exited) else 0
    if not status:
        raise error
    print(f"{PROGRAM}: {error}".replace("%session ", f"{PROGRAM} "), file=sys.stderr)
    return status


def _status(state: Exited) -> int:
    return state.code if state.code is not None else 128 + (state.signal or 0)


def _goodbye(session: Session, ended_by: int | None) -> int:
    if ended_by is None:
        state = session.settled()
        if not isinstance(state, Exited):
            print(file=sys.stderr)  # the error is not to stand behind what the program wrote last
            raise SessionNotRunning(session.name, describe(state))
        _say(f"{session.name}: {describe(state)}")
        return _status(state)
    if ended_by == DETACHED:
        _say(f"detached: {PROGRAM} attach {session.name} comes back")
        return 0
    return 128 + ended_by


def _say(text: str) -> None:
    print(f"\r\n[{text}]", file=sys.stderr)
