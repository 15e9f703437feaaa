"""This machine as a sandbox: commands run below a directory, and nothing but that is fenced."""

from __future__ import annotations

import functools
import os
import pwd
import shutil
import sys
from collections.abc import Collection

from session_magics.errors import SandboxError
from session_magics.model import Command
from session_magics.programs import check_command
from session_magics.sandbox import Probe, Process, Result
from session_magics.sandbox.fence import resolved
from session_magics.sandbox.pipes import OUTPUT_CAP, Programs

SHELLS = ("bash", "zsh", "fish", "dash", "sh")


class LocalSandbox:
    """Runs commands on this machine, below ``root`` (default: the current directory).

    ``env_names`` are the variables of ours that commands get, beside their own; None: all. ``mount`` is another name
    of the root, that paths may begin with. ``output_cap`` is for each stream of a command, in bytes.

    What a command that has ended left running is not tracked; ``close`` kills what runs still.
    """

    place = "local"

    def __init__(
        self,
        root: str | os.PathLike[str] | None = None,
        *,
        env_names: Collection[str] | None = None,
        mount: str | None = None,
        output_cap: int = OUTPUT_CAP,
    ) -> None:
        self.root = os.path.abspath("." if root is None else root)
        self._env_names = None if env_names is None else frozenset(env_names)
        self._mount, self._cap = mount, output_cap
        self._programs = Programs(self.place, family=True)

    def exec(self, command: Command, *, stdin: bytes | None = None, timeout: float | None = None) -> Result:
        """See Sandbox."""
        cwd = self._directory(command)
        env = self._environment(command, cwd)
        return self._programs.run(command.argv, cwd=cwd, env=env, stdin=stdin, timeout=timeout, cap=self._cap)

    def start_process(self, command: Command) -> Process:
        """See Sandbox."""
        cwd = self._directory(command)
        return self._programs.start(command.argv, cwd=cwd, env=self._environment(command, cwd))

    def wrap(self, command: Command, *, terminal: bool = False) -> Command:
        """See Sandbox."""
        cwd = self._directory(command)
        removed = dict.fromkeys(name for name in os.environ if not self._inherited(name))
        return Command(command.argv, cwd, {**removed, **command.env})

    def probe(self) -> Probe:
        """See Sandbox."""
        return self._probed

    @functools.cached_property
    def _probed(self) -> Probe:
        shells = {name: path for name in SHELLS if (path := shutil.which(name))}
        return Probe(os.uname().sysname, os.path.expanduser("~"), _user(), sys.executable or None, shells)

    def cleanup(self) -> tuple[str, ...]:
        """See Sandbox."""
        return ()

    def let_go(self) -> None:
        """See Sandbox."""

    def close(self) -> None:
        """See Sandbox."""
        self._programs.close()

    def _directory(self, command: Command) -> str:
        check_command(command)
        cwd = resolved(self.root, command.cwd, self._mount)
        if not os.path.isdir(self.root):
            raise SandboxError(self.place, f"the directory {self.root} is gone: make it, or take another root")
        return cwd

    def _environment(self, command: Command, cwd: str) -> dict[str, str]:
        env = {name: value for name, value in os.environ.items() if self._inherited(name)}
        if "PWD" in env:
            env["PWD"] = cwd
        for name, value in command.env.items():
            if value is None:
                env.pop(name, None)
            else:
                env[name] = value
        return env

    def _inherited(self, name: str) -> bool:
        return self._env_names is None or name in self._env_names


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
