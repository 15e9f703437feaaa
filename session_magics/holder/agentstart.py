"""Starting a session's holder at a far place, so that it outlives the connection."""

from __future__ import annotations

import binascii
import os
import select
import shutil
import sys
import time

from session_magics.holder import launch, wire
from session_magics.holder.agentforce import held
from session_magics.holder.logfile import segment_name
from session_magics.holder.record import blank_record
from session_magics.holder.stopping import COOKIE
from session_magics.holder.trees import HOLDER_MARK, RUN

START_LIMIT = 15.0
"""Seconds for a holder to come up; it takes about 0.04, and ten times that where its code was never run before."""
POOR_TERMS = (b"", b"dumb", b"linux", b"unknown", b"xterm", b"xterm-color")
"""Fewer colours than the views have: a connection without a terminal says nothing of what looks at the output."""


KEPT = 7 * 86400.0
"""Seconds for which the directory stays of a session that has ended while nobody was there to hear of it."""


class StartError(Exception):
    """Nothing was started; the text says why."""


def directory_for(base: str, id: bytes, log_end: int) -> bytes:
    """A fresh directory for one start of a session, whose log goes on at an offset."""
    _sweep(base)
    name = b"%s.%s" % (id, binascii.hexlify(os.urandom(6)))
    directory = os.path.join(os.fsencode(base), name)
    os.mkdir(directory, 0o700)
    _new(os.path.join(directory, b"exit"), blank_record())
    if log_end:
        _new(os.path.join(directory, segment_name(log_end).encode()), b"")
    return directory


def _sweep(base: str) -> None:
    """Remove what nobody came back for, long after its end."""
    for name in os.listdir(base):
        place = os.path.join(base, name)
        try:
            old = not name.startswith("code-") and time.time() - os.stat(place).st_mtime > KEPT
        except OSError:
            continue
        if old and not held(place):
            shutil.rmtree(place, ignore_errors=True)


def _new(path: bytes, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)


def start_holder(directory: bytes, id: bytes, message: bytes) -> None:
    """Start the holder that a launch message describes; raises StartError."""
    flat = wire.unpack(message)
    fields = wire.pairs(flat[:-1])
    env = program_environment(wire.pairs(wire.unpack(fields[b"env"])), wire.unpack(fields.pop(b"unset")), id)
    fields[b"directory"] = directory
    fields[b"cwd"] = os.path.join(os.getcwdb(), os.path.expanduser(fields[b"cwd"])) if fields[b"cwd"] else os.getcwdb()
    fields[b"env"] = wire.pack(*[part for pair in env.items() for part in pair])
    answer = _launched(launch.encode(**{name.decode(): value for name, value in fields.items()}), id)
    if answer != b"ok":
        raise StartError(answer.decode("utf-8", "surrogateescape") or "the holder there ended at once")


def program_environment(added: dict[bytes, bytes], unset: list[bytes], id: bytes) -> dict[bytes, bytes]:
    """What programs have there, changed as asked, and marked as this session's."""
    env = {name: value for name, value in os.environb.items() if name not in (HOLDER_MARK.rstrip(b"="), RUN.encode())}
    if env.get(b"TERM", b"") in POOR_TERMS:
        env[b"TERM"] = b"xterm-256color"
    env.update(added)
    for name in unset:
        env.pop(name, None)
    env[COOKIE] = id
    return env


def _launched(message: bytes, id: bytes) -> bytes:
    """The answer of a holder that was started with that message."""
    env = {name: value for name, value in os.environb.items() if name not in (COOKIE, RUN.encode())}
    name, _, _ = HOLDER_MARK.partition(b"=")
    env[name] = id
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
    stdin, to_holder = os.pipe()
    answer, stdout = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setsid()
            os.dup2(stdin, 0)
            os.dup2(stdout, 1)
            os.chdir("/")
            os.execve(sys.executable, [sys.executable, "-I", "-S", program], env)
        finally:
            os._exit(127)
    os.close(stdin)
    os.close(stdout)
    try:
        while message:
            message = message[os.write(to_holder, message) :]
    except BrokenPipeError:
        pass  # it ended at once, and the answer tells
    os.close(to_holder)
    heard = b""
    while select.select([answer], [], [], START_LIMIT)[0]:
        piece = os.read(answer, 4096)
        if not piece:
            break
        heard += piece
    else:
        heard = b"no holder came up there"
    os.close(answer)
    os.waitpid(pid, 0)
    return heard
