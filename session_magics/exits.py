"""Being told of a session's end without waiting for it."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable

from session_magics.errors import SessionError
from session_magics.news import NO_OFFSET, STATE_CHECK, News


class ExitWatch:
    """Calls a function once a session's program has ended for good, in a thread of its own.

    The thread ends with the call, with ``cancel``, and with this process; it keeps nothing from ending.
    """

    def __init__(self, news: Callable[[], News], name: str, call: Callable[[], None]) -> None:
        self._news, self._call = news, call
        self._woken, self._wake = os.pipe()
        self._cancelled = self._deaf = False
        self._ending = threading.Lock()
        """Descriptors are closed under it: their numbers may be others' at once."""
        self._thread = threading.Thread(target=self._run, name=f"end of {name}", daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Make no call any more, and wait for one under way. Idempotent; from the call itself it does nothing."""
        if self._thread is threading.current_thread():
            return
        self._cancelled = True
        with self._ending:
            if not self._deaf:
                os.write(self._wake, b".")
        self._thread.join()

    def _run(self) -> None:
        try:
            with self._news() as news:
                while not self._cancelled and not news.over():
                    self._await(news)
        finally:
            with self._ending:
                self._deaf = True
                os.close(self._woken)
                os.close(self._wake)
        if not self._cancelled:
            self._call()

    def _await(self, news: News) -> None:
        poll = select.poll()
        poll.register(self._woken, select.POLLIN)
        try:
            news.watch(NO_OFFSET)
            poll.register(news.link(), select.POLLIN)
            if any(fd != self._woken for fd, _ in poll.poll(STATE_CHECK * 1000)):
                news.take()
        except SessionError:  # the holder has gone or does not answer: the state tells
            news.close()
            poll.poll(STATE_CHECK * 20)
