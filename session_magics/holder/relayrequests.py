"""What the clients of a relay have asked, until the far side has answered."""

from __future__ import annotations

from session_magics.holder import wire
from session_magics.holder.requests import NO_INDEX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from session_magics.holder.relay import Relay
    from session_magics.holder.server import Client

LASTING = (wire.RUN, wire.STOP, wire.RESTART)
"""What is asked again over a new connection: the far holder carries it out once, however often it comes."""


def _check(kind: bytes, fields: list[bytes]) -> None:
    """Raises BadFrame or IndexError for what is no request, before the far holder would hang up for it."""
    if kind == wire.INPUT:
        fields[1]
    elif kind == wire.RESIZE:
        wire.size(fields[1], fields[2])
    elif kind == wire.RUN:
        fields[1]
    elif kind in (wire.STOP, wire.RESTART):
        wire.seconds(fields[1])
        if kind == wire.RESTART and fields[2:]:
            wire.unpack(fields[2])


class Asked:
    """One request. ``client`` is None for one of the relay itself; ``generation`` the one in which it was asked."""

    def __init__(self, client: Client | None, kind: bytes, fields: list[bytes], generation: int) -> None:
        self.client, self.kind, self.fields, self.generation = client, kind, fields, generation
        self.number = b""
        """Of the command of a cell that has begun."""

    def answer(self, kind: bytes, *fields: bytes) -> None:
        """Tell whoever has asked."""
        if self.client is not None:
            self.client.send(kind, self.fields[0], *fields)


class RelayRequests:
    """Gives each request a number of its own on the way there, and answers to whoever asked on the way back."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._numbers = 0
        self._asked: dict[bytes, Asked] = {}

    @property
    def pending(self) -> bool:
        """Whether an answer is awaited."""
        return bool(self._asked)

    def handle(self, client: Client, kind: bytes, fields: list[bytes]) -> None:
        """Carry out one frame of a client, or see to it that the far holder does."""
        if kind == wire.WATCH:
            client.watch = (wire.number(fields[0]), wire.number(fields[1]))
            self._relay.ring()
        elif kind not in (*LASTING, wire.INPUT, wire.RESIZE, wire.INTERRUPT, wire.PROBE):
            client.send(wire.ERROR, fields[0] if fields else b"0", b"unknown-kind", kind)
        else:
            fields[0]
            _check(kind, fields)
            if kind != wire.INPUT or not client.hung_up():
                self.ask(client, kind, fields)

    def ask(self, client: Client | None, kind: bytes, fields: list[bytes]) -> None:
        """Send a request there; what lasts waits for a connection, the rest is refused without one."""
        relay = self._relay
        asked = Asked(client, kind, fields, relay.generation)
        if relay.over or (relay.orphaned and kind == wire.RESTART):
            self._after_the_end(asked)
        elif not relay.connected and kind not in LASTING:
            asked.answer(wire.ERROR, b"connection", relay.absence().encode())
        else:
            self._numbers += 1
            number = b"%d" % self._numbers
            self._asked[number] = asked
            if kind == wire.RUN and client is not None:
                client.watch = (relay.log.end, NO_INDEX)
            if relay.connected:
                self._send(number, asked)

    def _send(self, number: bytes, asked: Asked) -> None:
        fields = asked.fields[1:]
        if asked.kind == wire.RUN:
            fields = [fields[0], b"".join(fields[1:2]), number]
        self._relay.link.send(asked.kind, number, *fields)
        self._relay.watch_over()

    def answered(self, kind: bytes, fields: list[bytes]) -> None:
        """Hand on what the far holder has to say."""
        asked = self._asked.get(fields[0]) if fields else None
        if asked is None:
            return
        if kind == wire.BEGUN:
            asked.number = fields[1]
        else:
            del self._asked[fields[0]]
        asked.answer(kind, *fields[1:])

    def dropped(self) -> None:
        """The connection is lost: what does not last has perhaps been done, and perhaps not."""
        text = f"{self._relay.absence()}; whether it has arrived is not known".encode()
        for number, asked in list(self._asked.items()):
            if asked.kind not in LASTING:
                del self._asked[number]
                asked.answer(wire.ERROR, b"connection", text)

    def again(self) -> None:
        """There is a new connection: ask again what has not been answered."""
        for number, asked in list(self._asked.items()):
            if asked.kind == wire.RESTART and self._relay.generation > asked.generation:
                del self._asked[number]
                asked.answer(wire.OK, b"%d" % self._relay.generation)
            else:
                self._send(number, asked)

    def conclude(self) -> None:
        """The session has ended with its last word told."""
        asked, self._asked = self._asked, {}
        for one in asked.values():
            if one.kind == wire.RUN:
                self._cell_after_the_end(one)
            else:
                self._after_the_end(one)

    @staticmethod
    def _after_the_end(asked: Asked) -> None:
        if asked.kind == wire.STOP:
            asked.answer(wire.OK)
        else:
            asked.answer(wire.ERROR, b"not-running", b"")

    @staticmethod
    def _cell_after_the_end(asked: Asked) -> None:
        """A cell whose end was told over a connection that was lost is looked up in the index."""
        event = end_event(asked.number) if asked.number else None
        if event is None:
            text = "the session ended while the connection was away: whether it has run is not known"
            asked.answer(wire.ERROR, b"connection", text.encode())
            return
        known = [event[name] for name in ("n", "begin", "at", "status", "state", "seconds")]
        place = str(event["cwd"]).encode("utf-8", "surrogateescape")
        asked.answer(wire.DONE, *[str(one).encode() for one in known], b"1", place, b"")


def end_event(number: bytes) -> dict[str, object] | None:
    """The newest event of the end of that command in the working directory's index."""
    import json  # for a moment that hardly any session ever comes to

    with open("log.idx", "rb") as index:
        lines = index.read().splitlines()
    for line in reversed(lines):
        if b'"kind": "end", "n": %s,' % number in line:
            event: dict[str, object] = json.loads(line)
            return event
    return None
