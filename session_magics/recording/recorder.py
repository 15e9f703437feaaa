"""Writing a cast while a session goes on, and the recordings of one process."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import stat
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from session_magics.errors import SessionError, StoreError, UsageMistake
from session_magics.log import EventReader
from session_magics.news import STATE_CHECK, News
from session_magics.recording.formats import CastEvent, Header, Lines, Version
from session_magics.recording.past import Edge, Past
from session_magics.recording.places import Place
from session_magics.recording.timing import FRAME
from session_magics.recording.transcript import NOTED, Transcript
from session_magics.text.amounts import short_bytes

if TYPE_CHECKING:
    from session_magics.session import Session

WRITE_BYTES = 64 * 1024
"""Written at once at least, where there is that much."""


@dataclass(frozen=True)
class Recorded:
    """What a recording has come to."""

    path: str
    session: str
    version: Version
    events: int
    bytes: int
    seconds: float
    running: bool
    problem: str = ""
    """Why it has ended early; "" if it has not."""

    def __str__(self) -> str:
        if self.running:
            return f"recording {self.session} to {self.path}: %session record {self.session} --stop ends it"
        problem = f" ({self.problem})" if self.problem else ""
        amount = f"{self.seconds:.1f} s, {self.events:,} events, {short_bytes(self.bytes)}"
        return f"recorded {self.session} to {self.path}: {amount}, asciicast v{self.version}{problem}"

    __repr__ = __str__


class CastWriter:
    """A cast file that grows by whole lines, header first, so that it is whole whenever writing ends.

    Raises UsageMistake for a file that exists, unless ``force``, or is another recording's, and StoreError for
    one that cannot be written.
    """

    def __init__(self, path: str, version: Version, header: Header, *, force: bool = False) -> None:
        self.path, self.version = path, version
        self._lines = Lines(version)
        self.events = self.bytes = 0
        self.seconds = 0.0
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        try:
            self._fd = os.open(path, flags if force else flags | os.O_EXCL, 0o666)
        except FileExistsError:
            raise UsageMistake(f"{path} exists: take another name, or --force to replace it") from None
        except OSError as error:
            raise UsageMistake(f"{path} cannot be written: {(error.strerror or 'error').lower()}") from None
        try:
            self._clear()
            self._put(self._lines.header(header))
        except BaseException:
            self.close()
            raise

    def _clear(self) -> None:
        """Take the file for us, and empty it if it is one that has contents."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageMistake(f"{self.path} is being recorded to: take another name") from None
        except OSError:
            pass  # a file system without locks
        if stat.S_ISREG(os.fstat(self._fd).st_mode):
            os.ftruncate(self._fd, 0)

    def write(self, events: Iterable[CastEvent]) -> None:
        """Append events, as they come."""
        lines = bytearray()
        for event in events:
            if line := self._lines.event(event):
                lines += line
                self.events += 1
                self.seconds = max(self.seconds, event.time)
            if len(lines) >= WRITE_BYTES:
                self._put(bytes(lines))
                lines.clear()
        if lines:
            self._put(bytes(lines))

    def _put(self, data: bytes) -> None:
        try:
            at = 0
            while at < len(data):
                at += os.write(self._fd, data[at:])
        except OSError as error:
            whole = self.bytes + data.rfind(b"\n", 0, at) + 1
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, whole)
            raise StoreError(self.path, error.strerror or str(error)) from error
        self.bytes += len(data)

    def close(self) -> None:
        """The file is whole; idempotent."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class Recording:
    """One recording of one session. ``run`` it here, or ``begin`` it in a thread; ``end`` it from any."""

    def __init__(
        self,
        session: Session,
        path: str,
        version: Version,
        *,
        begin: Place | None = None,
        end: Place | None = None,
        follow: bool = False,
        idle_limit: float | None = None,
        force: bool = False,
    ) -> None:
        """``begin`` and ``end``: what was, between these (None: its end); ``follow``: go on with what comes."""
        self.session = session
        self._follow = follow
        self._past = Past(session)
        try:
            self._begin = self._past.edge(begin) if begin is not None else self._past.end
            self._end = self._past.edge(end, end=True) if end is not None else self._past.end
            if (self._end.offset, self._end.time) < (self._begin.offset, self._begin.time):
                raise UsageMistake(f"--to {end} is before --from {begin}")
            self._transcript = self._past.transcript(self._begin)
            info = session.info()
            header = self._past.header(self._begin, info.name, info.command_line, idle_limit)
            self._writer = CastWriter(path, version, header, force=force)
        except BaseException:
            self._past.close()
            raise
        self._clock = _Clock(far=info.on is not None, last=self._past.end.time)
        self._woken, self._wake = os.pipe()
        self._ending, self._finished = threading.Lock(), threading.Event()
        self._over = False
        self._error: SessionError | None = None
        self._thread: threading.Thread | None = None

    def recorded(self) -> Recorded:
        """How far it is."""
        writer = self._writer
        amounts = (writer.events, writer.bytes, writer.seconds, not self._over)
        problem = str(self._error) if self._error is not None else ""
        return Recorded(writer.path, self.session.name, writer.version, *amounts, problem)

    @property
    def over(self) -> bool:
        """Whether nothing is written any more."""
        return self._over

    def begin(self) -> None:
        """Run in a thread of its own, which keeps nothing from ending."""
        name = f"recording {self.session.name}"
        self._thread = threading.Thread(target=self._run_quietly, name=name, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Have it come to its end, and wait for that in another thread; idempotent."""
        with self._ending:
            if not self._over:
                os.write(self._wake, b".")
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def wait(self) -> None:
        """Wait for the end of one that was begun; raises what ended it early. A KeyboardInterrupt leaves it running."""
        self._finished.wait()  # not the thread: an interrupt of its join would make it look ended
        if self._error is not None:
            raise self._error

    def _run_quietly(self) -> None:
        with contextlib.suppress(SessionError):  # ``recorded`` and ``wait`` tell
            self.run()

    def run(self) -> None:
        """Write it, to its end. Raises StoreError, and what reading the session raises."""
        try:
            self._writer.write(self._past.events(self._transcript, self._begin, self._end))
            try:
                if self._follow:
                    self._go_on()
            finally:
                self._writer.write(self._transcript.finish())
        except SessionError as error:
            self._error = error
            raise
        finally:
            self._close()

    def _close(self) -> None:
        with self._ending:
            self._over = True
            for fd in (self._woken, self._wake):
                os.close(fd)
        self._past.close()
        self._writer.close()
        self._finished.set()

    def _go_on(self) -> None:
        live = _Live(self._past, self._transcript, self._end)
        last = False
        with self.session.news() as news:
            while True:
                last = last or not news.running()  # first, so that what was written before the end is read below
                self._writer.write(live.step(self.session, self._clock.now()))
                if last:
                    return
                last = self._awaited(news, live.position)

    def _awaited(self, news: News, position: int) -> bool:
        """Wait for more; True if it is to end."""
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        if poll.poll(FRAME * 1000):  # what comes within one frame is one event
            return True
        try:
            news.watch(position)
            poll.register(news.link(), select.POLLIN)
            ready = {fd for fd, _ in poll.poll(STATE_CHECK * 1000)}
            if ready - {self._woken}:
                news.take()
        except SessionError:  # the holder has gone or does not answer: the state tells
            news.close()
            ready = {fd for fd, _ in poll.poll(FRAME * 1000)}
        return self._woken in ready


class _Clock:
    """Unix time as the index tells it, while it passes."""

    def __init__(self, *, far: bool, last: float) -> None:
        # The clock of another place is not ours: there the time goes on from the last one that is known.
        self._origin = last if far else time.time()
        self._began = time.monotonic()

    def now(self) -> float:
        return self._origin + time.monotonic() - self._began


class _Live:
    """Follows a session from where its past ends."""

    def __init__(self, past: Past, transcript: Transcript, begin: Edge) -> None:
        self._log, self._transcript = past.log, transcript
        self._index, self._events = past.index, [*past.index_events]
        self.position = begin.offset

    def step(self, session: Session, now: float) -> Iterable[CastEvent]:
        """What has happened since the last call, at the time that it is now."""
        end = self._log.end()
        events, self._index = EventReader(session.directory).events(self._index)
        self._events += [event for event in events if event.kind in NOTED]
        while self._events and self._events[0].at <= end:
            event = self._events.pop(0)
            yield from self._output(event.at, now)
            yield from self._transcript.note(event, now)
        yield from self._output(end, now)

    def _output(self, end: int, now: float) -> Iterable[CastEvent]:
        for offset, data in self._log.read(self.position, end):
            if offset > self.position:
                yield from self._transcript.gap(now, offset - self.position)
            self.position = offset + len(data)
            yield from self._transcript.output(now, data)


class Recordings:
    """Those that run in this process, one a session at most."""

    def __init__(self) -> None:
        self._running: dict[str, Recording] = {}

    def begin(self, recording: Recording) -> Recorded:
        """Have one run beside everything else."""
        self._running[recording.session.id] = recording
        recording.begin()
        return recording.recorded()

    def running(self, session: Session) -> Recorded | None:
        """How far that of a session is; None where none runs."""
        recording = self._running.get(session.id)
        return recording.recorded() if recording is not None and not recording.over else None

    def end(self, session: Session) -> Recorded:
        """End that of a session; what it has come to. Raises UsageMistake where there was none."""
        recording = self._running.pop(session.id, None)
        if recording is None:
            raise UsageMistake(f"session {session.name!r} is not being recorded here")
        recording.end()
        return recording.recorded()

    def close(self) -> None:
        """End all."""
        while self._running:
            self._running.popitem()[1].end()
