"""What people do at a terminal, carried out behind the back of the thread that hears of it."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable

from session_magics.backends import Link
from session_magics.errors import SessionBusy, SessionError, SessionNotRunning
from session_magics.session import GRACE, Session

IDLE = 20.0
"""Seconds without input after which the thread ends and its connection is closed."""
BUSY_STEP = 0.05
"""Seconds between tries to type into a program that does not read."""
BUSY_LIMIT = 10.0
"""Seconds of such tries before what was typed is dropped."""
QUEUE_LIMIT = 1000
"""Pieces of input that wait; a paste of 32 MB."""


class Hands:
    """Types into one session, resizes, stops it. Methods return at once and may be called from any thread.

    ``tell`` shows a line to the person, ``restart`` starts the session's program anew.
    """

    def __init__(self, session: Session, tell: Callable[[str], None], restart: Callable[[], object]) -> None:
        self._session, self._tell, self._again = session, tell, restart
        self._queue: queue.Queue[bytes | tuple[int, int]] = queue.Queue(QUEUE_LIMIT)
        self._lock = threading.Lock()
        self._working = False
        self._flushes = 0
        self._shell: bool | None = None

    def type(self, data: bytes) -> None:
        """Type exactly this, in order."""
        self._put(data)

    def resize(self, rows: int, columns: int) -> None:
        """Set the terminal's size."""
        self._put((rows, columns))

    def interrupt(self) -> None:
        """As Ctrl-C; what was typed and is not read yet is dropped."""
        with contextlib.suppress(queue.Empty):
            while True:
                self._queue.get_nowait()
        self._flushes += 1
        self._apart(self._session.interrupt)

    def stop(self, *, now: bool) -> None:
        """End all its processes."""
        self._apart(lambda: self._session.stop(GRACE, now=now))

    def restart(self) -> None:
        """Stop it if it runs, and start it again."""
        self._apart(self._again)

    # ---- threads

    def _apart(self, action: Callable[[], object]) -> None:
        """In a thread of its own: it may take seconds, and keys should not wait for it."""

        def act() -> None:
            try:
                action()
            except SessionError as error:
                self._tell(str(error))

        threading.Thread(target=act, name=f"session {self._session.name}", daemon=True).start()

    def _put(self, item: bytes | tuple[int, int]) -> None:
        try:
            self._queue.put_nowait(item)
        except queue.Full:
            self._tell("the program does not read: what was typed is dropped")
            return
        with self._lock:
            if not self._working:
                self._working = True
                threading.Thread(target=self._work, name=f"typing into {self._session.name}", daemon=True).start()

    def _work(self) -> None:
        link: Link | None = None
        try:
            while True:
                try:
                    item = self._queue.get(timeout=IDLE)
                except queue.Empty:
                    with self._lock:
                        if self._queue.empty():
                            self._working = False
                            return
                    continue
                link = self._do(link, item)
        finally:
            if link is not None:
                link.close()

    def _do(self, link: Link | None, item: bytes | tuple[int, int]) -> Link | None:
        try:
            link = link or self._session.connect()
            if isinstance(item, tuple):
                link.resize(*item)
            elif self._takes_keys():
                self._type(link, item)
            return link
        except SessionError as error:
            if not isinstance(item, tuple):
                self._tell("it has ended" if isinstance(error, SessionNotRunning) else str(error))
            if link is not None:
                link.close()
            return None

    def _takes_keys(self) -> bool:
        if self._shell is None:
            self._shell = self._session.info().shell is not None
        if self._shell and self._session.command() is None:
            self._tell(f"no command runs: this shell takes commands from cells (%%sh_session {self._session.name})")
            return False
        return True

    def _type(self, link: Link, data: bytes) -> None:
        deadline, flushes = time.monotonic() + BUSY_LIMIT, self._flushes
        while self._flushes == flushes:
            try:
                link.send(data)
                return
            except SessionBusy:
                if time.monotonic() > deadline:
                    raise
                time.sleep(BUSY_STEP)
