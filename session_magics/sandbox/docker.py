"""Commands in a container, which exists or is made of an image."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import secrets
import signal
import sys
import time
from collections.abc import Iterable
from typing import Any

from session_magics.errors import SandboxError, UsageMistake
from session_magics.model import Command
from session_magics.programs import check_command
from session_magics.sandbox import Probe, Process, Result, dockerexec
from session_magics.sandbox.children import Beginning
from session_magics.sandbox.dockerengine import Engine, Wish
from session_magics.sandbox.dockerexec import BEAT
from session_magics.sandbox.dockerscripts import COOKIE, KILL, KILL_OR_USERS, PLAIN, PROBE, RUN
from session_magics.sandbox.dockerwire import STDERR, STDOUT, EngineFailure, Line, Streams, attach
from session_magics.sandbox.fence import lexical
from session_magics.sandbox.pipes import OUTPUT_CAP, Programs

BEGINNING = 30.0
"""Seconds for a program to be started there: a tenth of one is usual, and an engine under load needs some."""
LAST_WORDS = 1.0
"""Seconds for the output of what was killed to arrive."""
KILLING = 5.0
"""Seconds for the look at all processes there that ends when nothing is left."""
SHELL = "/bin/sh"
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
CONTAINER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""A name or id as the engine has them; with anything else its address would mean something else."""


class DockerSandbox:
    """Runs commands in a container: an existing one by name or id, or one made for this object of an ``image``.

    ``root``: default is the image's working directory. Of the container that is made: ``mounts`` are ``A:B`` or
    ``A:B:ro``, ``memory`` is in bytes or like ``512m``, swap included; it has the label ``session-magics`` with the
    session's name, and is removed by ``close`` or the command of ``cleanup``. ``user`` is also whom commands run as in
    one that exists. ``output_cap`` is for each stream of a command, in bytes. ``client`` is one of the SDK (default: as
    DOCKER_HOST has it), which is the caller's to close.

    The image needs a POSIX ``/bin/sh``, and ``grep`` for a kill that finds all that has left its group and parent.
    """

    def __init__(
        self,
        image: str | None = None,
        *,
        container: str | None = None,
        root: str | None = None,
        session: str | None = None,
        mounts: Iterable[str] = (),
        user: str | None = None,
        network: str | None = None,
        memory: str | int | None = None,
        cpus: float | None = None,
        output_cap: int = OUTPUT_CAP,
        client: Any = None,
    ) -> None:
        mounts = tuple(mounts)
        if (image is None) == (container is None):
            raise UsageMistake("a place of docker is an image or a container: give one of them")
        if container is not None and not CONTAINER.fullmatch(container):
            raise UsageMistake(f"{container!r} is no name of a container: docker ps lists those that run")
        if container is not None and (mounts or network is not None or memory is not None or cpus is not None):
            raise UsageMistake("mounts, network, memory and cpus are for a container that is made: give an image")
        if root is not None and not root.startswith("/"):
            raise UsageMistake(f"the root of a container's commands is an absolute path there, not {root!r}")
        self.place = f"docker:{image}" if image is not None else f"container:{container}"
        self._token, self._root, self._user, self._cap = secrets.token_hex(8), root, user or "", output_cap
        self._name = f"session-magics-{self._token}" if image is not None else ""
        wish = Wish(image, container, self._name, session or "", mounts, self._user, network, memory, cpus)
        self._engine = Engine(self.place, wish, client)
        self._programs = Programs(self.place)
        self._privileged = True

    @functools.cached_property
    def root(self) -> str:
        """See Sandbox; where it was not given, the container is made or looked at to know it."""
        return self._root or self._engine.container()[1]

    def exec(self, command: Command, *, stdin: bytes | None = None, timeout: float | None = None) -> Result:
        """See Sandbox. ``timeout`` counts from the program's start."""
        began = time.monotonic()
        mark, cookie = secrets.token_hex(16), self._cookie()
        words = self._words(RUN, mark, command)
        container = self._engine.container()[0]
        exec_id = self._engine.create(
            container, words, stdin=stdin is not None, user=self._user, environment=_added(command, cookie)
        )
        with self._engine.errors():
            line = attach(self._engine.host, exec_id)
        with contextlib.closing(line):
            call = _Call(self, line, mark, cookie, self._cap)
            call.run(stdin, timeout)
        code = call.result_code(container, exec_id)
        out, err = call.kept[STDOUT], call.kept[STDERR]
        lasted = time.monotonic() - began
        return Result(code, out.data(), err.data(), lasted, call.timed_out, out.dropped + err.dropped)

    def start_process(self, command: Command) -> Process:
        """See Sandbox."""
        mark, cookie = secrets.token_hex(16), self._cookie()
        words = self._words(RUN, mark, command)
        if command.cwd:
            self.exec(Command((SHELL, "-c", ":"), command.cwd))  # is a UsageMistake for a directory that is none
        argv = self._client("exec", f"--user={self._user}", f"--mark={mark[:16]}.{mark[16:]}", "--", *words)
        env = {**os.environ, dockerexec.ADDED: json.dumps(_added(command, cookie))}
        inner = self._programs.start(argv, env=env, on_kill=functools.partial(self.kill, cookie))
        return DockerProcess(self.place, inner)

    def wrap(self, command: Command, *, terminal: bool = False) -> Command:
        """See Sandbox."""
        options = [f"--user={self._user}", *(["--terminal"] if terminal else [])]
        argv = self._client("exec", *options, "--", *self._words(PLAIN, "", command))
        return Command(argv, env={dockerexec.ADDED: json.dumps(_added(command, None))})

    def probe(self) -> Probe:
        """See Sandbox."""
        return self._probed

    @functools.cached_property
    def _probed(self) -> Probe:
        lines = self.exec(Command((SHELL, "-c", PROBE))).stdout.decode(errors="replace").splitlines()
        if len(lines) < 4:
            raise SandboxError(self.place, f"{SHELL} there does not do what a POSIX shell does")
        shells = {path.rpartition("/")[2]: path for path in lines[4:] if path.startswith("/")}
        return Probe(lines[0], lines[1], lines[2], lines[3] or None, {**shells, "sh": shells.get("sh", SHELL)})

    def cleanup(self) -> tuple[str, ...]:
        """See Sandbox."""
        return self._client("remove", container=self._name) if self._name else ()

    def let_go(self) -> None:
        """See Sandbox."""
        self._engine.hang_up()

    def close(self) -> None:
        """See Sandbox. In a container that exists, that is all that was started through this object."""
        try:
            if self._engine.known:
                with contextlib.suppress(*[SandboxError] if self._name else []):  # a container of ours goes anyway
                    self._programs.close()
                if not self._name:
                    self.kill(self._token)
        finally:
            self._engine.remove()

    def check(self) -> None:
        """Raise SandboxError if nothing can be expected of the container."""
        if wrong := self._engine.trouble():
            raise SandboxError(self.place, wrong)

    def outcome(self, container: str, exec_id: str, streams: Streams) -> int:
        """The status of a program whose streams are over; UsageMistake if its directory is none to run in."""
        with self._engine.errors():
            try:
                return dockerexec.outcome(self._engine.host, container, exec_id, streams)
            except dockerexec.Refused as refusal:
                raise UsageMistake(f"{self.place}: {refusal}") from None

    def kill(self, cookie: str, pid: str = "") -> None:
        """Kill what carries a cookie, or one that begins so, and what belongs to a pid; harmless if it is gone."""
        with self._engine.errors():
            if self._engine.ended():
                return
            if not (self._privileged and self._kill_privileged(cookie, pid)):
                self._kill_by_user(cookie, pid)

    def _kill_privileged(self, cookie: str, pid: str) -> bool:
        """With all rights, as a program may have changed its user; False if the engine may not give them."""
        try:
            self._kill(cookie, pid, user="0", privileged=True)
        except EngineFailure:
            self._privileged = False
        return self._privileged

    def _kill_by_user(self, cookie: str, pid: str) -> None:
        """Each user's processes by that user, as only those may read their variables.

        Root comes last: when the first program has ended, but others have its streams, the engine is slow for seconds.
        """
        told = self._script(KILL_OR_USERS, cookie, pid, user="0").split()
        if told[:1] != ["users"]:
            self._complain(told)
            return
        for user in told[1:]:
            self._kill(cookie, "", user=user)
        self._kill(cookie, pid, user="0")

    def _kill(self, cookie: str, pid: str, **options: Any) -> None:
        self._complain(self._script(KILL, cookie, pid, **options).split())

    def _complain(self, left: list[str]) -> None:
        if left:
            raise SandboxError(self.place, f"these processes there still run: {' '.join(left)}")

    def _script(self, script: str, *words: str, **options: Any) -> str:
        """What a script of ours prints there; EngineFailure if it cannot be run, or does not end in time."""
        container, host = self._engine.container()[0], self._engine.host
        exec_id = self._engine.create(container, [SHELL, "-c", script, "session-magics", *words], **options)
        output, deadline = b"", time.monotonic() + KILLING
        with contextlib.closing(attach(host, exec_id)) as line:
            while (pieces := line.step(deadline - time.monotonic())[0]) is not None:
                output += b"".join(data for _, data in pieces)
                if time.monotonic() >= deadline:
                    raise EngineFailure("what runs there could not be killed in time")
        code, text = dockerexec.last_code(host, exec_id), output.decode(errors="replace")
        if code:
            raise EngineFailure(text or f"no program can be run there (status {code})")
        return text

    def _words(self, script: str, mark: str, command: Command) -> list[str]:
        check_command(command)
        if self._root is not None:
            lexical(self._root, command.cwd)  # before a container is made
        root = self.root
        removed = [name for name, value in command.env.items() if value is None and VARIABLE.fullmatch(name)]
        directory = lexical(root, command.cwd)
        half = len(mark) // 2
        return [
            SHELL,
            "-c",
            script,
            "session-magics",
            mark[:half],
            mark[half:],
            root,
            directory,
            " ".join(removed),
            *command.argv,
        ]

    def _client(self, verb: str, *words: str, container: str = "") -> tuple[str, ...]:
        """Our own client as a command. As a file, since it needs nothing of the package."""
        target = container or self._engine.container()[0]
        return (sys.executable, "-I", dockerexec.__file__, verb, self._engine.host, target, *words)

    def _cookie(self) -> str:
        return f"{self._token}.{secrets.token_hex(8)}"


class _Call:
    """One ``exec`` under way."""

    def __init__(self, sandbox: DockerSandbox, line: Line, mark: str, cookie: str, cap: int) -> None:
        self._sandbox, self._line, self._cookie = sandbox, line, cookie
        self._streams = Streams(mark)
        self.kept = {STDOUT: Beginning(cap), STDERR: Beginning(cap)}
        self.timed_out = False

    def run(self, stdin: bytes | None, timeout: float | None) -> None:
        """Carry its streams until it ends, or its time does."""
        streams, line = self._streams, self._line
        if stdin:
            line.send(stdin)
        if stdin is not None:
            line.end()
        try:
            self._carry(timeout)
        except SandboxError:
            raise  # nothing there can be reached
        except BaseException:
            with contextlib.suppress(SandboxError):
                self._sandbox.kill(self._cookie, streams.pid)
            raise

    def _carry(self, timeout: float | None) -> None:
        now = time.monotonic()
        beat, begin, deadline = now + BEAT, now + BEGINNING, None if timeout is None else float("inf")
        while not self._streams.over:
            if timeout is not None and deadline == float("inf") and self._streams.begun:
                deadline = time.monotonic() + timeout
            pieces, _ = self._line.step(min(beat, deadline or beat) - time.monotonic())
            if pieces is None:
                return
            for stream, data in pieces:
                self.kept[stream].take(self._streams.feed(stream, data))
            now = time.monotonic()
            if deadline is not None and now >= deadline and not self._streams.over:
                if self.timed_out:
                    return
                self.timed_out = True
                self._sandbox.kill(self._cookie, self._streams.pid)
                deadline = time.monotonic() + LAST_WORDS
            elif now >= beat:
                beat = now + BEAT
                self._sandbox.check()
                if not self._streams.begun and now >= begin:
                    raise SandboxError(self._sandbox.place, f"no program was started within {BEGINNING:g} s")

    def result_code(self, container: str, exec_id: str) -> int:
        """The program's status; UsageMistake if its directory is none to run in."""
        if self.timed_out:
            return -signal.SIGKILL if self._streams.code is None else self._streams.code
        code = self._sandbox.outcome(container, exec_id, self._streams)
        if not self._streams.begun:
            self.kept[STDERR].take(self._streams.before)  # why it cannot be run
        return code


class DockerProcess:
    """A live program; see ``Process``. Its client tells where docker itself failed, which is then raised."""

    def __init__(self, place: str, inner: Process) -> None:
        self._place, self._inner = place, inner
        self.stdin, self.stdout = inner.stdin, inner.stdout
        self.stderr, self.kill = inner.stderr, inner.kill

    def poll(self) -> int | None:
        """See Process; raises SandboxError if the container or its engine went away."""
        code = self._inner.poll()
        return None if code is None else self._checked(code)

    def wait(self, timeout: float | None = None) -> int:
        """See Process; raises SandboxError if the container or its engine went away."""
        return self._checked(self._inner.wait(timeout))

    def _checked(self, code: int) -> int:
        last = self._inner.stderr().rstrip(b"\n").rpartition(b"\n")[2]
        if code == dockerexec.FAILED and last.startswith(dockerexec.FAILURE):
            raise SandboxError(self._place, last.removeprefix(dockerexec.FAILURE).decode(errors="replace"))
        return code


def _added(command: Command, cookie: str | None) -> list[str]:
    """The variables that a program gets beside those of the container."""
    added = [f"{name}={value}" for name, value in command.env.items() if value is not None]
    return added if cookie is None else [*added, f"{COOKIE}={cookie}"]
