"""A command that runs over ssh: its streams told apart from what belongs to the connection, its exact end."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import IO

from session_magics.errors import SandboxError, SessionError, UsageMistake, WaitTimeout
from session_magics.sandbox.children import Child, Ending, Pump, Reader

KILLED = -9
"""Status of what we have killed there."""


class Outcome:
    """What the far side has said about a command."""

    def __init__(self, place: str) -> None:
        self._place = place
        self.group = ""
        """Its process group there; empty: it has not begun."""
        self.code: int | None = None
        """Its status; None: it has not ended, or nothing is known."""
        self.output_ended = False
        self.lost = False
        self.refusal: SessionError | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more is to come: it has ended and all of its output is here, or nobody will tell."""
        return self.refusal is not None or self.lost or (self.code is not None and self.output_ended)

    def take(self, words: list[str]) -> None:
        """One line that begins with our mark."""
        match words:
            case ["begin", group]:
                self.group = group
            case ["end"]:
                self.output_ended = True
            case ["exit", code]:
                self.code = int(code)
            case ["signal", number]:
                self.code = -int(number)
            case ["lost"]:
                self.lost = True
            case ["refused", "outside"]:
                self.refusal = UsageMistake(
                    f"{self._place}: the directory leads out of the root through a symbolic link: give one below it"
                )
            case ["refused", "missing"]:
                self.refusal = UsageMistake(f"{self._place}: no command can run in a directory that is not there")
            case ["refused", _]:
                self.refusal = SandboxError(self._place, "the root directory is gone: make it, or take another root")


class Framed:
    """Of a stream, hands on what is the program's, and gives the lines that begin with the mark to ``heard``."""

    def __init__(self, mark: str, inner: Reader, heard: Callable[[list[str]], None]) -> None:
        self._mark, self._inner, self._heard = mark.encode(), inner, heard
        self._begun = self._over = False
        self._rest = b""

    def take(self, piece: bytes) -> None:
        """See Reader."""
        self._rest += piece
        while (at := self._rest.find(self._mark)) >= 0:
            end = self._rest.find(b"\n", at)
            self._hand_on(at)
            if end < 0:
                return
            words = self._rest[: end - at].decode(errors="replace").split()[1:]
            self._rest = self._rest[end - at + 1 :]
            self._over = self._begun
            self._begun = True
            self._heard(words)
        self._hand_on(len(self._rest) - self._begun_marks())

    def _hand_on(self, size: int) -> None:
        if self._begun and not self._over and size:
            self._inner.take(self._rest[:size])
        self._rest = self._rest[size:]

    def _begun_marks(self) -> int:
        """Bytes at the end that may be the beginning of a mark."""
        sizes = range(min(len(self._mark) - 1, len(self._rest)), 0, -1)
        return next((size for size in sizes if self._mark.startswith(self._rest[-size:])), 0)


class FarProcess:
    """A live program there; see ``Process``. A thread reads its error output for as long as somebody there has it open.

    ``kill_there`` ends the program there; ``settle`` is called at its end, and raises an error if it has no status.
    """

    def __init__(
        self,
        child: Child,
        outcome: Outcome,
        mark: str,
        kill_there: Callable[[], object],
        settle: Callable[[Outcome, bool], int],
    ) -> None:
        self._child, self._outcome = child, outcome
        self._kill_there, self._settle = kill_there, settle
        self.stdin, self.stdout = child.handed_over()
        self._tail = Ending()
        self._framed = Framed(mark, self._tail, self._heard)
        self._over = threading.Event()
        self._code: int | None = None
        self._error: SessionError | None = None
        self._killing, self._ending = threading.Lock(), threading.Lock()
        self._killed = False
        self._thread = threading.Thread(target=self._watch, name=f"watch {child.pid}", daemon=True)
        self._thread.start()

    def _heard(self, words: list[str]) -> None:
        self._outcome.take(words)
        if self._outcome.code is not None or self._outcome.lost:
            self._finish()

    def _watch(self) -> None:
        try:
            Pump(self._child, {self._child.stderr: self._framed}).run()
            self._child.reap()
        finally:
            self._finish()
            self._child.close()

    def _finish(self) -> None:
        with self._ending:
            if self._over.is_set():
                return
            try:
                self._code = self._settle(self._outcome, self._killed)
            except SessionError as error:
                self._error = error
            self._over.set()

    def stderr(self) -> bytes:
        """See Process."""
        return self._tail.data()

    def poll(self) -> int | None:
        """See Process."""
        if self._error is not None:
            raise self._error
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """See Process. SandboxError: the connection was lost, and nobody knows its status."""
        if not self._over.wait(timeout):
            raise WaitTimeout(f"process {self._child.pid}", "its end", timeout or 0.0)
        code = self.poll()
        assert code is not None
        return code

    def kill(self) -> None:
        """See Process."""
        with self._killing:
            if not self._over.is_set():
                self._killed = True
                self._kill_there()
                self._child.kill()
        self._over.wait()

    @property
    def gone(self) -> bool:
        """Whether nothing of it is here any more."""
        return not self._thread.is_alive()

    def let_go(self) -> None:
        """Kill it, and what is here of one whose output a job that it left behind holds open."""
        self.kill()
        self._child.kill()
        self._thread.join()


def greeting(stream: IO[bytes], mark: str, outcome: Outcome, deadline: float) -> None:
    """Read a stream up to the first line with the mark, behind which nothing has come yet."""
    framed = Framed(mark, Ending(), outcome.take)
    while not (outcome.group or outcome.refusal) and time.monotonic() < deadline:
        piece = os.read(stream.fileno(), 1 << 16)
        if not piece:
            return
        framed.take(piece)
