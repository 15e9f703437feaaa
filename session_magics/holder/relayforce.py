"""Reaching a place once more, to end there what a session has left."""

from __future__ import annotations

import os

from session_magics.holder import agentwire
from session_magics.holder.loop import Loop
from session_magics.holder.relaylink import RelayLink, Road

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from session_magics.holder.launch import Launch

LIMIT = 20.0
"""Seconds for all of it: to connect, to force, and to look whether all is gone."""


def force(launch: Launch) -> NoReturn:
    """Say ``ok`` and the pids that survived, ``gone`` where there is no such place any more, or ``no`` and why."""
    loop, id = Loop(), launch.far[b"id"]

    def up() -> None:
        link.send(agentwire.OPEN, agentwire.FORCE, id, b"", b"0", b"0", b"")

    def take(kind: bytes, fields: list[bytes]) -> None:
        if kind == agentwire.FORCED:
            end(b" ".join([b"ok", *fields]))

    def down(reason: str) -> None:
        end((b"gone " if link.container_gone else b"no ") + reason.encode("utf-8", "replace"))

    def end(answer: bytes) -> NoReturn:
        link.close()
        os.write(1, answer)
        os._exit(0)

    link = RelayLink(loop, Road(launch.far), up=up, take=take, down=down)
    loop.later(LIMIT, lambda: end(b"no answer from there"))
    try:
        link.open()
    except OSError as error:
        down(error.strerror or str(error))
    loop.run()
    os._exit(1)
