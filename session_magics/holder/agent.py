"""The far end of a relay's connection: starts the session's holder or finds it again, and hands on what it says.

It lives as long as the connection. The holder does not know it from any other client, and stays when it goes.
"""

from __future__ import annotations

import _socket
import os
import shutil
import sys
import time

from session_magics.holder import agentforce, agentwire, wire
from session_magics.holder.agentfiles import LogFollower, Records
from session_magics.holder.agentstart import StartError, directory_for, start_holder
from session_magics.holder.loop import READ, WRITE, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

OUT_LIMIT = 1024 * 1024
"""Bytes that wait for the connection before more of the log is read."""
SILENCE_LIMIT = 60.0
"""Seconds without a word of the relay, which speaks every ten, after which the connection counts as dead."""
OUTPUT = {wire.BEGUN: 2, wire.DONE: 3}
"""Which field of a frame about a cell tells how far the log has to be there when it comes."""


def main(base: str) -> NoReturn:
    """Serve one connection on the standard streams."""
    agent = Agent(base)
    agent.loop.run()
    os._exit(0)


class Step:
    """Something for the relay, and how far log and index have to be told before it."""

    def __init__(self, log: int, index: int, frames: bytes, *, bell: bool = False) -> None:
        self.log, self.index, self.frames, self.bell = log, index, frames, bell


class Agent:
    """Everything runs in the loop's thread; the working directory is the session's once that is known."""

    def __init__(self, base: str) -> None:
        self.loop = Loop()
        self.loop.on_fault = lambda what: self._say(agentwire.FAULT, what.encode("utf-8", "replace"))
        self._base, self._directory = base, b""
        self._from_relay, self._from_holder = wire.Decoder(), wire.Decoder()
        self._out = bytearray()
        self._holder: _socket.socket | None = None
        self._to_holder = bytearray()
        self._steps: list[Step] = []
        self._log, self._index, self._index_fd = LogFollower(0), 0, -1
        self._records = Records()
        self._heard = time.monotonic()
        os.set_blocking(0, False)
        os.set_blocking(1, False)
        self.loop.watch(0, self._relay_event)
        self.loop.later(SILENCE_LIMIT, self._listen)

    def _listen(self) -> None:
        if time.monotonic() - self._heard > SILENCE_LIMIT:
            os._exit(1)
        self.loop.later(SILENCE_LIMIT / 2, self._listen)

    # ---- the relay

    def _relay_event(self, _events: int) -> None:
        try:
            data = os.read(0, 1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            os._exit(0)
        self._heard = time.monotonic()
        for kind, fields in self._from_relay.feed(data):
            if kind == agentwire.OPEN:
                self._open(fields)
            elif kind == agentwire.PING:
                self._say(agentwire.PONG)
            elif kind == agentwire.BYE:
                os.chdir("/")
                shutil.rmtree(self._directory, ignore_errors=True)
                self._say(agentwire.BYE)
                os._exit(0)
            elif self._holder is not None:
                self._to_holder += wire.frame(kind, *fields)
        self._flush_holder()

    def _say(self, kind: bytes, *fields: bytes) -> None:
        self._out += wire.frame(kind, *fields)
        self._flush()

    def _flush(self) -> None:
        try:
            while self._out:
                del self._out[: os.write(1, self._out)]
        except BlockingIOError:
            pass
        except OSError:
            os._exit(0)
        if self._out:
            self.loop.watch(1, self._writable, WRITE)
        else:
            self.loop.forget(1)

    def _writable(self, _events: int) -> None:
        self._flush()
        self._tell()

    # ---- the beginning

    def _open(self, fields: list[bytes]) -> None:
        mode, id, directory, log, index, message = fields
        if mode == agentwire.FORCE:
            self._say(agentwire.FORCED, *[b"%d" % pid for pid in agentforce.force(self._base, id)])
            return
        try:
            if mode == agentwire.START:
                directory = directory_for(self._base, id, int(log))
                start_holder(directory, id, message)
            self._attach(directory, int(log), int(index))
        except StartError as error:
            os.chdir("/")
            shutil.rmtree(directory, ignore_errors=True)
            self._say(agentwire.FAILED, str(error).encode("utf-8", "surrogateescape"))
        except OSError as error:
            self._say(agentwire.FAILED, f"{(error.strerror or 'error').lower()}: {error.filename}".encode())

    def _attach(self, directory: bytes, log: int, index: int) -> None:
        try:
            os.chdir(directory)
        except OSError:
            self._say(agentwire.GONE, agentwire.NOTHING)
            return
        self._directory = directory
        self._log, self._index = LogFollower(log), index
        self._index_fd = os.open("log.idx", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        holder = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        try:
            holder.connect("sock")
        except OSError:
            self._conclude()
            return
        holder.setblocking(False)
        self._holder = holder
        self.loop.watch(holder.fileno(), self._holder_event)

    # ---- the holder

    def _holder_event(self, events: int) -> None:
        if self._holder is None:
            return
        if events & WRITE:
            self._flush_holder()
        if not events & ~WRITE:
            return
        try:
            data = self._holder.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.loop.forget(self._holder.fileno())
            self._holder.close()
            self._holder = None
            self._conclude()
            return
        for kind, fields in self._from_holder.feed(data):
            if kind == wire.HELLO:
                self._step(self._ready(), bell=True)
            elif kind == wire.BELL:
                self._step(b"", int(fields[0]), int(fields[1]), bell=True)
            else:
                # What stands behind a cell's output belongs to nobody until its status is told.
                seen = int(fields[OUTPUT[kind]]) if kind in OUTPUT else None
                self._step(wire.frame(kind, *fields), seen)
        self._tell()

    def _ready(self) -> bytes:
        run = self._records.run()
        told = wire.frame(agentwire.READY, self._directory, run[1] if run else b"0")
        return told + (wire.frame(agentwire.RUN_RECORD, *run) if run else b"")

    def _step(self, frames: bytes, log: int | None = None, index: int = 0, *, bell: bool = False) -> None:
        """Note what is to be told, and how far log and index have to be told before it; None: as far as they are.

        The exit record is read before the run record, as it is written after it, and both before the ends of log and
        index.
        """
        ended, run = self._records.exit(), self._records.run()
        records = wire.frame(agentwire.RUN_RECORD, *run) if run else b""
        records += wire.frame(agentwire.EXIT_RECORD, ended) if ended else b""
        if records or log is None:
            log = self._log.end()
        if records or frames:
            index = os.fstat(self._index_fd).st_size
        self._steps.append(Step(log, index, records + frames, bell=bell))

    def _tell(self) -> None:
        """Send what the connection has room for."""
        while self._steps:
            if len(self._out) >= OUT_LIMIT:
                self._flush()
                if self._out:
                    return  # until there is room
            step = self._steps[0]
            if self._log.at < step.log:
                data = self._log.read(step.log)
                if not data:  # the far disk refused what is missing
                    self._log.at = max(self._log.at, step.log)
                self._out += wire.frame(agentwire.LOG, b"%d" % (self._log.at - len(data)), data)
                continue
            if self._index < step.index and (data := os.pread(self._index_fd, OUT_LIMIT, self._index)):
                self._index += len(data)
                self._out += wire.frame(agentwire.INDEX, data)
            self._steps.pop(0)
            self._out += step.frames
            if step.bell and self._holder is not None:
                self._to_holder += wire.frame(wire.WATCH, b"%d" % self._log.at, b"%d" % self._index)
                self._flush_holder()
        self._flush()

    def _flush_holder(self) -> None:
        holder = self._holder
        if holder is None:
            self._to_holder.clear()
            return
        try:
            while self._to_holder:
                del self._to_holder[: holder.send(self._to_holder)]
        except BlockingIOError:
            pass
        except OSError:
            self._to_holder.clear()  # reading will tell
        self.loop.watch(holder.fileno(), self._holder_event, READ | WRITE if self._to_holder else READ)

    # ---- the end

    def _conclude(self) -> None:
        """The holder has gone, or was killed: tell all that it left behind."""
        agentforce.until_gone()
        killed = os.path.lexists("sock")
        survivors = agentforce.end_left(self._directory) if killed else ()
        gone = wire.frame(
            agentwire.GONE, agentwire.KILLED if killed else agentwire.ENDED, *[b"%d" % pid for pid in survivors]
        )
        self._step(gone)
        self._tell()


if __name__ == "__main__":
    sys.exit("this is run over a connection")
