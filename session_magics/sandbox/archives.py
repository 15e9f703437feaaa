"""Files and folders as tar streams: packed from this machine, and unpacked here so that nothing lands elsewhere."""

from __future__ import annotations

import os
import stat
import tarfile
from collections.abc import Callable, Iterator
from typing import IO, cast

from session_magics.errors import SessionError

BLOCK = 1 << 16
"""Bytes that go through a pipe at once."""
PERMISSIONS = 0o777
"""What is kept of a mode: not that a program runs as its owner."""

Moved = Callable[[int], None]
"""Is told of so many more bytes of content."""


class Unsafe(SessionError):
    """An archive names a place outside the folder that it was to be unpacked in; nothing was kept of it."""


class Packer:
    """Writes what lies at a path here as a tar stream, in which it has the name ``name``.

    A link at the path itself is followed, one further down is packed as a link. What is no file, folder or link is
    ``left_out``; ``files`` counts the others.
    """

    def __init__(self, moved: Moved) -> None:
        self._moved = moved
        self.files = 0
        self.left_out: list[str] = []

    def write(self, path: str, name: str, stream: IO[bytes]) -> None:
        """Pack it all. Raises OSError."""
        with tarfile.open(fileobj=stream, mode="w|", bufsize=BLOCK, format=tarfile.GNU_FORMAT) as tar:
            for here, there in walk(os.path.realpath(path), name):
                self._add(tar, here, there)

    def _add(self, tar: tarfile.TarFile, path: str, name: str) -> None:
        mode = os.lstat(path).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
            self.left_out.append(name)
            return
        info = tar.gettarinfo(path, name)
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        if not info.isreg():
            tar.addfile(info)
        else:
            with open(path, "rb") as file:
                tar.addfile(info, cast(IO[bytes], _Counted(file, self._moved)))
        self.files += not info.isdir()


class _Counted:
    """A file that tells how much of it was read."""

    def __init__(self, file: IO[bytes], moved: Moved) -> None:
        self._file, self._moved = file, moved

    def read(self, size: int) -> bytes:
        piece = self._file.read(size)
        self._moved(len(piece))
        return piece


def walk(path: str, name: str) -> Iterator[tuple[str, str]]:
    """Each path at and below ``path``, with what it is called if that one is called ``name``; folders come first."""
    todo = [(path, name)]
    while todo:
        here, there = todo.pop()
        yield here, there
        if stat.S_ISDIR(os.lstat(here).st_mode):
            names = sorted(os.listdir(here), reverse=True)
            todo.extend((os.path.join(here, one), f"{there}/{one}") for one in names)


def size(path: str) -> int:
    """Bytes of content at and below a path, as ``Packer`` will move them."""
    found = (os.lstat(here) for here, _ in walk(os.path.realpath(path), ""))
    return sum(one.st_size for one in found if stat.S_ISREG(one.st_mode))


class Unpacker:
    """Unpacks a tar stream below ``target``, which is not there yet and lies in a folder that nobody else writes to.

    ``single``: the stream has one file, that becomes ``target`` itself. No path is written through a link: links are
    made when all else is there. Those that lead out of the target, devices and the like are ``left_out``.
    """

    def __init__(self, target: str, moved: Moved, *, single: bool) -> None:
        self._target, self._moved, self._single = target, moved, single
        self._files: set[str] = set()
        self._links: list[tuple[str, tarfile.TarInfo]] = []
        self._folders: dict[str, tarfile.TarInfo | None] = {}
        self.left_out: list[str] = []

    @property
    def files(self) -> int:
        """How many files and links there are."""
        return len(self._files)

    def read(self, stream: IO[bytes]) -> None:
        """Unpack it all. Raises OSError, tarfile.TarError for what is no archive or half of one, and Unsafe."""
        with tarfile.open(fileobj=stream, mode="r|", bufsize=BLOCK, errors="surrogateescape") as tar:
            for member in tar:
                self._take(tar, member)
        for path, member in self._links:
            self._link(path, member)
        for path, info in sorted(self._folders.items(), reverse=True):  # what lies in a folder before it
            if info is not None:
                os.chmod(path, info.mode & PERMISSIONS)
                os.utime(path, (info.mtime, info.mtime))
        if not os.path.lexists(self._target):
            raise tarfile.ReadError("nothing came")

    def _take(self, tar: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = self._target if self._single else self._path(member.name)
        if member.isdir():
            self._folder(path, member)
        elif member.isreg():
            self._folder(os.path.dirname(path), None)
            self._file(tar, path, member)
        elif member.islnk():
            source = self._path(member.linkname)
            if source not in self._files:
                self.left_out.append(member.name)
                return
            self._folder(os.path.dirname(path), None)
            os.link(source, path, follow_symlinks=False)
            self._files.add(path)
        elif member.issym():
            self._links.append((path, member))
        else:
            self.left_out.append(member.name)

    def _path(self, name: str) -> str:
        words = [word for word in name.split("/") if word not in ("", ".")]
        if name.startswith("/") or ".." in words or "\0" in name:
            raise Unsafe(
                f"the archive that came has the name {name!r}, which leads out of the folder: nothing was kept"
            )
        return os.path.join(self._target, *words)

    def _folder(self, path: str, info: tarfile.TarInfo | None) -> None:
        """Make it with those above it, unless they are there."""
        missing = [] if len(path) < len(self._target) else [path]
        while missing and missing[-1] != self._target:
            missing.append(os.path.dirname(missing[-1]))
        for one in reversed(missing):
            if one not in self._folders:
                os.mkdir(one, 0o700)  # an error if there is a file of that name
                self._folders[one] = None
        if info is not None:
            self._folders[path] = info

    def _file(self, tar: tarfile.TarFile, path: str, member: tarfile.TarInfo) -> None:
        source = tar.extractfile(member)
        assert source is not None
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            while piece := source.read(BLOCK):
                file.write(piece)
                self._moved(len(piece))
            if file.tell() != member.size:
                raise tarfile.ReadError("the archive ends within a file")
            os.fchmod(fd, member.mode & PERMISSIONS)
        os.utime(path, (member.mtime, member.mtime))
        self._files.add(path)

    def _link(self, path: str, member: tarfile.TarInfo) -> None:
        try:
            tarfile.data_filter(member, self._target)
        except tarfile.FilterError:
            self.left_out.append(member.name)
            return
        self._folder(os.path.dirname(path), None)
        os.symlink(member.linkname, path)
        self._files.add(path)
