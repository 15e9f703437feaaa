"""What a holder writes about its session for others to read: the run record and the exit record."""

from __future__ import annotations

import os
import time

from session_magics.holder import processes, wire
from session_magics.holder.record import format_exit, to_json

RUN_BYTES = 1024
"""Size of ``run.json``, filled up with spaces, so that a full disk still has room for the next one."""


def run_bytes(
    holder: int, pid: int, generation: int, since: float, size: tuple[int, int], more: dict[str, object]
) -> bytes:
    """The content of ``run.json``; a ``holder`` or ``pid`` of 0 stands for none, ``more`` is as in ``write_run``."""
    record = {
        "schema": 1, "boot": processes.boot_id(), "host": os.uname().nodename, "holder": holder,
        "holder_tick": processes.start_tick(holder) if holder else 0, "pid": pid,
        "tick": processes.start_tick(pid) if pid else 0, "generation": generation, "since": since,
        "protocol": wire.VERSION, "size": list(size), "pid_namespace": processes.pid_namespace(),
    }  # fmt: skip
    record.update(more)
    return to_json(record).ljust(RUN_BYTES)


def write_run(
    pid: int, generation: int, since: float, size: tuple[int, int], more: dict[str, object], *, sync: bool = True
) -> None:
    """Record which generation runs as which process; OSError if that fails.

    Without ``sync`` the disk is not waited for, which may take a second while others write: whoever drags a window
    waits for the answer, and a session does not outlive a power cut.

    ``more`` is what is known of its end: ``code``, ``signal`` and ``ended`` (Unix time), with ``until`` if it starts
    again then, or ``gave_up``, the number of restarts after which it does not; ``lost``: why no end will be recorded.
    """
    data = run_bytes(os.getpid(), pid, generation, since, size, more)
    try:
        _write("run.json.new", data, os.O_CREAT | os.O_TRUNC, sync=sync)
        os.rename("run.json.new", "run.json")
    except OSError as error:
        _unlink("run.json.new")
        try:
            _write("run.json", data, 0, sync=sync)  # over the old one: the only place that a full disk has left
        except FileNotFoundError:  # there is none at the first start
            raise error from None


def write_exit(generation: int, kind: str, value: int | str) -> None:
    """Record how a generation ended. Never raises: what cannot be recorded is read as unknown."""
    try:
        _write("exit", format_exit(generation, kind, value, time.time()), os.O_CREAT)
    except OSError:
        pass


def copy_exit(record: bytes) -> None:
    """Take over an exit record that was written elsewhere. Never raises."""
    try:
        _write("exit", record, os.O_CREAT)
    except OSError:
        pass


def erase(directory: bytes, name_file: bytes) -> None:
    """Remove all records and the claim of the name, as far as they are there; the directory is the present one."""
    if name_file:
        _unlink(name_file)
    try:
        for name in os.listdir("."):
            _unlink(name)
        os.rmdir(directory)
    except OSError:
        pass  # removed by somebody else meanwhile


def _write(name: str, data: bytes, flags: int, *, sync: bool = True) -> None:
    fd = os.open(name, os.O_WRONLY | os.O_CLOEXEC | flags, 0o600)
    try:
        if os.pwrite(fd, data, 0) < len(data):
            raise OSError("the disk is full")
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def _unlink(name: str | bytes) -> None:
    try:
        os.unlink(name)
    except OSError:
        pass
