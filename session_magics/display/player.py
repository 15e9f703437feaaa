"""A recording that plays in a notebook."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from typing import Any

from traitlets import Dict, Int

from session_magics.display.routing import Router
from session_magics.display.still import shortened
from session_magics.display.widget import LiveWidget
from session_magics.recording.formats import Cast
from session_magics.recording.playing import Settings, described, last_screen

PIECE_BYTES = 512 * 1024
"""Bytes of one message. A page asks for one after another: the server drops what comes faster than it allows, which is
3 MB within three seconds."""


class PlayerModel(LiveWidget):
    """One player. The page asks for the packed recording piece by piece, and has no more to say."""

    settings = Dict().tag(sync=True)
    size = Int().tag(sync=True)
    """Bytes of the packed recording."""

    def __init__(self, router: Router, data: bytes, settings: Mapping[str, object]) -> None:
        self._cast = data
        super().__init__(router, kind="player", settings=dict(settings), size=len(data))

    def received(self, content: Mapping[str, Any]) -> None:
        """See LiveWidget."""
        at = content.get("at")
        if content.get("t") == "cast" and isinstance(at, int) and 0 <= at < len(self._cast):
            self.post({"t": "cast", "at": at}, [self._cast[at : at + PIECE_BYTES]])


class Player:
    """A recording as the value of a cell; displayed, it plays."""

    def __init__(self, router: Router, cast: Cast, title: str, settings: Settings) -> None:
        self._router, self._cast, self._title, self._settings = router, cast, title, settings
        self._model: PlayerModel | None = None

    def __repr__(self) -> str:
        return described(self._cast, self._title)

    def _ipython_display_(self) -> None:
        if self._model is None:
            self._model = PlayerModel(self._router, packed(self._cast), self._traits())
        screen = shortened(last_screen(self._cast))
        self._model.present("\n".join(filter(None, (repr(self), screen))), {"recording": self._title})

    def _traits(self) -> dict[str, object]:
        settings, (rows, columns) = self._settings, self._cast.header.size
        return {
            "title": self._title,
            "rows": rows,
            "columns": columns,
            "speed": settings.speed,
            "startAt": settings.start_at,
            "idleLimit": settings.idle_limit,
            "autoplay": settings.autoplay,
        }


def packed(cast: Cast) -> bytes:
    """The events that a player shows, one a line as JSON, packed."""
    shown = (event for event in cast.events if event.code in ("o", "m", "r"))
    lines = [json.dumps([round(event.time, 6), event.code, event.data], ensure_ascii=False) for event in shown]
    return gzip.compress("\n".join([*lines, json.dumps([cast.duration, "end", ""])]).encode("utf-8", "replace"), 6)
