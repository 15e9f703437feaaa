"""Another host as a sandbox, reached through the system's OpenSSH client: its configuration, agent and jump hosts."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import secrets
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from session_magics.errors import SandboxError, UsageMistake
from session_magics.model import Command
from session_magics.programs import check_command
from session_magics.sandbox import Probe, Process, Result, quietpipe, sshscripts
from session_magics.sandbox.children import Beginning, Child, Pump
from session_magics.sandbox.fence import lexical
from session_magics.sandbox.pipes import OUTPUT_CAP
from session_magics.sandbox.quoting import login_line
from session_magics.sandbox.sshconnection import CLOSE, READY, Connection, client, explained
from session_magics.sandbox.sshruns import KILLED, FarProcess, Framed, Outcome, greeting

LONGEST_LINE = 100 * 1024
"""Bytes of a command line that a host takes for sure: Linux has 128 KiB for one word."""

_PROBE = """\
uname -s; printf '%s\\n' "$HOME"; id -un
for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python3.9 /usr/bin/python3; do
  found=$(command -v "$name") || continue
  found=$("$found" -I -S -c 'import sys; print(sys.executable if sys.version_info >= (3, 9) else "")' 2>/dev/null)
  [ -n "$found" ] && break
done
printf '%s\\n' "$found"
for name in bash zsh fish dash sh; do found=$(command -v "$name") && printf '%s=%s\\n' "$name" "$found"; done
exit 0
"""
_KEEP = """\
umask 077; folder=$(mktemp -d "${TMPDIR:-/tmp}/smXXXXXX") && cat > "$folder/start" && printf '%s/start' "$folder"
"""
_REMOVE = 'for file; do rm -f "$file"; rmdir "${file%/*}" 2>/dev/null; done; exit 0'


class SSHSandbox:
    """Runs commands on a host as ``ssh HOST`` reaches it; only with keys or an agent, as no password can be asked for.

    ``config``: a file in place of the user's configuration. ``options``: as behind ``ssh -o``, such as ``Port=2222``.
    Commands run below ``root``; without one anywhere, and where the login begins unless they say.

    All commands share one connection, which belongs to this object; what ``wrap`` returns makes one of its own, so that
    a live session loses nothing with it. Should the connection be lost, what runs over it is killed there.
    """

    def __init__(
        self, host: str, *, config: Path | None = None, options: Sequence[str] = (), root: str | None = None
    ) -> None:
        if not host or host.startswith("-") or any(letter.isspace() for letter in host):
            raise UsageMistake(f"{host!r} is no host: give a name or USER@NAME, as behind ssh")
        if root is not None and not root.startswith("/"):
            raise UsageMistake(f"{root!r} is no root: give an absolute directory there")
        self.place, self.root = f"ssh:{host}", root or "/"
        self._host, self._config, self._options = host, config, tuple(options)
        self._fence = root if root not in (None, "/") else None
        self._begin = root
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._unsure: set[str] = set()
        self._live: set[FarProcess] = set()
        self._kept: list[str] = []
        self._probed: Probe | None = None

    # ------------------------------------------------------------- commands

    def exec(self, command: Command, *, stdin: bytes | None = None, timeout: float | None = None) -> Result:
        """See Sandbox."""
        began = time.monotonic()
        run, mark, outcome = secrets.token_hex(8), secrets.token_hex(16), Outcome(self.place)
        script = self._script(command, mark, live=False)
        connection = self._connected()
        child = self._spawn(connection, run)
        out, err = Beginning(OUTPUT_CAP), Beginning(OUTPUT_CAP)

        def heard(words: list[str]) -> None:
            outcome.take(words)
            if outcome.over:
                child.kill()  # a job that the program left behind would hold it up

        def kill() -> None:
            connection.kill(run, outcome.group)
            child.kill()

        readers = {child.stdout: Framed(mark, out, heard), child.stderr: Framed(mark, err, heard)}
        try:
            pump = Pump(child, readers, script + (stdin or b""))
            timed_out = pump.run(None if timeout is None else began + timeout, kill) and not outcome.over
        except BaseException:
            kill()
            raise
        finally:
            child.reap()
            child.close()
        if not outcome.output_ended:
            outcome.code = None  # what was printed may be cut
        code = self._settle(connection, run, outcome, timed_out)
        lasted = time.monotonic() - began
        return Result(code, out.data(), err.data(), lasted, timed_out, out.dropped + err.dropped)

    def start_process(self, command: Command) -> Process:
        """See Sandbox."""
        run, mark, outcome = secrets.token_hex(8), secrets.token_hex(16), Outcome(self.place)
        script = self._script(command, mark, live=True)
        connection = self._connected()
        child = self._spawn(connection, run)
        process = FarProcess(
            child,
            outcome,
            mark,
            lambda: connection.kill(run, outcome.group),
            lambda outcome, killed: self._settle(connection, run, outcome, killed),
        )
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(script)
                greeting(process.stdout, mark, outcome, time.monotonic() + READY)
                process.stdin.write(b"\n")
            if outcome.refusal is not None:
                raise outcome.refusal
            if not outcome.group:
                raise self._lost(connection, run, outcome)
        except BaseException:
            process.let_go()
            process.stdin.close()
            process.stdout.close()
            raise
        with self._lock:
            self._live = {one for one in self._live if not one.gone} | {process}
        return process

    def wrap(self, command: Command, *, terminal: bool = False) -> Command:
        """See Sandbox. Values of variables are not in the words, but in a file there until ``close`` or ``cleanup``."""
        script = sshscripts.plain_script(self._placed(command), self._fence)
        connection = self._connected()
        secret = any(value is not None for value in command.env.values())
        if secret or len(login_line(script)) > LONGEST_LINE:
            script = f". {shlex.quote(self._keep(script))}"
        words = [*self._words("ERROR"), "-o", "ControlPath=none", "-tt" if terminal else "-T", "--", self._host]
        if terminal or not connection.noisy:
            return Command((*words, login_line(script)))
        mark = secrets.token_hex(16)
        line = login_line(f"printf '%s\\n' {mark}\n{script}")
        return Command((sys.executable, "-I", "-S", quietpipe.__file__, mark, *words, line))

    def _keep(self, script: str) -> str:
        """Keep a script in a file there that nobody else can read; its path."""
        kept = self.exec(Command(("sh", "-c", _KEEP)), stdin=os.fsencode(script))
        path = os.fsdecode(kept.stdout)
        if kept.code != 0 or not path:
            raise SandboxError(self.place, f"no file can be made there: {os.fsdecode(kept.stderr).strip()}")
        with self._lock:
            self._kept.append(path)
        return path

    # ----------------------------------------------------------- the place

    def probe(self) -> Probe:
        """See Sandbox."""
        if self._probed is None:
            result = self.exec(Command(("sh", "-c", _PROBE)))
            lines = os.fsdecode(result.stdout).splitlines()
            if result.code != 0 or len(lines) < 4:
                said = os.fsdecode(result.stderr).strip() or "too little was printed"
                raise SandboxError(self.place, f"what there is cannot be found out: {said}")
            system, home, user, python, *shells = lines
            found = dict(line.split("=", 1) for line in shells)
            self._probed = Probe(system, home, user, python or None, found)
        return self._probed

    def cleanup(self) -> tuple[str, ...]:
        """See Sandbox."""
        with self._lock:
            kept = tuple(self._kept)
        if not kept:
            return ()
        line = login_line(sshscripts.plain_script(Command(("sh", "-c", _REMOVE, "sh", *kept)), None))
        return (*self._words("ERROR"), "-o", "ControlPath=none", "-n", "-T", "--", self._host, line)

    def close(self) -> None:
        """See Sandbox."""
        if self._kept and self._connection is not None and self._connection.alive():
            with contextlib.suppress(SandboxError):
                self.exec(Command(("sh", "-c", _REMOVE, "sh", *self._kept)), timeout=CLOSE)
            self._kept.clear()
        self.let_go()

    def let_go(self) -> None:
        """See Sandbox. Programs that run through this object end."""
        with self._lock:
            connection, self._connection = self._connection, None
            live, self._live = self._live, set()
        if connection is not None:
            connection.close()
        for process in live:
            process.let_go()

    # ---------------------------------------------------------- connection

    def _words(self, log: str = "INFO") -> list[str]:
        return client(self._config, self._options, log=log)

    def _connected(self) -> Connection:
        """The connection, made anew if there is none or it has been lost."""
        with self._lock:
            if self._connection is not None and not self._connection.alive():
                self._connection.close()
                self._connection = None
            if self._connection is None:
                self._connection = Connection(self.place, self._host, self._words())
                for run in self._unsure:
                    self._connection.kill(run)
                self._unsure.clear()
            return self._connection

    def _spawn(self, connection: Connection, run: str) -> Child:
        connection.begin(run)
        try:
            popen = subprocess.Popen(
                connection.words(sshscripts.run_line(run)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise SandboxError(self.place, f"ssh cannot be started: {error.strerror}") from error
        return Child(popen, "")

    def _settle(self, connection: Connection, run: str, outcome: Outcome, killed: bool) -> int:
        """The status of a command that is over; SandboxError if nobody knows it."""
        if outcome.refusal is not None or outcome.code is not None:
            connection.end(run)
            if outcome.refusal is not None:
                raise outcome.refusal
            assert outcome.code is not None
            return outcome.code
        if killed or connection.closed:
            return KILLED
        raise self._lost(connection, run, outcome)

    def _lost(self, connection: Connection, run: str, outcome: Outcome) -> SandboxError:
        """Kill a command whose end nobody knows, now or when there is a connection again; the error that says so."""
        if connection.kill(run, outcome.group):
            return SandboxError(
                self.place, "the command has no status: its shell there was killed, or it did not start"
            )
        with self._lock:
            self._unsure.add(run)
        said = explained(connection.errors(), self._host)
        what = "is killed there as soon as the host notices" if outcome.group else "was perhaps not started"
        return SandboxError(self.place, f"the connection was lost ({said}); the command {what}")

    # ------------------------------------------------------------ commands

    def _script(self, command: Command, mark: str, *, live: bool) -> bytes:
        return sshscripts.run_script(self._placed(command), mark, self._fence, live=live)

    def _placed(self, command: Command) -> Command:
        """The command with its directory as it is there."""
        check_command(command)
        if self._begin is None:
            return command
        return dataclasses.replace(command, cwd=lexical(self._begin, command.cwd))
