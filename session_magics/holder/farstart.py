"""Bringing up a program on a terminal of another place: both connections, the directory there, and its first word."""

from __future__ import annotations

import binascii
import os

from session_magics.holder.child import SpawnError, spawn
from session_magics.holder.control import Control
from session_magics.holder.dialects import mark
from session_magics.holder.farscript import HELLO, child_file, run_file
from session_magics.holder.farterminal import FarTerminal
from session_magics.holder.stopping import COOKIE
from session_magics.holder.trees import HOLDER_MARK

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from session_magics.holder.child import Terminal
    from session_magics.holder.farterminal import Ends
    from session_magics.holder.launch import Launch
    from session_magics.holder.loop import Loop, Timer

START_LIMIT = 16.0
"""Seconds for all of it: a container's takes 0.3, a distant host's some seconds. The backend waits for 30."""


class FarStart:
    """One start, driven by what is heard; ``then`` is called once, with the reason if it has failed, else "".

    Either the loop drives it (``begin``), or it is waited for (``open_far``).
    """

    def __init__(
        self,
        loop: Loop,
        launch: Launch,
        size: tuple[int, int],
        ends: Ends,
        argv: list[bytes],
        *,
        shell: bool,
        then: Callable[[str], None],
    ) -> None:
        self._loop, self._launch, self.size, self._ends, self._argv = loop, launch, size, ends, argv
        self._shell, self._then = shell, then
        self._before: FarTerminal | None = None
        self.terminal: FarTerminal | None = None
        self._marks = (mark(binascii.hexlify(os.urandom(12))), mark(binascii.hexlify(os.urandom(12))))
        self._answer: list[bytes] = []
        self._there = self._told = False
        self._given_up: Callable[[], None] | None = None
        self._limit: Timer | None = None
        self.over = False
        self.reason = ""
        """Why it has failed."""

    def begin(self, before: Terminal | None) -> None:
        """Start as soon as the far side of the terminal before is gone, which ends all that is the session's."""
        if isinstance(before, FarTerminal):
            self._before = before
            before.part(self._parted)
        else:
            self._parted()

    def _parted(self) -> None:
        self._before = None
        if self._given_up is not None:
            self._given_up()
            return
        try:
            self.connect()
        except SpawnError as error:
            self._end(str(error))

    def connect(self) -> FarTerminal:
        """Open both connections at once, as each takes its time to come up; raises SpawnError."""
        launch = self._launch
        env, cookie = near_environment(launch), COOKIE + b"=" + launch.env[COOKIE]
        control = Control(self._loop, launch.control, env, launch.near_cwd)
        try:
            near = spawn(launch.client, env, launch.near_cwd or b".", self.size)
        except BaseException:
            control.close()
            raise
        self.terminal = FarTerminal(self._loop, near, control, launch.place, self._ends, b"end %s" % cookie)
        control.records, control.broken = self._records, self._step
        name = b"session-magics-" + binascii.hexlify(os.urandom(8))
        control.greet(b"%s %s %d" % (name, cookie, launch.hangup), self._ready)
        self._loop.watch(near.pty_fd, lambda _events: self.hear())
        self._limit = self._loop.later(START_LIMIT, self.late)
        return self.terminal

    # ---- what is heard

    def hear(self) -> None:
        """Read the terminal."""
        if self.terminal is not None and not self.over:
            self.terminal.read_early()
            self._step()

    def _records(self, data: bytes) -> None:
        if self.terminal is not None:
            self.terminal.hear_records(data)
            self._step()

    def _ready(self, words: list[bytes]) -> None:
        """The directory is there: hand over what is to be run."""
        self._answer, terminal, launch = words, self.terminal, self._launch
        if words[:1] == [b"ready"] and terminal is not None:
            terminal.directory = b" ".join(words[1:])
            terminal.expect(self._marks)
            terminal.control.put(b"run", run_file(terminal.directory, self.size, self._marks, raw_lines=self._shell))
            files = child_file(terminal.directory, self._argv, launch.env, launch.unset, launch.cwd, shell=self._shell)
            terminal.control.put(b"child", files)
            terminal.control.ask(self._whole, b"P")
        self._step()

    def _whole(self, _words: list[bytes]) -> None:
        self._there = True
        self._step()

    def reaped(self, pid: int) -> None:
        """A child of ours has ended."""
        if self.terminal is not None:
            self.terminal.is_end(pid)

    # ---- the steps

    def _step(self) -> None:
        terminal = self.terminal
        if self.over or terminal is None:
            return
        said = terminal.failure or terminal.control.complaint.strip()
        if self._answer and self._answer[0] != b"ready":
            self._fail(b" ".join(self._answer[1:]), there=True)
        elif terminal.started:
            self._succeed(terminal)
        elif terminal.failure or not terminal.control.live:
            self._fail(said or terminal.seen.strip()[-200:] or b"the connection ended at once", there=not self._answer)
        elif self._there and not self._told and HELLO in terminal.seen:
            self._told = True
            terminal.tell_directory()

    def late(self) -> None:
        """The time is over; harmless if it has come up."""
        terminal = self.terminal
        said = terminal.control.complaint.strip() or terminal.seen.strip()[-200:] if terminal is not None else b""
        what = b"the terminal there does not come up" if self._answer else b"it does not answer"
        self._fail(said or what, there=not self._answer)

    def _succeed(self, terminal: FarTerminal) -> None:
        terminal.control.records, terminal.control.broken = terminal.hear_records, terminal.lost
        terminal.know()
        self._end("")

    def _fail(self, said: bytes, *, there: bool) -> None:
        self._end((f"{self._launch.place}: " if there else "") + os.fsdecode(said))

    def _end(self, reason: str) -> None:
        if self.over:
            return
        self.over, self.reason = True, reason
        self._loop.cancel(self._limit)
        terminal = self.terminal
        if terminal is not None:
            self._loop.forget(terminal.pty_fd)
        if not reason or terminal is None:
            self._then(reason)
        else:
            terminal.control.broken = lambda: None
            terminal.part(lambda: self._then(reason))

    # ---- giving up

    def cancel(self, then: Callable[[], None]) -> None:
        """Give it up and end what it has begun there, then call; ``then`` of the start is never called."""
        self._then = lambda _reason: then()
        if self._before is not None:
            self._given_up = then
        elif not self.over:
            self._end("given up")

    def close(self) -> None:
        """The same, at once, and nobody is told."""
        self.over, self._then = True, lambda _reason: None
        self._loop.cancel(self._limit)
        for terminal in (self._before, self.terminal):
            if terminal is not None:
                self._loop.forget(terminal.pty_fd)
                terminal.close()


def open_far(
    loop: Loop, launch: Launch, size: tuple[int, int], ends: Ends, argv: list[bytes], *, shell: bool
) -> FarTerminal:
    """A program on a terminal of another place, waited for here, outside the loop; raises SpawnError."""
    start = FarStart(loop, launch, size, ends, argv, shell=shell, then=lambda _reason: None)
    try:
        terminal = start.connect()
        terminal.control.until(lambda: start.over, START_LIMIT, {terminal.pty_fd: start.hear})
        start.late()
        if start.reason:
            raise SpawnError(start.reason)
    except BaseException:
        start.close()
        raise
    return terminal


def near_environment(launch: Launch) -> dict[bytes, bytes]:
    """The environment of a client: ours, with what its command adds, and without the mark of a holder."""
    without = (HOLDER_MARK.rstrip(b"="), *launch.near_unset)
    return {key: value for key, value in os.environb.items() if key not in without} | launch.near_env
