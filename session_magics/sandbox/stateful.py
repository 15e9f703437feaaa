"""Directory, environment and umask that carry over from call to call, where only single commands can be run.

Each call restores what the one before left, runs the body and captures the outcome, all in one command at the place.
Other than in a live shell, what is in no environment is gone afterwards: plain variables, jobs, open files, traps,
limits; in bash, functions, aliases and options carry over if asked for.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass, fields, replace
from typing import Final, Protocol

from session_magics.errors import SandboxError, UsageMistake
from session_magics.model import Command
from session_magics.sandbox import Result
from session_magics.sandbox.capture import Change, Damaged, Moment, State, lines
from session_magics.sandbox.farside import FETCH, PUBLISH, PUT, REMOVE, RUN, WORDS, script

SHELLS: Final = frozenset(("sh", "dash", "bash", "ash", "busybox-sh"))
CARRIED: Final = frozenset(("functions", "aliases", "options"))
# Bytes of body and state that are sent as an argument and a variable. Linux takes 128 KB in one, and ssh makes one line
# of all, with quotes that may quadruple it. Beyond that they go there as a file first, which costs a second command.
INLINE: Final = 16 * 1024
# Times that a call starts anew because another process had changed the state just before.
ATTEMPTS: Final = 50
NOT_FOUND, NOT_RUNNABLE = 127, 126
# What PUBLISH says if the state file is not the expected one, and the token that it takes for every one.
CHANGED_BY_ANOTHER, ANY = 3, "any"
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
        self._id = secrets.token_hex(8)
        self._state = State()
        self._token = ""  # of the state file that this object knows; empty: there is none; ANY: a damaged one

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
            self._state, self._token = State(), ""
            self._far(REMOVE)

    def _wrapped(self, command: Command, stdin: bytes | None, timeout: float | None) -> StatefulResult:
        warnings: list[str] = []
        for _ in range(ATTEMPTS):
            token = secrets.token_hex(16)
            result = self.sandbox.exec(self._call(command, token), stdin=stdin, timeout=timeout)
            reports, stderr = taken(result.stderr, token)
            result = replace(result, stderr=stderr)
            if ("stale", b"") not in reports:
                return self._finished(command, result, token, reports, warnings)
            self._reload(warnings)
        raise SandboxError(self.state_dir, "other processes change the state all the time: use one directory for each")

    def _call(self, command: Command, token: str) -> Command:
        """The command that restores, runs and captures."""
        shell, _, body = command.argv
        words = self._state.words_for(command.env, command.cwd is not None)
        big = [word[1:].partition("=")[0] for word in words if word[0] == "@"]
        text, load, sent = script(self.state_dir, f"call.{self._id}", self.carry, big), "", [body]
        env = dict(command.env)
        if _sendable([body, *words]):
            env[WORDS] = _fields_of_a_shell(words).decode()
        else:
            data, load, sent = _fields_of_a_shell([body, *words]), f"load.{token}", []
            put = self._far(PUT, load, stdin=data, shell=shell)
            if put.code:
                why = os.fsdecode(put.stderr).strip().rpartition("\n")[2] or "not a directory of this user"
                raise SandboxError(self.state_dir, f"a command of {len(data)} bytes cannot be left there ({why})")
        return replace(command, argv=(shell, "-c", RUN, shell, text, self._token, token, load, *sent), env=env)

    def _finished(
        self, command: Command, result: Result, token: str, reports: list[tuple[str, bytes]], warnings: list[str]
    ) -> StatefulResult:
        """Learn from a call that ran what it left, and say what could not be learned."""
        lost: tuple[str, ...] = ALL_STATE
        begins = [data for kind, data in reports if kind == "begin"]
        if ("bare", b"") in reports:
            warnings.append(f"{self.state_dir} cannot be used by this user: nothing is remembered")
        elif begins:
            try:
                begin, ends = Moment.before(begins[0]), self._ends(result, token, reports)
                self._check_directory(command, begin, warnings)
                if ends:
                    self._publish(Change.between(self._state, begin, ends, self.carry), warnings)
                    lost = ()
            except Damaged as reason:
                warnings.append(f"what the command left cannot be read: {reason}")
        elif result.code in (NOT_FOUND, NOT_RUNNABLE):
            lost = ()  # there is no such shell
        return _result(result, self._state.cwd, tuple(warnings), lost)

    def _ends(self, result: Result, token: str, reports: list[tuple[str, bytes]]) -> list[Moment]:
        """The captured ends: none after a time-out, and where the body replaced the shell or was killed with it."""
        halves = [(data[: len(data) // 2], data[len(data) // 2 :]) for kind, data in reports if kind == "end"]
        if not halves or any(one != other for one, other in halves):
            if result.timed_out:
                return []
            filed, _ = taken(self._far(FETCH, f"call.{self._id}").stdout, token)
            return [Moment.after(data) for kind, data in filed if kind == "end"]
        return [Moment.after(data) for data, _ in halves]

    def _check_directory(self, command: Command, begin: Moment, warnings: list[str]) -> None:
        wanted = self._state.cwd
        if wanted and command.cwd is None and begin.cwd != wanted:
            warnings.append(f"the directory {wanted} is gone or closed: the command ran in {begin.cwd}")

    def _publish(self, change: Change, warnings: list[str]) -> None:
        """Make the state after ``change`` that of the session, upon whatever other processes made of it meanwhile."""
        for _ in range(ATTEMPTS):
            state = self._state.changed(change)
            if state == self._state and self._token != ANY:
                return
            token = secrets.token_hex(16)
            data = state.file(token)
            done = self._far(PUBLISH, self._token, stdin=data)
            if done.code != CHANGED_BY_ANOTHER:
                self._state = state
                if done.code:
                    warnings.append(f"{self.state_dir}/state cannot be written: only this object remembers")
                else:
                    self._token = token
                return
            self._reload(warnings)
        warnings.append(f"{self.state_dir}/state is changed by others all the time: this change is not in it")

    def _reload(self, warnings: list[str]) -> None:
        """Take over what another process, or an object before this one, left there."""
        data = self._far(FETCH, "state").stdout
        known = "what this object knows is used" if self._token else "the session begins anew"
        try:
            if data:
                self._state, self._token = State.of_file(data)
            elif self._token:
                warnings.append(f"{self.state_dir}/state is gone: {known}")
                self._token = ""
            else:
                raise Damaged("it is empty or not a file of this user")
        except Damaged as reason:
            warnings.append(f"{self.state_dir}/state is damaged ({reason}): {known}")
            self._token = ANY

    def _far(self, text: str, *arguments: str, stdin: bytes | None = None, shell: str = "sh") -> Result:
        """Run one of the other scripts for the state directory."""
        return self.sandbox.exec(Command((shell, "-c", text, shell, self.state_dir, *arguments)), stdin=stdin)


def taken(output: bytes, token: str) -> tuple[list[tuple[str, bytes]], bytes]:
    """The reports in an output, each with its kind, and the output without them."""
    reports: list[tuple[str, bytes]] = []
    rest = []
    mark = token.encode() + b":"
    while True:
        before, _, output = output.partition(mark)
        rest.append(before)
        kind, _, after = output.partition(b"\n")
        data, ended, after = after.partition(mark + b".\n")
        if not ended:
            return reports, b"".join(rest)
        reports.append((kind.decode("ascii", "replace"), data))
        output = after


def _fields_of_a_shell(words: Iterable[str]) -> bytes:
    """Lines for ``for word in $lines``: a first character keeps one that is empty."""
    return lines("." + word for word in words)


def _sendable(words: Iterable[str]) -> bool:
    """Whether they can be an argument and a variable at every place: not too long, and text."""
    try:
        return sum(len(word.encode()) for word in words) <= INLINE
    except UnicodeEncodeError:
        return False


def _result(result: Result, cwd: str, warnings: tuple[str, ...] = (), lost: tuple[str, ...] = ()) -> StatefulResult:
    known = {each.name: getattr(result, each.name) for each in fields(Result)}
    return StatefulResult(**known, cwd=cwd, warnings=warnings, lost=lost)
