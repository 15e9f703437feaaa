"""An ordinary user of this machine for a time: made by root, without sudo, with nothing but an empty home."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil

LET_GO = 5.0
"""Seconds for processes to end by themselves before they are ended by force."""
CARRIED = ("PIP_", "SSL_CERT_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
"""Variables that say how packages are reached from this machine."""


@dataclass(frozen=True)
class Account:
    """A user, and how commands are run as that user: with a fresh environment, in the home."""

    name: str
    uid: int
    gid: int
    home: Path

    def run(self, command: str, *, cwd: Path | None = None, env: Mapping[str, str] = {}) -> str:
        """Run a line of bash to its end; what it printed. AssertionError with all of it if it failed."""
        process = self.start(command, cwd=cwd, env=env, output=subprocess.PIPE)
        said = process.communicate()[0].decode(errors="replace")
        assert process.returncode == 0, f"{command}: status {process.returncode}\n{said}"
        return said

    def start(
        self, command: str, *, cwd: Path | None = None, env: Mapping[str, str] = {}, output: int | IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """Start a line of bash."""
        return subprocess.Popen(
            ["/bin/bash", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=cwd or self.home,
            env=self._environment() | env,
            user=self.uid,
            group=self.gid,
            extra_groups=[],
            start_new_session=True,
        )

    def write(self, file: Path, text: str) -> None:
        """Write a file as the user, in a directory that is made if it is missing."""
        self.run('mkdir -p "${FILE%/*}" && printf %s "$TEXT" > "$FILE"', env={"FILE": str(file), "TEXT": text})

    def processes(self) -> list[psutil.Process]:
        """All processes of the user."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.uids().real == self.uid:
                    found.append(process)
        return found

    def memory(self) -> int:
        """Bytes that the user's processes have for themselves."""
        total = 0
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                total += process.memory_full_info().uss
        return total

    def _environment(self) -> dict[str, str]:
        carried = {name: value for name, value in os.environ.items() if name.upper().startswith(CARRIED)}
        plain = {"HOME": str(self.home), "USER": self.name, "SHELL": "/bin/bash", "LANG": "C.UTF-8"}
        return carried | plain | {"PATH": "/usr/local/bin:/usr/bin:/bin"}


@contextlib.contextmanager
def account() -> Iterator[Account]:
    """Make a user; at the end its processes are ended, and it and all its files are removed."""
    place = Path(tempfile.mkdtemp(prefix="account"))
    place.chmod(0o755)
    name, home = f"sm{secrets.token_hex(4)}", place / "home"
    subprocess.run(["useradd", "--create-home", "--home-dir", home, "--shell", "/bin/bash", name], check=True)
    try:
        entry = pwd.getpwnam(name)
        made = Account(name, entry.pw_uid, entry.pw_gid, home)
        try:
            yield made
        finally:
            _end(made)
    finally:
        subprocess.run(["userdel", name], check=True)
        shutil.rmtree(place)


def _end(user: Account) -> None:
    for way in (psutil.Process.terminate, psutil.Process.kill):
        rest = user.processes()
        for process in rest:
            with contextlib.suppress(psutil.Error):
                way(process)
        psutil.wait_procs(rest, LET_GO)
    left = user.processes()
    assert not left, left
