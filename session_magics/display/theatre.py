"""All sessions that a kernel shows live: the threads that serve them, and who shows what."""

from __future__ import annotations

import threading
import time
from typing import Any

from session_magics.display.feed import Feed
from session_magics.display.pump import Pump
from session_magics.display.roster import Roster, TableFace
from session_magics.display.routing import Router
from session_magics.display.sender import Sender
from session_magics.errors import SessionError
from session_magics.listing import Listing
from session_magics.registry import Registry
from session_magics.session import Session

LOOK_WATCHED = 0.25
"""Seconds between looks at sessions that somebody watches."""
LOOK_ALONE = 1.0
"""The same while nobody does: only the end of a session is of interest then."""


class Theatre:
    """One a kernel. ``feed`` is called in the thread of a cell; ``close`` ends all threads."""

    def __init__(self, ip: Any, registry: Registry, pump: Pump) -> None:
        self._registry = registry
        self.router = Router(ip, pump)
        self._sender = Sender()
        self._feeds: dict[str, Feed] = {}
        self._nudge = threading.Event()
        self._ended: list[Feed] = []
        self._rosters: list[Roster] = []
        self.has_page: bool | None = None
        """Whether a page with widgets is at the other end; None as long as none was asked."""
        self._closed = False
        self._attendant: threading.Thread | None = None

    def feed(self, session: Session) -> Feed:
        """The feed of a session, begun if need be."""
        feed = self._feeds.get(session.id)
        return self._begin(session.id, session, 0) if feed is None else feed

    def cell_feed(self, session: Session, begin: int) -> Feed:
        """A feed of what a session prints from a log offset on, for one cell; ``end`` it."""
        return self._begin(f"{session.id}/{begin}", session, begin)

    def end(self, feed: Feed) -> None:
        """Serve a feed no more."""
        self._feeds = {key: one for key, one in self._feeds.items() if one is not feed}
        self._sender.remove(feed)
        self._ended.append(feed)
        self.wake()

    def roster(self, listing: Listing, face: TableFace) -> Roster:
        """What serves the table that shows a listing."""
        roster = Roster(self._registry, listing.labels, face, listing.rows)
        self._rosters.append(roster)
        return roster

    def _begin(self, key: str, session: Session, begin: int) -> Feed:
        feed = Feed(session, lambda: self._registry.restart(session.name), self.wake, begin=begin)
        self._feeds[key] = feed
        self._sender.add(feed)
        if self._attendant is None:
            self._attendant = threading.Thread(target=self._attend, name="session facts", daemon=True)
            self._attendant.start()
        self.wake()
        return feed

    def wake(self) -> None:
        """Something has changed: both threads look."""
        self._sender.wake()
        self._nudge.set()

    def _attend(self) -> None:
        while not self._closed:
            now = time.monotonic()
            feeds = list(self._feeds.values())
            for feed in feeds:
                try:
                    feed.look(now)
                except (SessionError, OSError):  # removed meanwhile, or not readable now
                    continue
            self._bury()
            watched = any(feed.channel.watched(now) for feed in feeds)
            self._nudge.clear()
            time.sleep(LOOK_WATCHED / 5)  # many wishes in a row are one
            self._nudge.wait(LOOK_WATCHED if watched else LOOK_ALONE)

    def _bury(self) -> None:
        """Close what has ended, once neither thread can be at it."""
        while self._ended:
            feed = self._ended.pop()
            self._sender.rest()
            feed.close()

    def close(self) -> None:
        """End all that runs for the views; sessions go on."""
        self._closed = True
        self._nudge.set()
        self._sender.close()
        if self._attendant is not None:
            self._attendant.join(1.0)
        self.router.close()
        for roster in self._rosters:
            roster.close()
        for feed in [*self._feeds.values(), *self._ended]:
            feed.close()
