"""Directories that commands may run in: those below a root, and nothing else.

``lexical`` judges a path as it is written and asks nobody, so it serves for places elsewhere too; ``resolved`` judges
what symbolic links of this machine make of it.
"""

from __future__ import annotations

import os
import posixpath

from session_magics.errors import UsageMistake


def lexical(root: str, cwd: str | None, mount: str | None = None) -> str:
    """The absolute path that ``cwd`` is below the absolute ``root``; UsageMistake if it leads out as it is written.

    ``mount`` is another name of the root, such as the one that it has in a container: a path that begins with it is
    taken for one that begins with the root. The path keeps its "..": after a symbolic link they mean something else.
    """
    if not cwd:
        return root
    if "\0" in cwd:
        raise UsageMistake(f"{cwd!r} has a NUL character in it and is no directory")
    path = cwd
    if mount and below(path, mount):
        path = posixpath.join(root, path[len(mount.rstrip("/")) :].lstrip("/"))
    path = posixpath.join(root, path)
    if not below(posixpath.normpath(path), root):
        raise UsageMistake(f"{cwd!r} leads out of {root!r}: give a directory below it")
    return path


def resolved(root: str, cwd: str | None, mount: str | None = None) -> str:
    """The same, and UsageMistake as well if it leads out through a symbolic link."""
    path = lexical(root, cwd, mount)
    if root != "/" and not below(os.path.realpath(path), os.path.realpath(root)):
        raise UsageMistake(f"{cwd!r} leads out of {root!r} through a symbolic link: give a directory below it")
    return path


def below(path: str, root: str) -> bool:
    """Whether an absolute path without ".." is the root's or that of something in it."""
    root = root.rstrip("/")
    return path == root or path.startswith(f"{root}/")
