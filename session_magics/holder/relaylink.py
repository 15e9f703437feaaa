"""A relay's connection: the child process that leads to the far side, and what goes through its pipes."""

from __future__ import annotations

import _signal
import binascii
import os

from session_magics.holder import wire
from session_magics.holder.child import RESET_SIGNALS
from session_magics.holder.loop import GONE, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from session_magics.holder.loop import Loop

NOISE_LIMIT = 256 * 1024
"""Bytes of a login shell's own output that are looked through for the mark of our code."""
COMPLAINT_BYTES = 2000
"""Bytes of error output that are kept: the newest."""
CONTAINER_GONE = (b"no such container", b"is not running", b"no such exec")
"""What a docker client says of a container that has ended or was removed, in lower case."""


class Road:
    """How a far side is reached: ready-made, as whoever holds a session knows no more of the place."""

    def __init__(self, far: dict[bytes, bytes]) -> None:
        self.place = far[b"place"]
        self.argv = wire.unpack(far[b"argv"])
        self.cwd = far[b"cwd"]
        self.env = dict(os.environb)
        self.env.update(wire.pairs(wire.unpack(far[b"env"])))
        for name in wire.unpack(far[b"unset"]):
            self.env.pop(name, None)
        self._boot, self._call = far[b"boot"], far[b"call"]
        self.code = far[b"code"]

    def first_words(self, mark: bytes) -> bytes:
        """What the far side is told first: a program, which will say the mark."""
        text = self._boot + b"\nboot(r, %r, %s)\n" % (mark, self._call)
        return b"%8d" % len(text) + text


class RelayLink:
    """One connection after another, of which each is up, coming up, or down. Calls come from the loop's thread.

    ``up`` is called when the agent can be spoken to, ``take`` with its frames, ``down`` with why it is over.
    """

    def __init__(
        self,
        loop: Loop,
        road: Road,
        *,
        up: Callable[[], None],
        take: Callable[[bytes, list[bytes]], None],
        down: Callable[[str], None],
    ) -> None:
        self._loop, self._road, self._up, self._take, self._down = loop, road, up, take, down
        self.pid = 0
        self.ready = False
        """Whether the agent can be spoken to."""
        self.heard = False
        """Whether anything has come since this was last set to False."""
        self._fds: tuple[int, ...] = ()
        self._out = bytearray()
        self._noise = b""
        self._mark = b""
        self._decoder = wire.Decoder()
        self._complaint = b""

    @property
    def complaint(self) -> str:
        """The last line that the connection's program has complained with."""
        lines = [line.strip() for line in self._complaint.splitlines() if line.strip()]
        return lines[-1].decode("utf-8", "replace") if lines else ""

    @property
    def container_gone(self) -> bool:
        """Whether the complaint says that the place exists no more."""
        return container_gone(self._complaint)

    def open(self) -> None:
        """Start a connection; the one before must be closed. OSError: its program cannot be started."""
        self._mark = b"\0" + binascii.hexlify(os.urandom(16)) + b"\0"
        self._out, self._noise, self._complaint = bytearray(self._road.first_words(self._mark)), b"", b""
        self._decoder, self.ready, self.heard = wire.Decoder(), False, False
        self.pid, self._fds = _start(self._road)
        stdin, stdout, stderr = self._fds
        self._loop.watch(stdout, self._readable)
        self._loop.watch(stderr, self._complains)
        self._loop.watch(stdin, self._writable, WRITE)

    def send(self, kind: bytes, *fields: bytes) -> None:
        """Send a frame, now or as soon as it fits; lost if the connection is."""
        if self.ready:
            self._out += wire.frame(kind, *fields)
            self._writable(0)

    @property
    def unsent(self) -> int:
        """Bytes that wait for the connection."""
        return len(self._out)

    def _writable(self, events: int) -> None:
        stdin = self._fds[0]
        try:
            while self._out:
                del self._out[: os.write(stdin, self._out)]
        except BlockingIOError:
            pass
        except OSError:
            self._out.clear()  # its end will be read, with what it had to say
        self._loop.watch(stdin, self._writable if self._out else self._hung_up, WRITE if self._out else 0)

    def _hung_up(self, events: int) -> None:
        if events & GONE and self._fds:
            self._loop.forget(self._fds[0])

    def _complains(self, _events: int) -> None:
        data = _read(self._fds[2])
        if data is None:
            self._loop.forget(self._fds[2])
        else:
            self._complaint = (self._complaint + data)[-COMPLAINT_BYTES:]

    def _readable(self, _events: int) -> None:
        data = _read(self._fds[1])
        if data is None:
            self._over()
            return
        self.heard = True
        if not self.ready:
            data = self._behind_the_mark(data)
        try:
            for kind, fields in self._decoder.feed(data):
                self._take(kind, fields)
                if not self.ready:
                    return  # it was closed meanwhile
        except wire.BadFrame as error:
            self._complaint = str(error).encode()
            self._over()

    def _behind_the_mark(self, data: bytes) -> bytes:
        """What the agent says behind the mark; before it nothing is ours."""
        seen = self._noise + data
        _before, mark, behind = seen.partition(self._mark)
        if not mark or not behind:
            self._noise = seen[-NOISE_LIMIT:]
            return b""
        self.ready = True
        if behind[:1] == b"0":
            self._out += b"%8d" % len(self._road.code) + self._road.code
        self._up()
        self._writable(0)
        return behind[1:]

    def _over(self) -> None:
        """The connection has ended by itself."""
        if len(self._fds) == 3 and (data := _read(self._fds[2])):
            self._complaint = (self._complaint + data)[-COMPLAINT_BYTES:]
        reason = self.complaint or "it was closed"
        self.close()
        self._down(reason)

    def close(self) -> None:
        """Hang up at once; idempotent."""
        self.ready = False
        self._out.clear()
        fds, self._fds = self._fds, ()
        for fd in fds:
            self._loop.forget(fd)
            os.close(fd)
        pid, self.pid = self.pid, 0
        if pid:
            try:
                os.killpg(pid, _signal.SIGKILL)
                os.waitpid(pid, 0)
            except OSError:
                pass


def container_gone(said: bytes) -> bool:
    """Whether the last words of a connection's program say that the place exists no more."""
    return any(words in said.lower() for words in CONTAINER_GONE)


def _read(fd: int) -> bytes | None:
    """What there is, b"" for nothing yet, None for the end."""
    try:
        return os.read(fd, 1 << 18) or None
    except BlockingIOError:
        return b""
    except OSError:
        return None


def _start(road: Road) -> tuple[int, tuple[int, int, int]]:
    """The pid of the connection's program, which leads a session of its own, and our ends of its streams."""
    pipes = [os.pipe(), os.pipe(), os.pipe()]
    theirs = (pipes[0][0], pipes[1][1], pipes[2][1])
    ours = (pipes[0][1], pipes[1][0], pipes[2][0])
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            for number, fd in enumerate([os.dup(fd) for fd in theirs]):
                os.dup2(fd, number)
            for signal in RESET_SIGNALS:
                _signal.signal(signal, _signal.SIG_DFL)
            os.chdir(road.cwd or b"/")
            os.execvpe(road.argv[0], road.argv, road.env)
        except OSError as error:
            os.write(2, f"{error.strerror}: {os.fsdecode(road.argv[0])}".encode())
        finally:
            os._exit(127)
    for fd in theirs:
        os.close(fd)
    for fd in ours:
        os.set_blocking(fd, False)
    return pid, ours
