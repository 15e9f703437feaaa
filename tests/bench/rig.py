"""A real kernel, timed as a front end sees it: from sending a cell until its reply and idle are there.

Text is counted and not kept, so that the measuring side costs the same for every peer.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import zmq

sys.path.insert(0, str(Path(__file__).parent.parent / "cells"))

from cell_kernel import Kernel

# Seconds after which a cell is given up and its time is taken as this.
GIVE_UP = 180.0
NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass
class Timing:
    """One cell: seconds until idle, when text came (Unix time) and how much, and how the reply ended."""

    seconds: float = 0.0
    status: str = "none"
    characters: int = 0
    messages: int = 0
    arrivals: list[tuple[float, str]] = field(default_factory=list)
    """(Unix time of arrival, first 200 characters) of the first ten messages."""
    sent: float = 0.0
    error: str = ""


class BenchKernel:
    """A kernel for measuring; the channels are read by one poll loop, without threads."""

    def __init__(self, environment: Mapping[str, str], target: str = "session") -> None:
        self.cells = Kernel(target, sys.executable, {"env": dict(environment)})

    def start(self, *, load: bool = True) -> None:
        if not load:
            self.cells.target = "bash-magic"  # which only differs in that nothing is loaded
        wrong = self.cells.start()
        if wrong:
            raise RuntimeError(f"{wrong}: {self.cells.last_words()}")

    @property
    def pid(self) -> int:
        return int(self.cells.pid)

    def stop(self) -> None:
        self.cells.stop()

    def time(self, code: str) -> Timing:
        """Run a cell and return its timing; one that is not idle after GIVE_UP seconds is interrupted."""
        client, timing = self.cells.client, Timing()
        shell, iopub = client.shell_channel, client.iopub_channel
        poller = zmq.Poller()
        for channel in (shell, iopub):
            poller.register(channel.socket, zmq.POLLIN)
        start, timing.sent = time.perf_counter(), time.time()
        request = client.execute(code, allow_stdin=False)
        replied = idle = interrupted = False
        while not (replied and idle):
            poller.poll(1000)
            while shell.msg_ready():
                message = shell.get_msg(timeout=0)
                if message["parent_header"].get("msg_id") == request:
                    replied, timing.status = True, message["content"]["status"]
            while iopub.msg_ready():
                message = iopub.get_msg(timeout=0)
                if message["parent_header"].get("msg_id") == request:
                    idle = self._note(timing, message) or idle
            if time.perf_counter() - start > GIVE_UP and not interrupted:
                interrupted = True
                self.cells.interrupt(False)
        timing.seconds = time.perf_counter() - start
        return timing

    def _note(self, timing: Timing, message: dict[str, Any]) -> bool:
        """Count an output message; return whether it was the end of the cell."""
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            text = content["text"]
        elif kind in ("display_data", "update_display_data", "execute_result"):
            text = str(content["data"].get("text/plain", ""))
        else:
            if kind == "error":
                timing.error = f"{content['ename']}: {content['evalue']}"
            return kind == "status" and content["execution_state"] == "idle"
        timing.messages += 1
        timing.characters += len(text)
        if len(timing.arrivals) < 10:
            timing.arrivals.append((time.time(), text[:200]))
        return False

    def good(self, code: str) -> Timing:
        """Like ``time``, for a cell that must not fail."""
        timing = self.time(code)
        if timing.status != "ok":
            raise RuntimeError(f"{code.splitlines()[0]}: {timing.error or timing.status}")
        return timing


@contextmanager
def running_kernel(
    *, load: bool = True, environment: Mapping[str, str] = NOTHING, target: str = "session"
) -> Iterator[BenchKernel]:
    """A kernel for the length of a block, with additions to its environment; ``target``: see the cells."""
    kernel = BenchKernel(environment, target)
    try:
        kernel.start(load=load)
        yield kernel
    finally:
        kernel.stop()


@contextmanager
def scratch() -> Iterator[Path]:
    """A short temporary directory: sockets lie below it."""
    with tempfile.TemporaryDirectory(prefix="smb") as name:
        yield Path(name)
