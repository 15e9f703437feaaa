"""Ending at a far place what a session has left there."""

from __future__ import annotations

import _socket
import fcntl
import os
import shutil
import time

from session_magics.holder import wire
from session_magics.holder.agentfiles import json_of
from session_magics.holder.stop import NOBODY, end_tree
from session_magics.holder.stopping import COOKIE

GOING_LIMIT = 3.0
"""Seconds for a holder that has hung up to be gone; it takes about a millisecond."""
GOING_STEP = 0.001


def force(base: str, id: bytes) -> tuple[int, ...]:
    """End the processes of a session, and remove what is on disk of it once its holder is gone too."""
    ours = [one for one in os.listdir(base) if one.startswith(os.fsdecode(id) + ".")]
    survivors: set[int] = set()
    for name in ours:
        os.chdir(os.path.join(base, name))
        if held():  # a shell that is killed within a cell is started again, unless its holder knows better
            ask_to_stop()
        holder = json_of("run.json").get("holder") if held() else 0
        survivors.update(end_tree(holder if isinstance(holder, int) and holder else NOBODY, COOKIE + b"=" + id))
        if holder:
            until_gone()
        if not held():
            os.chdir("/")
            shutil.rmtree(os.path.join(base, name), ignore_errors=True)
    if not ours:
        survivors.update(end_tree(NOBODY, COOKIE + b"=" + id))
    return tuple(sorted(survivors))


def ask_to_stop() -> None:
    """Have the holder of the working directory end all by force and go; one that hangs is given up soon."""
    deadline = time.monotonic() + GOING_LIMIT
    holder = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        holder.settimeout(GOING_LIMIT)
        holder.connect("sock")
        holder.send(wire.frame(wire.STOP, b"1", b"0", b"1"))
        while holder.recv(1 << 16) and time.monotonic() < deadline:
            pass
    except OSError:
        return
    finally:
        holder.close()
    until_gone()


def end_left(directory: bytes) -> tuple[int, ...]:
    """End what carries the cookie of the session whose directory that is."""
    return end_tree(NOBODY, COOKIE + b"=" + os.path.basename(directory).partition(b".")[0])


def until_gone() -> None:
    """Wait for the end of the holder of the working directory, for a while."""
    deadline = time.monotonic() + GOING_LIMIT
    while held() and time.monotonic() < deadline:
        time.sleep(GOING_STEP)


def held(directory: str = ".") -> bool:
    """Whether a holder lives in that directory."""
    try:
        fd = os.open(os.path.join(directory, "alive"), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
