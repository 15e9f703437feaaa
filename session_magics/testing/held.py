"""What a holder does, done by a thread: one fake session's lock, log, records and generations."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import signal
import socket
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from session_magics.backends import Start
from session_magics.durable import write_atomic
from session_magics.errors import StartFailed
from session_magics.holder.escalation import AGAIN_WITHIN
from session_magics.holder.logfile import LogWriter
from session_magics.holder.processes import boot_id, start_tick
from session_magics.holder.record import format_exit
from session_magics.holder.restarts import Allowance, wanted
from session_magics.testing.scripted import CellProgram, FakeTerminal, Program, Signalled

BACK_OFF = 0.05
"""Seconds before a restart by policy: tests should not wait as people would."""
KILL_PATIENCE = 5.0
"""Seconds for a killed program to make the call that ends it."""
LOCK_LIMIT = 5.0
"""Seconds to try for the lock: who reads the state has it for microseconds."""
PIDS = itertools.count(0x7FFFFFFE, -1)
"""Pids that no process has, so that nobody's is hit by who sends a signal to one."""


class Client(Protocol):
    """The link of a fake session, as its holder's side sees it."""

    def ring(self, log_end: int, index_size: int) -> None:
        """Give the bell that is asked for, if it is due."""

    def post(self, kind: str, number: int, value: object) -> None:
        """Tell "begun" or "finished" of the ticket ``number``."""

    def hang_up(self) -> None:
        """The holder goes."""


@dataclass(frozen=True)
class Request:
    """A cell that waits to be run."""

    client: Client
    ticket: int
    text: str
    hidden: bool


class Held:
    """One session while it is held. Public methods may be called from any thread; ``lock`` guards all that changes."""

    def __init__(self, start: Start, program: Program | None, cells: CellProgram | None) -> None:
        """Start the program; StartFailed if the session is held already."""
        self.start = start
        self.lock = threading.Condition(threading.RLock())
        self.links: set[Client] = set()
        self.generation = start.generation
        self.over = False
        """Whether the end is on record and everything given up."""
        self.size = start.spec.size
        self._path = str(start.directory)
        self._program, self._cell_program = program, cells
        limit = start.spec.max_restarts
        self._allowance = Allowance(limit.count if limit else 0, (limit.window if limit else None) or 0.0)
        self._after: dict[str, object] = {}  # what the run record says of the program's end
        self._alive = _lock(self._path, start.spec.name)
        self.log = LogWriter(self._path)
        self._lost = self._restarting = False
        self._argv, self._again = start.spec.argv, start.again
        self._deadline: float | None = None  # of a stop that is under way: when to force
        self._requests: deque[Request] = deque()
        self._active: Request | None = None
        self._number = self._interrupts = 0
        self._interrupted_at = 0.0
        self._notice = ""
        self._begin_generation()
        self._thread = threading.Thread(target=self._serve, name=f"fake session {start.spec.name}", daemon=True)
        self._thread.start()

    def _begin_generation(self) -> None:
        spec = self.start.spec
        self.pid = next(PIDS)
        self.terminal = FakeTerminal(self._argv, self.start.env, spec.cwd, self.size, self._output)
        self._since, self._after = time.time(), {}
        self._write_run()

    # ---- the thread of the program

    def _serve(self) -> None:
        while True:
            code, number = self._play()
            with self.lock:
                if self._lost:
                    return
                self.log.event("exit", code=code, signal=number)
                self._after = {"code": code, "signal": number, "ended": time.time()}
                until = self._again_at(code)
                if until is None or not self._backed_off(code, number, until):
                    self._write_end(code, number)
                    self._close()
                    return
                self._deadline, self._restarting = None, False
                self.generation += 1
                self._argv = self._again or self._argv
                self.log.event("restart", generation=self.generation)
                self._begin_generation()
                self._ring()
                self.lock.notify_all()

    def _backed_off(self, code: int | None, number: int | None, until: float) -> bool:
        """Wait until it is time to start again; False if a stop came instead."""
        self._after["until"] = until
        self._write_run()
        self._write_end(code, number)
        self._ring()
        self.lock.wait_for(lambda: self._deadline is not None, until - time.time())
        if self._deadline is None:
            self._allowance.take(time.monotonic())
        else:
            self._allowance.clear()
        if self._deadline is None or self._restarting:
            return True
        self._after = {}
        self._write_run()
        return False

    def _again_at(self, code: int | None) -> float | None:
        """When the program is to be started again; None: never."""
        if self._deadline is not None:
            return time.time() if self._restarting else None
        if not wanted(self.start.spec.restart, code):
            return None
        if restarts := self._allowance.spent(time.monotonic()):
            self._after["gave_up"] = restarts
            self._write_run()
            return None
        return time.time() + BACK_OFF

    def _play(self) -> tuple[int | None, int | None]:
        """Run the program to its end: (code, signal)."""
        try:
            status = self._program(self.terminal) if self._program else self._play_cells()
        except Signalled as signalled:
            return None, signalled.number
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else 1
        except BaseException:
            self._output(traceback.format_exc().encode())
            status = 1
        return status or 0, None

    def _play_cells(self) -> int:
        while True:
            self.terminal.block(lambda: bool(self._requests))
            with self.lock:
                self._active = request = self._requests.popleft()
                self._number += 1
                begin, started = self.log.end, time.monotonic()
                if not request.hidden:
                    self.log.event("begin", n=self._number, text=request.text.strip().partition("\n")[0])
                request.client.post("begun", request.ticket, (begin, self._notice))
                self._notice = ""
            status, state = self._play_cell(request.text)
            with self.lock:
                self._active, self._interrupts = None, 0
                seconds = time.monotonic() - started
                self._finish_cell(request, begin, status, state, seconds)

    def _play_cell(self, text: str) -> tuple[int, str]:
        assert self._cell_program is not None
        try:
            return self._cell_program(self.terminal, text) or 0, "done"
        except Signalled as signalled:
            if self._deadline is not None:
                raise
            self.terminal.revive()
            return 128 + signalled.number, "done"
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 0, "exited"

    def _finish_cell(self, request: Request, begin: int, status: int, state: str, seconds: float) -> None:
        restarted = ""
        if state == "exited":
            self.generation += 1
            self.log.event("restart", generation=self.generation)
            self._write_run()
            restarted = f"the shell ended with status {status}; it was restarted"
        cwd = self.start.spec.cwd
        if not request.hidden:
            self.log.event(
                "end", n=self._number, begin=begin, status=status, state=state, seconds=round(seconds, 6), cwd=cwd
            )
        plain = (self._number, begin, self.log.end, status, state, f"{seconds:.6f}", 1, cwd, restarted)
        request.client.post("finished", request.ticket, [str(one).encode() for one in plain])
        self._ring()

    def _output(self, data: bytes) -> None:
        with self.lock:
            if not self._lost:
                self.log.append(data)
                self._ring()

    # ---- what clients ask

    def run(self, request: Request) -> str:
        """Queue a cell; why it is refused, or ""."""
        with self.lock:
            if self._program is not None:
                return "its program is no shell"
            running = self._active or next(iter(self._requests), None)
            if running is not None and not request.hidden:
                return running.text.strip().partition("\n")[0]
            self._requests.append(request)
        self.terminal.wake()
        return ""

    def resize(self, size: tuple[int, int]) -> None:
        """Set the size for now and for later generations."""
        with self.lock:
            self.size = size
            self.log.event("resize", rows=size[0], columns=size[1])
            self._write_run()
            self.terminal.resize(size)
            self._ring()

    def interrupt(self) -> None:
        """INT; within two seconds TERM, then KILL. Nothing for an idle shell."""
        with self.lock:
            if self._program is None and self._active is None:
                return
            now = time.monotonic()
            self._interrupts = self._interrupts + 1 if now - self._interrupted_at < AGAIN_WITHIN else 1
            self._interrupted_at = now
            ladder = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
            self.terminal.deliver(ladder[min(self._interrupts, len(ladder)) - 1])

    def stop(self, grace: float, *, hurry: bool = False) -> tuple[int, ...]:
        """End the program and wait for that; its pid if it makes no call that could end it."""
        with self.lock:
            self._ask(grace, hurry=hurry)
            while not self.over and self._deadline is not None and (left := self._deadline - time.monotonic()) > 0:
                self.lock.wait(left)
            return self._force(lambda: self.over)

    def restart(self, grace: float, argv: tuple[str, ...]) -> tuple[int, ...]:
        """Stop, and start the next generation; the survivor that kept it from that."""
        with self.lock:
            generation = self.generation
            self._again = argv or self._again
            self._restarting = True
            self._ask(grace, hurry=False)
            while self.generation == generation and self._deadline and (left := self._deadline - time.monotonic()) > 0:
                self.lock.wait(left)
            return self._force(lambda: self.over or self.generation > generation)

    def _ask(self, grace: float, *, hurry: bool) -> None:
        now = time.monotonic()
        if self._deadline is None:
            self._deadline = now + grace
            self.terminal.deliver(signal.SIGTERM)
        if hurry:
            self._deadline = min(self._deadline, now)
        self.lock.notify_all()

    def _force(self, done: Callable[[], bool]) -> tuple[int, ...]:
        if not done():
            self.terminal.deliver(signal.SIGKILL)
        return () if self.lock.wait_for(done, KILL_PATIENCE) else (self.pid,)

    def lose(self) -> None:
        """Vanish as a killed holder does."""
        with self.lock:
            self._lost = True
            self._close()
        self.terminal.deliver(signal.SIGKILL)

    # ---- records

    def _ring(self) -> None:
        for link in self.links:
            link.ring(self.log.end, self.log.index_size)

    def _write_run(self) -> None:
        record = {
            "schema": 1, "boot": boot_id(), "host": socket.gethostname(), "holder": os.getpid(),
            "holder_tick": start_tick(os.getpid()), "pid": self.pid, "tick": 0, "generation": self.generation,
            "since": self._since, "protocol": 1, "size": list(self.size), **self._after,
        }  # fmt: skip
        with contextlib.suppress(FileNotFoundError):  # the session was removed meanwhile
            write_atomic(f"{self._path}/run.json", json.dumps(record).encode())

    def _write_end(self, code: int | None, number: int | None) -> None:
        kind, value = ("signal", number) if number is not None else ("code", code or 0)
        with contextlib.suppress(FileNotFoundError), open(f"{self._path}/exit", "r+b", buffering=0) as file:
            file.write(format_exit(self.generation, kind, value, time.time()))

    def _close(self) -> None:
        self.over = True
        self.log.close()
        os.close(self._alive)
        for link in self.links:
            link.hang_up()
        self.lock.notify_all()


def _lock(directory: str, name: str) -> int:
    """The locked file that says that the session is held."""
    fd = os.open(f"{directory}/alive", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    deadline = time.monotonic() + LOCK_LIMIT
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(fd)
                raise StartFailed(name, "another holder has this session") from None
            time.sleep(0.002)
