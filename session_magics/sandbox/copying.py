"""Copying files and folders into a sandbox and out of it, by nothing but commands that run there.

As ``cp -R`` does it: a target that is a folder gets the source into it, any other is the new name, which a file may
have already and a folder may not. What arrives has another name until all of it is there. Paths there begin at the
sandbox's root, and are kept below it as the directories of commands are.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import shutil
import sys
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from session_magics.errors import SandboxError, SessionError, UsageMistake
from session_magics.model import Command
from session_magics.sandbox import Process, Sandbox
from session_magics.sandbox.archives import Packer, Unpacker, size
from session_magics.text.amounts import short_bytes

TEMPORARY = ".copy-"
"""Begins the name of what is not complete yet."""
END_LIMIT = 60.0
"""Seconds for a program there to end after the last byte: it writes to its disk what it has."""
TOLD = 3
"""Names of what was left out that a line tells."""

Progress = Callable[[int, int | None], None]
"""Is told how many bytes are done, and of how many; None: that is not known."""

LOOK = """
if [ -d "$1" ]; then kind=folder; size=$(du -sk "$1" 2>/dev/null); size=$((${size%%[!0-9]*} + 0))000
elif [ -f "$1" ]; then kind=file; size=$(stat -L -c %s "$1" 2>/dev/null || stat -L -f %z "$1" 2>/dev/null)
elif [ -e "$1" ] || [ -L "$1" ]; then kind=other
else kind=nothing; fi
command -v tar >/dev/null 2>&1 && tar=tar || tar=none
echo "$kind ${size:-0} $tar"
"""
"""Tells what a path is, its bytes (nearly, of a folder), and whether there is a tar."""
PACK = r"""
if [ -d "$1" ]; then cd "$1" || exit; exec tar -cf - .; fi
case $1 in *\\*) tar --no-unquote --version >/dev/null 2>&1 && exec tar --no-unquote -chf - "$1"; esac
exec tar -chf - "$1"
"""
"""The tar of GNU takes backslashes in names for escapes, and no other has the option that ends it."""
UNPACK = "exec tar -xpof -"
PLACE = 'if [ -d "$2" ]; then echo "a folder of that name is there" >&2; exit 1; fi; exec mv -f "$1" "$2"'
CLEAR = 'if [ -d "$1" ]; then chmod -R u+rwx "$1"; fi; exec rm -rf "$1"'
PYTHON_PACK = """
import os, sys, tarfile
path = sys.argv[1]
name, path = (".", path) if os.path.isdir(path) else ("file", os.path.realpath(path))
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|", format=tarfile.GNU_FORMAT) as tar:
    tar.add(path, name)
"""
PYTHON_UNPACK = """
import os, sys, tarfile
def own(tar):
    for one in tar:
        one.uid, one.gid = os.getuid(), os.getgid()
        yield one
with tarfile.open(fileobj=sys.stdin.buffer, mode="r|", errors="surrogateescape") as tar:
    tar.extraction_filter = lambda member, path: member
    tar.extractall(members=own(tar))
"""
HARMLESS = ("file changed as we read it", "socket ignored", "file removed before we read it")
"""What tar says of files that are in use: they were copied as they were."""


@dataclass(frozen=True)
class Copied:
    """What was copied; shows itself as a line."""

    target: str
    files: int
    bytes: int
    left_out: tuple[str, ...] = ()
    """Names of what is no file, folder or link, and of links that lead out of the folder they were to come to."""

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(str(self))

    def __str__(self) -> str:
        line = f"{self.files} file{'s'[: self.files != 1]}, {short_bytes(self.bytes)} → {self.target}"
        if not self.left_out:
            return line
        names = ", ".join(self.left_out[:TOLD]) + (" …" if len(self.left_out) > TOLD else "")
        return f"{line}; left out (no plain files, or links that lead out): {names}"


def copy_in(sandbox: Sandbox, source: str, target: str, progress: Progress = lambda done, total: None) -> Copied:
    """Copy a file or a folder of this machine to a path in the sandbox.

    Raises:
        UsageMistake: there is no such source, or the target cannot be one.
        SandboxError: it did not arrive; nothing has the target's name but what had it before.
    """
    if not os.path.exists(source):
        raise UsageMistake(f"no file or folder {source!r} on this machine")
    here = os.path.abspath(source)
    far = _Far.at(sandbox, target, measure=False).target(os.path.basename(here) or "root", os.path.isdir(here))
    count = _Count(progress, size(here))
    packer = Packer(count.moved)
    temporary = f"{TEMPORARY}{os.urandom(6).hex()}"
    try:
        with far.running(UNPACK, PYTHON_UNPACK) as process:
            try:
                packer.write(here, temporary, process.stdin)
                process.stdin.close()
            except ConnectionError:
                pass  # it has ended, and its error output says why
            far.ended(process)
        far.run(PLACE, f"./{temporary}", f"./{far.name}")
    except BaseException as error:
        with contextlib.suppress(SessionError):
            far.run(CLEAR, f"./{temporary}")
        if isinstance(error, OSError) and not isinstance(error, SessionError):
            raise SessionError(f"{error.filename or source}: {error.strerror or error}") from error
        raise
    return count.over(far.path, packer.files, packer.left_out)


def copy_out(sandbox: Sandbox, source: str, target: str, progress: Progress = lambda done, total: None) -> Copied:
    """Copy a file or a folder of the sandbox to a path of this machine.

    Raises:
        UsageMistake: there is no such source, or the target cannot be one.
        SandboxError: it did not arrive; nothing has the target's name but what had it before.
        Unsafe: what came was made to be unpacked elsewhere.
    """
    far = _Far.at(sandbox, source)
    if far.kind not in ("file", "folder"):
        what = "no file or folder" if far.kind == "nothing" else "neither file nor folder:"
        raise UsageMistake(f"{sandbox.place}: {what} {source!r} there")
    final = _near_target(target, far.name, far.kind == "folder")
    temporary = os.path.join(os.path.dirname(final), f"{TEMPORARY}{os.urandom(6).hex()}")
    count = _Count(progress, far.size)
    unpacker = Unpacker(temporary, count.moved, single=far.kind == "file")
    try:
        with far.running(PACK, PYTHON_PACK) as process:
            process.stdin.close()
            try:
                unpacker.read(process.stdout)
                _exhaust(process.stdout)
            except tarfile.TarError as error:
                process.kill()
                far.ended(process, str(error))
                raise
            far.ended(process)
        os.rename(temporary, final)
    except tarfile.TarError as error:
        raise SandboxError(sandbox.place, f"{source!r} did not come whole: {error}") from error
    except OSError as error:
        raise SessionError(f"{error.filename or final}: {error.strerror or error}") from error
    finally:
        _remove(temporary)
    return count.over(final, unpacker.files, unpacker.left_out)


class _Count:
    """How far it is."""

    def __init__(self, progress: Progress, total: int | None) -> None:
        self._progress, self._total = progress, total
        self._done = 0
        progress(0, total)

    def moved(self, more: int) -> None:
        self._done += more
        self._progress(self._done, self._total if self._total is not None and self._done <= self._total else None)

    def over(self, target: str, files: int, left_out: list[str]) -> Copied:
        self._progress(self._done, self._done)
        return Copied(target, files, self._done, tuple(left_out))


@dataclass(frozen=True)
class _Far:
    """A path there, and what it was at a look: its directory is where commands about it run, under the fence."""

    sandbox: Sandbox
    directory: str
    name: str
    kind: str
    size: int | None
    tar: bool

    @classmethod
    def at(cls, sandbox: Sandbox, path: str, *, measure: bool = True) -> _Far:
        """Look there, and at the size as well."""
        if "\0" in path:
            raise UsageMistake("a path cannot hold a NUL character")
        directory, name = posixpath.split(path.rstrip("/"))
        at_root = path.startswith("/") and posixpath.normpath(path) == posixpath.normpath(sandbox.root)
        if at_root or name in ("", ".", ".."):  # a folder without a name, or with one that is outside the fence
            directory, name = path, "."
        script = LOOK if measure else LOOK.replace("du -sk", ":")
        result = sandbox.exec(Command(("sh", "-c", script, "sh", f"./{name}"), directory or None))
        words = result.stdout.decode(errors="replace").split()
        if result.code != 0 or len(words) != 3:
            raise UsageMistake(f"{sandbox.place}: {path!r} cannot be looked at: {_last(result.stderr) or result.code}")
        if path.endswith("/") and words[0] != "folder":
            raise UsageMistake(f"{sandbox.place}: no folder {path!r} there: make it, or leave out the '/'")
        known = words[1].isdigit() and (words[0] == "file" or int(words[1]) > 0)
        return cls(sandbox, directory, name, words[0], int(words[1]) if known else None, words[2] == "tar")

    def target(self, name: str, folder: bool) -> _Far:
        """Where something of that name is copied to if it is copied here; UsageMistake if that cannot be."""
        final = self
        if self.kind == "folder":
            final = _Far.at(self.sandbox, posixpath.join(self.path, name), measure=False)
        if final.kind == "folder" or (folder and final.kind != "nothing"):
            raise UsageMistake(
                f"{self.sandbox.place}: {final.path!r} is there already: remove it, or take another name"
            )
        return final

    @property
    def path(self) -> str:
        """As it was given, or nearly so."""
        return self.directory if self.name == "." else posixpath.join(self.directory, self.name)

    @contextlib.contextmanager
    def running(self, script: str, program: str) -> Iterator[Process]:
        """A program that packs or unpacks; killed if the block fails."""
        python = None if self.tar else self.sandbox.probe().python
        if not self.tar and python is None:
            raise SandboxError(self.sandbox.place, "neither tar nor python3 is there, and one is needed to copy")
        argv = ("sh", "-c", script, "sh") if self.tar else (str(python), "-c", program)
        env = {"COPYFILE_DISABLE": "1"}  # else the tar of macOS adds files of its own
        process = self.sandbox.start_process(Command((*argv, f"./{self.name}"), self.directory or None, env))
        try:
            yield process
        finally:
            process.kill()
            with contextlib.suppress(OSError):
                process.stdin.close()
            process.stdout.close()

    def ended(self, process: Process, otherwise: str = "") -> None:
        """Wait for its end; SandboxError if it was not a good one."""
        code = process.wait(END_LIMIT)
        lines = [line for line in process.stderr().decode(errors="replace").splitlines() if line.strip()]
        serious = [line for line in lines if not line.rstrip().endswith(HARMLESS)]
        if code == 0 or (code == 1 and lines and not serious):
            return
        raise SandboxError(
            self.sandbox.place, f"copying {self.path!r}: {(serious or [otherwise or f'status {code}'])[0]}"
        )

    def run(self, script: str, *words: str) -> None:
        """Run a script in the directory; SandboxError if it fails."""
        result = self.sandbox.exec(Command(("sh", "-c", script, "sh", *words), self.directory or None))
        if result.code != 0:
            why = _last(result.stderr) or f"status {result.code}"
            raise SandboxError(self.sandbox.place, f"copying {self.path!r}: {why}")


def _near_target(target: str, name: str, folder: bool) -> str:
    """Where on this machine something of that name is copied to."""
    final = os.path.abspath(target)
    if os.path.isdir(final):
        if name == ".":
            raise UsageMistake(f"{target!r} is there already: give the new folder a name")
        final = os.path.join(final, name)
    elif target.endswith("/"):
        raise UsageMistake(f"no folder {target!r} on this machine: make it, or leave out the '/'")
    if os.path.isdir(final) or (folder and os.path.lexists(final)):
        raise UsageMistake(f"{final!r} is there already: remove it, or take another name")
    if not os.path.isdir(os.path.dirname(final)):
        raise UsageMistake(f"no folder {os.path.dirname(final)!r} on this machine: make it first")
    return final


def _exhaust(stream: IO[bytes]) -> None:
    """Read what comes after the end of an archive: its padding."""
    while stream.read(1 << 16):
        pass


def _remove(path: str) -> None:
    if not os.path.lexists(path):
        return
    if not os.path.isdir(path):
        os.unlink(path)
        return
    for folder, _, _ in os.walk(path):
        os.chmod(folder, 0o700)
    shutil.rmtree(path, ignore_errors=True)


def _last(output: bytes) -> str:
    lines = output.decode(sys.getfilesystemencoding(), errors="replace").split("\n")
    return next((line for line in reversed(lines) if line.strip()), "")
