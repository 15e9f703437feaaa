"""A fresh shell of the same kind, asked in place of one that is busy or not there yet."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time

QUIET_OPTIONS = {"bash": ("--norc", "--noprofile"), "zsh": ("-f",), "fish": ("--no-config",)}
"""Start-up files take their time, and may do anything."""
PRELUDE = {
    "bash": '__sm_fifo=/dev/fd/{fd}; __sm_w() {{ builtin printf "$@"; }}\n',
    "fish": "set -g __sm_fifo /dev/fd/{fd}\n",
}
READ_SIZE = 65536


def asked_aside(program: str, text: str, cwd: str, deadline: float, path: str | None) -> list[bytes]:
    """The records that a fresh shell tells before the deadline (of ``time.monotonic``); it is gone then.

    ``path``: its PATH; None: ours.
    """
    kind = os.path.basename(program)
    reading, writing = os.pipe()
    try:
        prelude = PRELUDE.get(kind, "__sm_fifo=/dev/fd/{fd}\n").format(fd=writing)
        shell = subprocess.Popen(
            [program, *QUIET_OPTIONS.get(kind, ()), "-c", prelude + text],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            cwd=cwd, env=None if path is None else {**os.environ, "PATH": path},
            pass_fds=(writing,), start_new_session=True,
        )  # fmt: skip
    except OSError:
        os.close(reading)
        return []
    finally:
        os.close(writing)
    try:
        data = _read(reading, deadline)
    finally:
        os.close(reading)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
    return [piece.partition(b"\t0\t")[2] for piece in data.split(b"\0") if piece.startswith(b"\001G")]


def _read(reading: int, deadline: float) -> bytes:
    data = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(reading, selectors.EVENT_READ)
        while selector.select(max(0.0, deadline - time.monotonic())):
            piece = os.read(reading, READ_SIZE)
            if not piece:
                break
            data += piece
    return bytes(data)
