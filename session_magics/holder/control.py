"""The near end of the control connection: lines to the script on the far side, its answers, and the shell's records."""

from __future__ import annotations

import _signal
import os
import select
import time

from session_magics.holder.child import RESET_SIGNALS, SpawnError
from session_magics.holder.farscript import TAG, escaped
from session_magics.holder.loop import READ, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from session_magics.holder.loop import Loop, Timer

    Answer = Callable[[list[bytes]], None]

CHUNK = 4096
"""Bytes of a file or a shell's line that one line to the script carries."""
PING = 1.0
"""Seconds between two signs of life that are asked for when nothing else is."""
PATIENCE = 2.0
"""Seconds for an answer, after which the connection counts as broken; it takes a millisecond, or a round trip."""
COMPLAINT = 400
"""Bytes of what a client complained about that are kept for the reason of a failure."""
CLOSE_LIMIT = 2.0
"""Seconds for the far side to end what is left there and go, when it is told to."""

GO_LIMIT = 0.2
"""Seconds for a client to end when the far side is gone."""
CLEANUP_LIMIT = 20.0
"""Seconds for the command that gives up a place: a container is killed and removed."""


def start_client(argv: list[bytes], env: Mapping[bytes, bytes], fds: tuple[int, int, int], cwd: bytes) -> int:
    """Start a program of this side with these three descriptors; its pid. OSError if it cannot be run."""
    told, report = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            for number, fd in enumerate(fds):
                os.dup2(fd, number)
            for one in RESET_SIGNALS:
                _signal.signal(one, _signal.SIG_DFL)
            _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
            if cwd:
                os.chdir(cwd)
            os.execvpe(argv[0], argv, env)
        except OSError as error:
            os.write(report, b"%d" % (error.errno or 0))
        finally:
            os._exit(127)
    os.close(report)
    failed = os.read(told, 16)
    os.close(told)
    if failed:
        os.waitpid(pid, 0)
        raise OSError(int(failed), os.strerror(int(failed)), os.fsdecode(argv[0]))
    return pid


class Control:
    """One connection. ``records`` takes the bytes of the far FIFO; ``broken`` is called once, when it is lost."""

    def __init__(
        self,
        loop: Loop,
        argv: list[bytes],
        env: Mapping[bytes, bytes],
        cwd: bytes,
        *,
        records: Callable[[bytes], None] = lambda _data: None,
        broken: Callable[[], None] = lambda: None,
    ) -> None:
        self._loop, self.records, self.broken = loop, records, broken
        self._client = (argv, env, cwd)
        pipes = [os.pipe() for _ in range(3)]
        theirs, ours = (pipes[0][0], pipes[1][1], pipes[2][1]), (pipes[0][1], pipes[1][0], pipes[2][0])
        try:
            self.pid = start_client(argv, env, theirs, cwd)
        except OSError as error:
            for fd in ours:
                os.close(fd)
            raise SpawnError(f"{(error.strerror or 'error').lower()}: {error.filename!r}") from None
        finally:
            for fd in theirs:
                os.close(fd)
        self._stdin, self._stdout, self._stderr = ours
        for fd in ours:
            os.set_blocking(fd, False)
        self._unsent = self._line = b""
        self.complaint = b""
        self.live = True
        """Whether the far side can be reached, as far as is known."""
        self.silent = False
        """Whether it counts as broken because it did not answer."""
        self._parting = False  # hung up, and the far side at work
        self._number = 0
        self._asked: dict[int, tuple[float, Answer]] = {}
        self._ping: Timer | None = None
        loop.watch(self._stdout, self._read_records)
        loop.watch(self._stderr, self._read_answers)

    def again(self, broken: Callable[[], None]) -> Control:
        """Another connection to the same place; raises SpawnError."""
        return Control(self._loop, *self._client, broken=broken)

    # ---- asking

    def tell(self, verb: bytes, one: bytes = b"-", two: bytes = b"") -> None:
        """Have something done without an answer."""
        self._send(b"%s 0 %s %s\n" % (verb, one, two))

    def ask(self, then: Answer, verb: bytes, one: bytes = b"-", two: bytes = b"") -> None:
        """Have something done and hear its words; nothing is heard if the connection breaks before."""
        self._number += 1
        self._asked[self._number] = (time.monotonic(), then)
        self._send(b"%s %d %s %s\n" % (verb, self._number, one, two))

    def greet(self, words: bytes, then: Answer) -> None:
        """Send the first line; its answer has the number 0."""
        self._asked[0] = (time.monotonic(), then)
        self._send(words + b"\n")

    def put(self, name: bytes, data: bytes) -> None:
        """Make a file in the far directory."""
        for at in range(0, len(data) or 1, CHUNK):
            self.tell(b"A" if at else b"F", name, escaped(data[at : at + CHUNK]))

    def leave(self) -> None:
        """Let the far side go without another look at what is left there."""
        self.broken = lambda: None
        self.tell(b"X")

    def keep_alive(self) -> None:
        """From now on, find out soon when the far side does not answer any more."""
        self._ping = self._loop.later(PING, self._look_alive)

    def _look_alive(self) -> None:
        oldest = min((since for since, _ in self._asked.values()), default=None)
        if oldest is None:
            self.ask(lambda _words: None, b"P")
        elif time.monotonic() - oldest > PATIENCE:
            self.complaint, self.silent = self.complaint or b"it does not answer", True
            self._gone()
        if self.live:
            self.keep_alive()

    def _send(self, data: bytes) -> None:
        if self.live:
            self._unsent += data
            self._write(0)

    def _write(self, _events: int) -> None:
        try:
            while self._unsent:
                self._unsent = self._unsent[os.write(self._stdin, self._unsent[: 16 * CHUNK]) :]
        except BlockingIOError:
            self._loop.watch(self._stdin, self._write, WRITE)
            return
        except OSError:
            self._unsent = b""  # its end is heard of on the other descriptors
        self._loop.forget(self._stdin)

    # ---- hearing

    def _read_records(self, _events: int) -> None:
        data = self._read(self._stdout)
        if data:
            self.records(data)
        elif data is not None:
            self._read_answers(READ)  # why it went, as far as that is said
            self._gone()

    def _read_answers(self, _events: int) -> None:
        data = self._read(self._stderr)
        if data == b"":
            self._gone()
        *lines, self._line = (self._line + (data or b"")).split(b"\n")
        for line in lines:
            if not line.startswith(TAG):
                self.complaint = (self.complaint + line.strip() + b" ")[-COMPLAINT:]
                continue
            number, *words = line[len(TAG) :].split()
            _, then = self._asked.pop(int(number), (0.0, None))
            if then is not None:
                then(words)

    @staticmethod
    def _read(fd: int) -> bytes | None:
        try:
            return os.read(fd, 1 << 16)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _gone(self) -> None:
        if self.live:
            self.live = False
            self._forget()
            self.broken()

    def _forget(self) -> None:
        self._loop.cancel(self._ping)
        for fd in (self._stdin, self._stdout, self._stderr):
            self._loop.forget(fd)

    def _reachable(self) -> bool:
        return self.live

    def until(self, ready: Callable[[], object], limit: float, also: dict[int, Callable[[], None]]) -> bool:
        """Wait here, outside the loop, until something has been heard; False after ``limit`` seconds or at the end.

        ``also``: other descriptors that are served meanwhile.
        """
        deadline = time.monotonic() + limit
        while not ready() and self._reachable():
            poll = select.poll()
            for fd in (self._stdout, self._stderr, *also):
                poll.register(fd, select.POLLIN)
            if self._unsent:
                poll.register(self._stdin, select.POLLOUT)
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            for fd, _ in poll.poll(left * 1000):
                if fd in also:
                    also[fd]()
                elif not self._reachable():
                    break
                else:
                    {self._stdin: self._write, self._stdout: self._read_records}.get(fd, self._read_answers)(READ)
        return bool(ready())

    # ---- the end

    def close(self) -> None:
        """Hang up, which has the far side end what is left there; wait for that, but not for ever. Idempotent."""
        if self._stdout < 0:
            return
        deadline = time.monotonic() + (CLOSE_LIMIT if self._hang_up() else 0.0)
        while (left := deadline - time.monotonic()) > 0:
            poll = select.poll()
            poll.register(self._stdout, select.POLLIN)
            poll.register(self._stderr, select.POLLIN)
            if any(self._read(fd) == b"" for fd, _ in poll.poll(left * 1000) if fd == self._stdout):
                break
            self._read(self._stderr)
        self._close_rest()
        end_client(self.pid, max(deadline - time.monotonic(), GO_LIMIT))

    def part(self, then: Callable[[], None]) -> None:
        """The same without waiting; ``then`` is called when the far side is gone, or the time for that is over."""
        if not self._hang_up():
            self.close()
            then()
            return

        def over() -> None:
            self._loop.cancel(limit)
            if self._stdout >= 0:  # else closed meanwhile
                self._forget()
                self._close_rest()
                self._loop.later(GO_LIMIT, lambda: end_client(self.pid, 0.0))
                then()

        def too_late() -> None:
            end_client(self.pid, 0.0)  # now, as there may be no later: the holder may go
            over()

        def hear(fd: int) -> None:
            if self._read(fd) == b"":
                self._loop.forget(fd)
                if fd == self._stdout:
                    over()

        limit = self._loop.later(CLOSE_LIMIT, too_late)
        self._loop.watch(self._stdout, lambda _events: hear(self._stdout))
        self._loop.watch(self._stderr, lambda _events: hear(self._stderr))

    def _hang_up(self) -> bool:
        """Whether the far side is still to be waited for."""
        patient, self.live = self.live or self._parting, False
        self._forget()
        if self._stdin >= 0:
            os.close(self._stdin)
            self._stdin = -1
            self._parting = patient
        return patient

    def _close_rest(self) -> None:
        os.close(self._stdout)
        os.close(self._stderr)
        self._stdout = self._stderr = -1


def run_to_its_end(argv: list[bytes]) -> None:
    """Run a program of this side for what it does, unheard; it may fail, but not last for ever."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        end_client(start_client(argv, os.environb, (null, null, null), b""), CLEANUP_LIMIT)
    except OSError:
        pass
    finally:
        os.close(null)


def end_client(pid: int, patience: float) -> None:
    """See to it that a client of this side ends, and reap it."""
    deadline = time.monotonic() + patience
    while True:
        try:
            if os.waitpid(pid, os.WNOHANG)[0]:
                return
        except ChildProcessError:
            return
        if time.monotonic() > deadline:
            break
        time.sleep(0.002)
    try:
        os.kill(pid, _signal.SIGKILL)
        os.waitpid(pid, 0)
    except OSError:
        pass  # reaped meanwhile
