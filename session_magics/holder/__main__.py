"""Start of a holder: ``python -I -S <this file>`` with a Launch message on standard input.

The process that is started answers on its standard output: "ok", or why not. It forks once, so that the holder is
neither a child nor a group member of whoever asked: an interrupt, a restart or a SIGKILL of a kernel and its group
pass it by.
"""

# ruff: noqa: E402 -- the package has to be put in place before anything of it is imported

from __future__ import annotations

import fcntl
import os
import sys
import time

# Other names of encodings take 28 KB of each holder, which knows UTF-8 and ASCII by their own.
sys.modules["encodings.aliases"].aliases.clear()
# The package without its __init__, whose typing, re and enum would double the memory of each holder.
_package = type(sys)("session_magics")
_package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
sys.modules["session_magics"] = _package

from session_magics.holder import statefiles
from session_magics.holder.child import SpawnError
from session_magics.holder.holder import Holder
from session_magics.holder.launch import Launch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from session_magics.holder.relay import Relay

LOCK_LIMIT = 1.0
"""Seconds to try for the lock, and between tries."""
LOCK_STEP = 0.002


def _read_all(fd: int) -> bytes:
    parts = []
    while data := os.read(fd, 1 << 20):
        parts.append(data)
    return b"".join(parts)


def _detach_streams() -> None:
    """Point the standard descriptors at nothing; whoever waits for the answer sees its end."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def _lock(fd: int) -> None:
    """Take the lock that says "alive"; raises BlockingIOError if another holder has it.

    Who reads the state takes it for microseconds, so one refusal says nothing.
    """
    deadline = time.monotonic() + LOCK_LIMIT
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise
            time.sleep(LOCK_STEP)


def main() -> None:
    """Become the holder of one session and serve until it is over."""
    launch = Launch.parse(_read_all(0))
    if launch.far.get(b"mode") == b"force":
        from session_magics.holder.relayforce import force

        force(launch)
    if os.fork():
        os._exit(0)
    umask = os.umask(0o077)
    alive, holder, failure = -1, None, ""
    try:
        os.chdir(launch.directory)
        alive = os.open("alive", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _lock(alive)
        holder = _made(launch, umask)
        holder.start()
    except BlockingIOError:
        _answer("another holder has this session")
        os._exit(1)
    except SpawnError as error:
        failure = str(error)
    except OSError as error:
        failure = f"{(error.strerror or str(error)).lower()}: {error.filename or 'session record'}"
    if holder is None or failure:
        _give_up(launch, holder, alive, failure)
        os._exit(1)
    _answer("ok")
    _detach_streams()
    holder.loop.run()
    holder.close()
    os._exit(0)


def _made(launch: Launch, umask: int) -> Holder | Relay:
    if launch.far:
        from session_magics.holder.relay import Relay  # for the sessions alone whose program runs elsewhere

        return Relay(launch)
    return Holder(launch, umask)


def _give_up(launch: Launch, holder: Holder | Relay | None, alive: int, failure: str) -> None:
    """Say why nothing runs; by the time it is heard it is recorded, and the session's lock is free."""
    if holder is not None and holder.terminal is not None:
        holder.terminal.kill()
        holder.terminal.close()
    if alive >= 0:
        statefiles.write_exit(launch.generation, "failed", failure)
        os.close(alive)
    _answer(failure)


def _answer(text: str) -> None:
    try:
        os.write(1, text.encode("utf-8", "surrogateescape"))
    except OSError:
        pass  # whoever asked is gone; the session is there all the same


if __name__ == "__main__":
    main()
