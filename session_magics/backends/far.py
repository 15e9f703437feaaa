"""Sessions whose program runs elsewhere: in a container, on another host, wherever a sandbox leads.

On this side each has a process of its own, started as holders are, which keeps the session's directory here and owns
the connection. Where there is a Python the whole holder runs on the far side, and this process is a relay.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from session_magics.backends import Start
from session_magics.backends.farcode import READER, far_code
from session_magics.backends.farscript import end_there, launch_fields
from session_magics.backends.native import NativeBackend, NativeLink, launch_message, living_holder, packed
from session_magics.errors import SandboxError, StartFailed, UsageMistake
from session_magics.holder import launch, wire
from session_magics.model import Command
from session_magics.sandbox import Sandbox

ROAD = "road"
"""Name of the file in a session's directory that tells how its place is reached again."""
SOCKET = "sock"
"""Stays in a session's directory while something of the session may live there, see ``choice.abandoned``."""
GOING, GOING_STEP = 2.0, 0.02
"""Seconds in which a holder whose program was ended by force goes, and between two looks."""
FORSAKEN = 60.0
"""Seconds after which a far session that ends with its kernel ends if nobody has come back to it."""

ANSWER_LIMIT = 5.0
"""Seconds for an answer, which may have to come from there; so long a connection may take to be there again."""
CLEANUP_LIMIT = 20.0
"""Seconds for what was made for a session to be given up, such as a container to be removed."""


class FarBackend(NativeBackend):
    """Starts relays and connects to them. Holds nothing itself; any number may exist."""

    name = "far"
    start_limit = 30.0
    """Seconds: a first connection may have to wait for a network, and for a container to start."""

    def start(self, start: Start) -> None:
        """See Backend. StartFailed too where the place cannot be reached."""
        name = start.spec.name
        if start.place is None:
            raise StartFailed(name, "it is not said where it is to run")
        try:
            python = start.place.probe().python
            if start.spec.cwd:
                start.place.wrap(Command(("true",), start.spec.cwd))  # refuses a directory that is out of bounds
            if python is None:
                self._start_without_python(start, start.place)
            else:
                self._start_relay(start, start.place, python)
        except (SandboxError, UsageMistake) as error:
            raise StartFailed(name, str(error)) from None

    def _start_without_python(self, start: Start, place: Sandbox) -> None:
        fields = launch_fields(start)
        self._remember(start.directory, {name.encode(): value for name, value in fields.items()})
        self._answer(start, place, launch_message(start, fields))

    def _answer(self, start: Start, place: Sandbox, message: bytes) -> None:
        """Start the process of this side; StartFailed, and the place given up, if it does not come up."""
        answer = self.launch(start.spec.id, start.spec.name, message)
        if answer != b"ok":
            _run_quietly(place.cleanup())
            raise StartFailed(start.spec.name, answer.decode("utf-8", "replace"))

    def _start_relay(self, start: Start, place: Sandbox, python: str) -> None:
        far = self._road(start, place, python)
        self._remember(start.directory, far)
        code = far_code()
        far |= {
            b"boot": code.boot,
            b"call": code.call.encode(),
            b"code": code.packed,
            b"message": _far_message(start),
            b"detached": b"%d" % (start.spec.lifetime == "detached"),
        }
        near = replace(start, env={})
        self._answer(start, place, launch_message(near, {"far": _flat(far)}))

    @staticmethod
    def _road(start: Start, place: Sandbox, python: str) -> dict[bytes, bytes]:
        """How the place is reached: ready-made, for processes that know nothing of sandboxes."""
        command = place.wrap(Command((python, "-I", "-S", "-c", READER)))
        added = [part for key, value in command.env.items() if value is not None for part in (key, value)]
        return {
            b"id": start.spec.id.encode(),
            b"place": place.place.encode("utf-8", "surrogateescape"),
            b"argv": packed(command.argv),
            b"cwd": os.fsencode(command.cwd or ""),
            b"env": packed(added),
            b"unset": packed([key for key, value in command.env.items() if value is None]),
            b"cleanup": packed(place.cleanup()),
        }

    @staticmethod
    def _remember(directory: Path, far: Mapping[bytes, bytes]) -> None:
        fd = os.open(directory / ROAD, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(_flat(far))

    def connect(self, directory: Path, name: str) -> FarLink:
        """See Backend."""
        return FarLink(directory, name)

    def force(self, directory: Path, id: str) -> tuple[int, ...]:
        """See Backend. SandboxError: the place cannot be reached, and what the session left there may still run."""
        try:
            far = wire.pairs(wire.unpack((directory / ROAD).read_bytes()))
            cleanup = [os.fsdecode(word) for word in wire.unpack(far[b"cleanup"])]
        except (OSError, KeyError, wire.BadFrame):
            return super().force(directory, id)
        lives = living_holder(directory)
        try:
            survivors = self._end_there(directory, id, far)
        except SandboxError:
            if lives or not cleanup:
                raise
            survivors = ()  # nothing of the place itself is left in a moment
        if lives and not _goes(directory):
            return survivors  # it gives the place up itself when all has ended and is on record
        _run_quietly(cleanup)
        if not survivors:
            with contextlib.suppress(OSError):
                os.unlink(directory / SOCKET)
        return survivors

    def _end_there(self, directory: Path, id: str, far: Mapping[bytes, bytes]) -> tuple[int, ...]:
        if b"control" in far:
            return end_there({name.decode(): value for name, value in far.items()}, id)
        return self._end_by_agent(directory, id, far)

    def _end_by_agent(self, directory: Path, id: str, far: Mapping[bytes, bytes]) -> tuple[int, ...]:
        code = far_code()
        more = {b"boot": code.boot, b"call": code.call.encode(), b"code": code.packed, b"mode": b"force"}
        nothing = dict.fromkeys(("argv", "env", "cwd"), b"") | {"rows": b"0", "columns": b"0"}
        message = launch.encode(directory=os.fsencode(directory), far=_flat({**far, **more}), **nothing)
        answer, _, rest = self.launch(id, id, message).partition(b" ")
        if answer == b"ok":
            return tuple(map(int, rest.split()))
        if answer == b"gone":
            return ()
        place, reason = far[b"place"].decode(), rest.decode("utf-8", "replace")
        raise SandboxError(place, f"{reason}; what the session left there may still run")


class FarLink(NativeLink):
    """See Link. A holder that goes without an answer to a stop has perhaps lost its place with all that runs there."""

    answer_limit = ANSWER_LIMIT

    def stop(self, grace: float, *, hurry: bool = False) -> tuple[int, ...]:
        """See Link."""
        return self.stopped(grace, hurry=hurry)


def _goes(directory: Path) -> bool:
    """Whether the holder goes within a moment: one that was killed just now still lives for some milliseconds."""
    deadline = time.monotonic() + GOING
    while living_holder(directory):
        if time.monotonic() > deadline:
            return False
        time.sleep(GOING_STEP)
    return True


def _far_message(start: Start) -> bytes:
    """What the far holder is told; its directory and the rest of the environment are added there."""
    there = replace(start, owner=None, parent=None, name_file=None)
    forsaken = FORSAKEN if start.spec.lifetime == "kernel" else 0.0
    return launch_message(there, {"unset": packed(start.unset), "forsaken": b"%g" % forsaken})


def _flat(fields: Mapping[bytes, bytes]) -> bytes:
    return wire.pack(*[part for pair in fields.items() for part in pair])


def _run_quietly(argv: Sequence[str]) -> None:
    """Run a command for what it does, if there is one; it may fail."""
    if argv:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=CLEANUP_LIMIT, check=False)
