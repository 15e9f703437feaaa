"""Directories for lessons: made clean, filled with given files, emptied again, and never mistaken for anything else.

A directory that this module has made carries a mark beside it, ``.NAME.scratch``, in the directory above, with the
directory's device and inode: what has the name but is another directory is foreign, and so is a link. Nothing is
deleted but the contents of such a directory; links in it are removed and not followed (``shutil.rmtree`` walks by
directory descriptors).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

from session_magics.durable import translated
from session_magics.errors import UsageMistake

MARK = "A session-magics scratch directory: %session scratch --reset may empty it.\n"
"""First line of the file that says so; the second one is device and inode."""


def default_directory(session: str) -> Path:
    """Where a session's scratch directory is when none is named; only this user can have it."""
    return Path(tempfile.gettempdir()).resolve() / f"lesson-{os.getuid()}" / session


def prepare(directory: Path, source: Path | None = None, *, reset: bool = False) -> Path:
    """Make the directory, or take the one that was made before; its path without links.

    ``source``: what is in this directory is copied; files that are there already stay as they are. ``reset``: all that
    is in it goes first. Raises UsageMistake for a directory that is somebody's, and for a source that is none.
    """
    if source is not None and not source.is_dir():
        raise UsageMistake(f"--from {source}: there is no such directory")
    path = directory.parent.resolve() / directory.name
    if source is not None and (source.resolve() == path or source.resolve().is_relative_to(path)):
        raise UsageMistake(f"--from {source} lies in the scratch directory: what is copied must be elsewhere")
    with translated(str(path)):
        _make(path)
        if reset:
            _empty(path)
        if source is not None:
            _fill(path, source)
    return path


def _make(path: Path) -> None:
    if not path.name or path.parent == path or path in (Path.home(), Path.home().resolve()):
        raise UsageMistake(f"{path} is no place for a lesson: name a directory that may be made, such as ~/lesson")
    if path.parent == default_directory("x").parent:
        _own_parent(path.parent)
    try:
        path.mkdir(parents=True)
    except FileExistsError:
        if not _is_ours(path):
            raise UsageMistake(
                f"{path} was not made by %session scratch and is left as it is: name a directory that is not there yet"
            ) from None
        return
    made = path.stat()
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(_mark(path), flags, 0o600), "w") as mark:
        mark.write(f"{MARK}{made.st_dev} {made.st_ino}\n")


def _own_parent(parent: Path) -> None:
    """Make the directory of all scratch directories; in a place where everybody writes it may be another's trap."""
    with contextlib.suppress(FileExistsError):
        parent.mkdir(mode=0o700)
    there = parent.lstat()
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.getuid():
        raise UsageMistake(f"{parent} belongs to somebody else: name a directory with --dir")


def _mark(path: Path) -> Path:
    return path.parent / f".{path.name}.scratch"


def _is_ours(path: Path) -> bool:
    """Whether this very directory was made here."""
    try:
        there, mark = path.lstat(), _mark(path).lstat()
        text = _mark(path).read_text()
    except (OSError, UnicodeDecodeError):
        return False
    is_own = stat.S_ISREG(mark.st_mode) and mark.st_uid == there.st_uid == os.getuid()
    return is_own and stat.S_ISDIR(there.st_mode) and text == f"{MARK}{there.st_dev} {there.st_ino}\n"


def _empty(path: Path) -> None:
    """Remove all that is in it, also what its owner may not write, as after an exercise on permissions."""
    path.chmod(stat.S_IRWXU)
    for folder, names, _ in os.walk(path):  # each is made accessible before it is entered
        for name in names:
            if not os.path.islink(child := os.path.join(folder, name)):
                os.chmod(child, stat.S_IRWXU)
    with os.scandir(path) as entries:
        for entry in list(entries):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)


def _fill(path: Path, source: Path) -> None:
    """Copy what is missing. A link that stands where a directory should be is not followed either."""

    def present(folder: str, names: list[str]) -> set[str]:
        target = path / Path(folder).relative_to(source)
        there = {name for name in names if os.path.lexists(target / name)}
        return {name for name in there if not (_is_folder(target / name) and _is_folder(Path(folder, name)))}

    try:
        shutil.copytree(source, path, dirs_exist_ok=True, symlinks=True, ignore=present)
    except shutil.Error as error:  # a list of those that could not be copied, the others are
        name, _, why = error.args[0][0]
        raise UsageMistake(f"--from {source}: {name} cannot be copied: {why}") from None


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()
