"""Programs of this machine with pipes, for a sandbox that runs its commands itself or through a client program.

``Programs(place)`` is what a sandbox keeps: it starts programs, each in a session of its own, and kills on ``close``
those that still run. It is given ready words, an absolute directory and the complete environment (None: ours)::

    programs = Programs("ssh:HOST")                    # of clients, only the process group is ever killed
    programs = Programs("local", family=True)          # marked, so that what leaves the group is killed as well
    result = programs.run(argv, stdin=data, timeout=5, on_timeout=kill_there)       # a Result
    process = programs.start(argv, on_kill=kill_there, status=lambda code: ...)     # a Process
    programs.close()

``on_timeout`` and ``on_kill`` are called before the program here is killed, at most once: they end what it stands for
elsewhere, and see to it themselves that they return. What they raise comes out of ``run`` or ``kill``. ``status`` turns
the exit status of a client into that of the far program.

A program that is not there has the status 127, one that cannot be run 126; ``start`` gives then a Process that has
ended. A directory that is not there is a UsageMistake.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO

from session_magics.errors import SandboxError, UsageMistake, WaitTimeout
from session_magics.holder.trees import RUN
from session_magics.interrupts import noticed
from session_magics.sandbox import Process, Result
from session_magics.sandbox.children import Beginning, Child, Ending, Pump

OUTPUT_CAP = 64 * 1024 * 1024
"""Bytes kept of each stream of ``run``: as much as the log of a session."""
CANNOT_RUN, NOT_FOUND = 126, 127
SHORTAGES = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)

Hook = Callable[[], None]


class Programs:
    """Starts programs for one place, from any thread. What still runs is killed by ``close``."""

    def __init__(self, place: str, *, family: bool = False) -> None:
        self._place, self._family = place, family
        self._lock = threading.Lock()
        self._live: dict[Child, Hook] = {}

    def run(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        timeout: float | None = None,
        cap: int = OUTPUT_CAP,
        on_timeout: Hook | None = None,
    ) -> Result:
        """Run a program to its end; see ``Sandbox.exec``."""
        began = time.monotonic()
        out, err = Beginning(cap), Beginning(cap)
        with contextlib.ExitStack() as held:
            try:
                with noticed():  # an interrupt half-way would leave it behind
                    child = self._spawn(argv, cwd, env, subprocess.DEVNULL if stdin is None else subprocess.PIPE)
                    kill = _then(on_timeout, child.kill)
                    held.enter_context(self._held(child, kill))
            except _CannotStart as refusal:
                return Result(refusal.code, b"", refusal.text, time.monotonic() - began)
            pump = Pump(child, {child.stdout: out, child.stderr: err}, stdin or b"")
            timed_out = pump.run(None if timeout is None else began + timeout, kill)
            code = child.reap()
        lasted = time.monotonic() - began
        return Result(code, out.data(), err.data(), lasted, timed_out, out.dropped + err.dropped)

    def start(
        self,
        argv: Sequence[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        on_kill: Hook | None = None,
        status: Callable[[int], int] = int,
    ) -> Process:
        """Start a program with live pipes; see ``Sandbox.start_process``."""
        with contextlib.ExitStack() as unless_returned:
            try:
                with noticed():  # as above
                    child = self._spawn(argv, cwd, env, subprocess.PIPE)
                    process = PipedProcess(child, _then(on_kill, child.kill), status, self._forget)
                    with self._lock:
                        self._live[child] = process.kill
                    process.watch()
                    for give_up in (process.stdin.close, process.stdout.close, process.kill):
                        unless_returned.callback(give_up)
            except _CannotStart as refusal:
                return EndedProcess(refusal.code, refusal.text)
            unless_returned.pop_all()
        return process

    def close(self) -> None:
        """Kill what still runs; idempotent."""
        with self._lock:
            kills = list(self._live.values())
        with contextlib.ExitStack() as all_of_them:  # also where one fails
            for kill in kills:
                all_of_them.callback(kill)

    def _spawn(self, argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None, stdin: int) -> Child:
        cookie = os.urandom(8).hex() if self._family else ""
        marked = dict(os.environ if env is None else env)
        if cookie:
            marked[RUN] = cookie
        try:
            popen = subprocess.Popen(
                list(argv),
                cwd=cwd,
                env=marked,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            if cwd is not None and error.filename == cwd:
                raise UsageMistake(f"{self._place}: no command can run in {cwd}: {error.strerror}") from None
            if error.errno in SHORTAGES:
                raise SandboxError(self._place, f"no program can be started: {error.strerror}") from error
            raise _CannotStart(argv[0], error) from None
        except UnicodeEncodeError:
            raise UsageMistake(f"{self._place}: a word or a variable has characters that no program takes") from None
        return Child(popen, cookie)

    @contextlib.contextmanager
    def _held(self, child: Child, kill: Hook) -> Iterator[None]:
        """Have ``close`` end it too, and end it whatever interrupts the block."""
        with self._lock:
            self._live[child] = kill
        try:
            yield
        except BaseException:
            kill()
            child.reap()
            raise
        finally:
            self._forget(child)
            child.close()

    def _forget(self, child: Child) -> None:
        with self._lock:
            self._live.pop(child, None)


class PipedProcess:
    """A live program; see ``Process``. A thread reads its error output and reaps it."""

    def __init__(self, child: Child, kill: Hook, status: Callable[[int], int], forget: Callable[[Child], None]) -> None:
        self._child, self._kill, self._status, self._forget = child, kill, status, forget
        self.stdin, self.stdout = child.handed_over()
        self._tail = Ending()
        self._over = threading.Event()
        self._code: int | None = None
        self._killing = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name=f"watch {child.pid}", daemon=True)

    def watch(self) -> None:
        """Begin to read its error output and to wait for its end."""
        self._thread.start()

    def _watch(self) -> None:
        try:
            Pump(self._child, {self._child.stderr: self._tail}).run()
            self._code = self._status(self._child.reap())
        finally:
            self._forget(self._child)
            self._over.set()
            self._child.close()

    def stderr(self) -> bytes:
        """See Process."""
        return self._tail.data()

    def poll(self) -> int | None:
        """See Process."""
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """See Process."""
        if not self._over.wait(timeout):
            raise WaitTimeout(f"process {self._child.pid}", "its end", timeout or 0.0)
        assert self._code is not None
        return self._code

    def kill(self) -> None:
        """See Process."""
        with self._killing:
            if not self._over.is_set():
                self._kill()
        self._over.wait()


class EndedProcess:
    """A program that could not be started; see ``Process``."""

    def __init__(self, code: int, text: bytes) -> None:
        self._code, self._text = code, text
        self.stdin: IO[bytes] = open(os.devnull, "wb")  # noqa: SIM115 - the caller's to close
        self.stdout: IO[bytes] = io.BytesIO()

    def stderr(self) -> bytes:
        """See Process."""
        return self._text

    def poll(self) -> int | None:
        """See Process."""
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """See Process."""
        return self._code

    def kill(self) -> None:
        """See Process."""


class _CannotStart(Exception):
    """As a shell tells it."""

    def __init__(self, program: str, error: OSError) -> None:
        self.code = NOT_FOUND if error.errno in (errno.ENOENT, errno.ENOTDIR) else CANNOT_RUN
        self.text = os.fsencode(f"{program}: {'not found' if error.errno == errno.ENOENT else error.strerror}\n")


def _then(first: Hook | None, kill: Hook) -> Hook:
    """Both, in turn: the first at most once, and the second whatever becomes of it."""
    waiting = [first] if first is not None else []

    def run() -> None:
        try:
            if waiting:
                waiting.pop()()
        finally:
            kill()

    return run
