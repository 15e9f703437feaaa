"""What clients may ask of a holder, one method a kind of frame."""

from __future__ import annotations

from session_magics.holder import wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from session_magics.holder.command import Caller
    from session_magics.holder.holder import Holder
    from session_magics.holder.server import Client

CALLERS_KEPT = 8
"""Cells with a token of which it is known what became of them; a relay asks for the newest, hidden ones in between."""
NO_INDEX = 1 << 62
"""Index size that is never reached: who runs a cell waits for its output alone."""


class Requests:
    """Carries out frames. A frame that is not understood is answered as such and harms nothing."""

    def __init__(self, holder: Holder) -> None:
        self._holder = holder
        self._callers: dict[bytes, Caller] = {}
        self._verbs = {
            wire.WATCH: self._watch, wire.INPUT: self._input, wire.RESIZE: self._resize,
            wire.INTERRUPT: self._interrupt, wire.RUN: self._run, wire.PROBE: self._probe, wire.STOP: self._stop,
            wire.RESTART: self._restart,
        }  # fmt: skip

    def handle(self, client: Client, kind: bytes, fields: list[bytes]) -> None:
        """Carry out one frame; raises BadFrame or IndexError for one that is no request."""
        verb = self._verbs.get(kind)
        if verb is None:
            client.send(wire.ERROR, fields[0] if fields else b"0", b"unknown-kind", kind)
        else:
            verb(client, fields)

    def _watch(self, client: Client, fields: list[bytes]) -> None:
        client.watch = (wire.number(fields[0]), wire.number(fields[1]))
        self._holder.ring()

    def _input(self, client: Client, fields: list[bytes]) -> None:
        request, data, secret = fields[0], fields[1], fields[2:3] == [b"1"]
        terminal = self._holder.terminal
        if client.hung_up():
            return  # keys that came while we could not answer: whoever typed them was told that they are dropped
        if terminal is None or terminal.tty_fd < 0:
            client.send(wire.ERROR, request, b"not-running", b"")
        elif secret and terminal.far:
            terminal.probe(lambda _wait, echo, _canonical: self._type(client, request, data, shown=echo))
        else:
            self._type(client, request, data, shown=secret and terminal.echoes())

    def _type(self, client: Client, request: bytes, data: bytes, *, shown: bool) -> None:
        if shown:
            client.send(wire.ERROR, request, b"not-masked", b"")
        elif self._holder.type(data):
            client.send(wire.OK, request)
        else:
            client.send(wire.ERROR, request, b"busy", b"its program does not read its input")

    def _resize(self, client: Client, fields: list[bytes]) -> None:
        self._holder.resize(*wire.size(fields[1], fields[2]))
        client.send(wire.OK, fields[0])

    def _interrupt(self, client: Client, fields: list[bytes]) -> None:
        self._holder.interrupt()
        client.send(wire.OK, fields[0])

    def _run(self, client: Client, fields: list[bytes]) -> None:
        request, text, hidden, token = fields[0], fields[1], fields[2:3] == [b"1"], b"".join(fields[3:4])
        shell = self._holder.shell
        if token in self._callers:
            self._callers[token].moved(client, request)
        elif shell is None:
            client.send(wire.ERROR, request, b"no-shell", b"")
        elif b"\0" in text:
            client.send(wire.ERROR, request, b"bad-text", b"a cell cannot hold a NUL character")
        elif self._holder.over or self._holder.stopping.active:
            client.send(wire.ERROR, request, b"not-running", b"")
        elif shell.busy:
            client.send(wire.ERROR, request, b"busy", shell.busy)
        else:
            from session_magics.holder.command import Caller, Request  # loaded with a shell, and nobody else needs it

            client.watch = (shell.visible_end, NO_INDEX)
            caller = Caller(client, request)
            if token:
                self._callers[token] = caller
                if len(self._callers) > CALLERS_KEPT:
                    del self._callers[next(iter(self._callers))]
            shell.run(Request(text, hidden=hidden, done=caller.done, begun=caller.begun))

    def _probe(self, client: Client, fields: list[bytes]) -> None:
        terminal = self._holder.terminal
        if terminal is None or terminal.tty_fd < 0:
            client.send(wire.ERROR, fields[0], b"not-running", b"")
            return

        def told(wait: str, echo: bool, canonical: bool) -> None:
            self._holder.hear()  # what it said before it waited is to be found in the log
            client.send(wire.OK, fields[0], wait.encode(), b"%d" % echo, b"%d" % canonical)

        terminal.probe(told)

    def _stop(self, client: Client, fields: list[bytes]) -> None:
        request, holder, generation = fields[0], self._holder, self._holder.generation
        grace, hurry = wire.seconds(fields[1]), fields[2:3] == [b"1"]

        def then(survivors: list[int]) -> None:
            again = holder.generation != generation or holder.restarts.starting is not None
            if again and not holder.over:  # it joined the stop of a restart
                holder.stop(grace, then_over, hurry=hurry)
            else:
                then_over(survivors)

        def then_over(survivors: list[int]) -> None:
            client.send(wire.OK, request, *[b"%d" % pid for pid in survivors])

        holder.stop(grace, then, hurry=hurry)

    def _restart(self, client: Client, fields: list[bytes]) -> None:
        request, holder, generation = fields[0], self._holder, self._holder.generation
        grace, argv = wire.seconds(fields[1]), wire.unpack(fields[2]) if fields[2:] else []

        def then(survivors: list[int]) -> None:
            if survivors:
                client.send(wire.ERROR, request, b"survivors", b" ".join(b"%d" % pid for pid in survivors))
                return
            if holder.orphaned:
                client.send(wire.ERROR, request, b"not-running", b"")
                return
            if holder.generation != generation:  # another restart, which ended the same one, has done it
                told()
                return
            holder.launch.again = argv or holder.launch.again
            holder.restarts.again(told)

        def told() -> None:
            if holder.failure:
                client.send(wire.ERROR, request, b"start-failed", holder.failure.encode("utf-8", "surrogateescape"))
            elif holder.over:  # a stop came between
                client.send(wire.ERROR, request, b"not-running", b"")
            else:
                client.send(wire.OK, request, b"%d" % holder.generation)

        if holder.restarts.starting is not None and not argv:
            holder.restarts.again(told)  # it is under way
        else:
            holder.stop(grace, then)
