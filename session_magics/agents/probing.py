"""Which of the known tools are there, and in what version."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from subprocess import DEVNULL, PIPE, STDOUT, Popen, TimeoutExpired

from session_magics.agents.tools import Tool, find

PROBE_SECONDS = 5.0
"""For a program to tell its version; node-based ones take up to 2 s when the disk is cold."""
PROBE_BYTES = 16 * 1024
"""Of a program's answer: a version is in its first lines, and a program that ignores the flag may print for ever."""


@dataclass(frozen=True)
class Installed:
    """What was found of one tool."""

    name: str
    title: str
    path: str | None
    version: str | None


def installed(known: Mapping[str, Tool]) -> list[Installed]:
    """Look for all the tools at once, and ask those that are there for their versions."""

    def look(tool: Tool) -> Installed:
        path = find(tool)
        return Installed(tool.name, tool.title, path, version(tool, path) if path else None)

    with ThreadPoolExecutor(len(known) or 1) as pool:
        return list(pool.map(look, known.values()))


def version(tool: Tool, program: str) -> str | None:
    """The version that the program tells, or None if it does not within 5 s; nothing of the probe is left running."""
    if not tool.version_args:
        return None
    output = _output([program, *tool.programs[1:], *tool.version_args], {**os.environ, **tool.env})
    match = re.search(tool.version_pattern, output)
    return match[match.lastindex or 0] if match else None


def _output(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """The first of what a command prints; "" if it fails."""
    try:
        # A session of its own: away from the terminal, and a group that can be ended as a whole.
        process = Popen(argv, env=env, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, start_new_session=True)
    except OSError:
        return ""
    status, deadline = None, time.monotonic() + PROBE_SECONDS
    assert process.stdout is not None
    try:
        with process.stdout as pipe:
            data = _read(pipe.fileno(), deadline)
        with contextlib.suppress(TimeoutExpired):
            status = process.wait(max(0.0, deadline - time.monotonic()))
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutExpired):  # stuck in the kernel: nothing can be done
            process.wait(PROBE_SECONDS)
    return data.decode("utf-8", "replace") if status in (0, None) or len(data) == PROBE_BYTES else ""


def _read(fd: int, deadline: float) -> bytes:
    """Not ``communicate``: it takes all that comes, and waits for whoever else holds the pipe."""
    data, poll = b"", select.poll()
    poll.register(fd)
    while (left := deadline - time.monotonic()) > 0 and poll.poll(left * 1000):
        if not (piece := os.read(fd, PROBE_BYTES - len(data))):  # the end, or enough
            break
        data += piece
    return data
