"""Directory, environment and umask that carry over from call to call, where only single commands can be run.

Each call restores what the one before left, runs the body and captures the outcome, all in one command at the place.
Other than in a live shell, what is in no environment is gone afterwards: plain variables, jobs, open files, traps,
limits; in bash, functions, aliases and options carry over if asked for.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Final, Protocol

from session_magics.errors import SandboxError, UsageMistake
from session_magics.model import Command
from session_magics.sandbox import Result
from session_magics.sandbox.capture import Damaged, Record, State
from session_magics.sandbox.farside import OUTER, PROBE_STATE, PUT, REMOVE, RUN, inner

SHELLS: Final = frozenset(("sh", "dash", "bash", "ash", "busybox-sh"))
CARRIED: Final = frozenset(("functions", "aliases", "options"))
# Bytes of body and state that are sent as arguments. Linux takes 128 KB in one, and ssh makes one of them all, with
# quotes that may quadruple it. Beyond that they go there as a file first, which costs a second command.
INLINE: Final = 16 * 1024
# Times that a call starts anew because another process had changed the state just before.
ATTEMPTS: Final = 50
# Beyond it no signal ends a program.
LAST_SIGNAL: Final = 64
NOT_FOUND, NOT_RUNNABLE = 127, 126
ALL_STATE: Final = ("directory", "environment")


class Executes(Protocol):
    """All that is needed of a sandbox."""

    def exec(self, command: Command, *, stdin: bytes | None = None, timeout: float | None = None) -> Result:
        """As in Sandbox."""


@dataclass(frozen=True)
class StatefulResult(Result):
    """What became of a command, and of the state."""

    cwd: str = ""
    """Where the next command will run; empty: where the place begins."""
    warnings: tuple[str, ...] = ()
    """What went wrong with the state, one line each. It changes neither status nor output."""
    lost: tuple[str, ...] = ()
    """What this command changed but could not be captured, such as after ``exec`` or a time-out; what was captured
    before stays."""


class StatefulSandbox:
    """Commands of one session, one after the other, over anything that has ``exec``.

    ``sh -c BODY`` is wrapped, for a program whose last path component is sh, bash, dash, ash or busybox-sh: the very
    shell asked for runs it. Every other command passes as it is, and neither sees the state nor changes it.

    ``state_dir`` is an absolute path at the place, made there (0700) by the first wrapped command. It must outlive
    the commands; several objects and processes may use it at once.
    """

    def __init__(self, sandbox: Executes, state_dir: str, *, carry: Collection[str] = ()) -> None:
        """Does nothing at the place. ``carry``: of functions, aliases, options what bash is to keep as well.

        Functions are code: they are evaluated by the next bash as they were printed by the one before.
        """
        if not state_dir.startswith("/") or "\0" in state_dir:
            raise UsageMistake(f"state directory {state_dir!r}: give an absolute path")
        if unknown := sorted(set(carry) - CARRIED):
            raise UsageMistake(f"{unknown[0]!r} cannot be carried over: known are {', '.join(sorted(CARRIED))}")
        self.sandbox, self.state_dir, self.carry = sandbox, state_dir.rstrip("/") or "/", frozenset(carry)
        self._lock = threading.Lock()
        self._state = State()
        self._token = ""  # of the state file that this object knows; empty: there is none
        self._umask = ""  # that commands have at the place; empty: not yet known
        self._left = ""  # of a call that was killed, and may have left its lock there

    @property
    def cwd(self) -> str:
        """Where the next command will run, as far as this object knows; empty: where the place begins."""
        return self._state.cwd

    def exec(self, command: Command, *, stdin: bytes | None = None, timeout: float | None = None) -> StatefulResult:
        """Run a command with the state of the session; a failing one is a result like any other."""
        if not (len(command.argv) == 3 and os.path.basename(command.argv[0]) in SHELLS and command.argv[1] == "-c"):
            return _result(self.sandbox.exec(command, stdin=stdin, timeout=timeout), self._state.cwd)
        with self._lock:
            return self._wrapped(command, stdin, timeout)

    def close(self) -> None:
        """Remove the state; may be repeated. A command after it begins with none."""
        with self._lock:
            self._state, self._token, self._left = State(), "", ""
            self.sandbox.exec(Command(("sh", "-c", REMOVE, "sh", self.state_dir)))

    def _wrapped(self, command: Command, stdin: bytes | None, timeout: float | None) -> StatefulResult:
        warnings: list[str] = []
        for _ in range(ATTEMPTS):
            token = secrets.token_hex(16)
            wrapped, words = self._call(command, token)
            result = self.sandbox.exec(wrapped, stdin=stdin, timeout=timeout)
            kind, data, stderr = cut(result.stderr, token)
            result = replace(result, stderr=stderr)
            if kind == "stale":
                self._reload(data, warnings)
                continue
            return self._finished(result, kind, data, token, words, warnings)
        raise SandboxError(self.state_dir, "other processes change the state all the time: use one directory for each")

    def _call(self, command: Command, token: str) -> tuple[Command, list[str]]:
        """The command that restores, runs and captures, and the words of its state."""
        words = self._state.words(command.env, command.cwd is not None)
        big = [word[1:].partition("=")[0] for word in words if word[0] == "@"]
        text, load, sent = inner(self.state_dir, self.carry, big), "", [command.argv[2], *words]
        data = b"".join(os.fsencode(word).replace(b"\\", b"\\\\").replace(b"\n", b"\\n") + b"\n" for word in sent)
        # Not every place takes bytes that are no text in an argument.
        if len(data) > INLINE or (not data.isascii() and any(not _is_text(word) for word in sent)):
            load, sent = f"load.{token}", []
            self._put(command.argv[0], load, data)
        shell = command.argv[0]
        argv = (shell, *(("-p",) if os.path.basename(shell) == "bash" else ()), "-c", OUTER, shell, self.state_dir)
        return replace(
            command, argv=(*argv, token, self._token, self._left, RUN, text, self._umask, load, *sent)
        ), words

    def _put(self, shell: str, name: str, data: bytes) -> None:
        put = self.sandbox.exec(Command((shell, "-c", PUT, shell, self.state_dir, name)), stdin=data)
        if put.code:
            why = os.fsdecode(put.stderr).strip().rpartition("\n")[2] or "not a directory of this user"
            raise SandboxError(self.state_dir, f"a command of {len(data)} bytes cannot be left there ({why})")

    def _reload(self, data: bytes, warnings: list[str]) -> None:
        """Take over what another process, or an object before this one, left there."""
        known = "what this object knows is used" if self._token else "the session begins anew"
        if not data:
            if self._token != "any":
                warnings.append(f"{self.state_dir}/state is gone: {known}")
            self._token = ""
            return
        try:
            record = Record.read(data)
            self._state, self._token = record.state(self.carry), record.token
        except Damaged as reason:
            warnings.append(f"{self.state_dir}/state is damaged ({reason}): {known}")
            self._token = "any"

    def _finished(
        self, result: Result, kind: str, data: bytes, token: str, words: list[str], warnings: list[str]
    ) -> StatefulResult:
        """Learn from a call that ran what it left, and say what could not be learned."""
        self._left = token if kind == "" else ""
        if kind == "garbled":
            data = self._fetch()
        lost: tuple[str, ...] = ALL_STATE
        try:
            record = Record.read(data) if kind in ("done", "garbled") else None
        except Damaged as reason:
            record = None
            warnings.append(f"{self.state_dir}/state cannot be read back ({reason})")
        if record is not None and record.token == token:
            self._state, self._token = record.state(self.carry), token
            self._umask = self._umask or ("" if any(word[0] == "u" for word in words) else record.begin.umask)
            lost = ALL_STATE if record.end is None else ()
            wanted = next((word[1:] for word in words if word[0] == "c"), record.begin.cwd)
            if record.begin.cwd != wanted:
                warnings.append(f"the directory {wanted} is gone or closed: the command ran in {record.begin.cwd}")
            if result.code > 128 and (record.end is None or record.end.code != result.code):
                signal = result.code - 128
                result = replace(result, code=-signal) if signal <= LAST_SIGNAL else result
        elif kind in ("bare", "failed"):
            warnings.append(f"{self.state_dir} cannot be written by this user: nothing is remembered")
        elif result.code in (NOT_FOUND, NOT_RUNNABLE) and not kind:
            lost = ()
        return _result(result, self._state.cwd, tuple(warnings), lost)

    def _fetch(self) -> bytes:
        return self.sandbox.exec(Command(("sh", "-c", PROBE_STATE, "sh", self.state_dir))).stdout


def cut(stderr: bytes, token: str) -> tuple[str, bytes, bytes]:
    """What the far side told at the end of ``stderr``: its kind, the state file, and the error output without it.

    The file is there twice, as a job left behind may have written in between: if the two differ the kind is
    "garbled". An empty kind: nothing was told.
    """
    mark = f"{token}:".encode()
    head, found, rest = stderr.partition(mark)
    if not found:
        return "", b"", stderr
    kind, _, rest = rest.partition(b"\n")
    data, ended, tail = rest.rpartition(mark + b"end\n")
    half, odd = divmod(len(data), 2)
    if not ended or odd or data[:half] != data[half:]:
        return "garbled", b"", head + tail
    return kind.decode("ascii", "replace"), data[:half], head + tail


def _is_text(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _result(result: Result, cwd: str, warnings: tuple[str, ...] = (), lost: tuple[str, ...] = ()) -> StatefulResult:
    known = {each.name: getattr(result, each.name) for each in fields(Result)}
    return StatefulResult(**known, cwd=cwd, warnings=warnings, lost=lost)
