"""Keys on their way from a person's terminal into a session."""

from __future__ import annotations

import re

from session_magics.errors import SessionBusy
from session_magics.news import News
from session_magics.verbs.keys import key_bytes

PIECE_BYTES = 64 * 1024
"""Bytes sent at once, of which the holder takes 16 before it is busy."""
WAITING_LIMIT = 1024 * 1024
"""Bytes that wait for a program that does not read. What goes beyond is dropped: the detach key must be seen."""


class DetachKey:
    """Finds the key that leaves the session in what is typed, in each of the forms that terminals give it."""

    def __init__(self, name: str) -> None:
        forms = [re.escape(key_bytes(name))]
        if name[:2] in ("C-", "c-") and len(name) == 3:  # programs can ask for keys to be told in numbers
            code = ord(name[2].lower())
            forms += [rb"\x1b\[%d(?::[0-9:]*)?;5(?::1)?(?:;[0-9:]*)?u" % code, rb"\x1b\[27;5;%d~" % code]
        self._pattern = re.compile(b"|".join(forms))

    def part(self, data: bytes) -> tuple[bytes, bool]:
        """What was typed before the key, and whether it was typed."""
        found = self._pattern.search(data)
        return (data, False) if found is None else (data[: found.start()], True)


class Typist:
    """Types into a session, in order, without waiting for a program that does not read."""

    def __init__(self, news: News) -> None:
        self._news = news
        self._waiting = b""

    @property
    def waiting(self) -> bool:
        """Whether ``go_on`` is to be called again soon."""
        return bool(self._waiting)

    def type(self, data: bytes) -> bool:
        """Type this; False if a part of it was dropped. Raises as ``Session.send``."""
        room = max(0, WAITING_LIMIT - len(self._waiting))
        self._waiting += data[:room]
        self.go_on()
        return room >= len(data)

    def go_on(self) -> None:
        """Send what waits, as far as the program takes it."""
        try:
            while self._waiting:
                piece = self._waiting[:PIECE_BYTES]
                self._news.link().send(piece)
                self._waiting = self._waiting[len(piece) :]
        except SessionBusy:
            return
        except BaseException:
            self._waiting = b""
            raise
