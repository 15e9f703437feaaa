"""Writing files so that no reader, crash or full disk ever meets half of one."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator

from session_magics.errors import StoreError

TEMP_PREFIX = ".tmp-"
"""Begins the name of every file that is not in place yet; a leftover of a killed writer is swept by it."""

_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
# What link() answers where the file system has no hard links (vfat, some FUSE file systems).

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC


@contextlib.contextmanager
def translated(path: str) -> Iterator[None]:
    """Raise the block's OSError as a StoreError about ``path``."""
    try:
        yield
    except OSError as error:
        raise StoreError(path, error.strerror or str(error)) from error


def write_atomic(path: str, data: bytes) -> None:
    """Put ``data`` (mode 0600) at ``path``; the old file stays until the new one is on the disk."""
    temp = _write_temp(path, data)
    try:
        os.replace(temp, path)
    except OSError:
        with contextlib.suppress(FileNotFoundError):  # gone with its directory: the first error says more
            os.unlink(temp)
        raise
    sync_directory(os.path.dirname(path))


def write_exclusive(path: str, data: bytes) -> None:
    """Create ``path`` with its content in one step.

    Raises:
        FileExistsError: it is there already, and was left alone.
    """
    temp = _write_temp(path, data)
    try:
        os.link(temp, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _write_new(path, data)
    finally:
        os.unlink(temp)
    sync_directory(os.path.dirname(path))


def sync_directory(path: str) -> None:
    """Bring the names in a directory to the disk, where the file system can."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):  # EINVAL on file systems without it; the names are in place all the same
            os.fsync(fd)
    finally:
        os.close(fd)


def sync_files(folder: str) -> None:
    """Bring the content of all files of a directory to the disk, and their names."""
    for name in os.listdir(folder):
        fd = os.open(f"{folder}/{name}", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
    sync_directory(folder)


def read_bounded(path: str, limit: int) -> bytes:
    """Return the file's content, at most ``limit`` bytes of it; a symlink is not followed."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        data = os.read(fd, limit)
        while 0 < len(data) < limit and (more := os.read(fd, limit - len(data))):
            data += more
        return data
    finally:
        os.close(fd)


def _write_temp(path: str, data: bytes) -> str:
    folder, name = os.path.split(path)
    temp = os.path.join(folder, f"{TEMP_PREFIX}{name}-{os.urandom(4).hex()}")
    _write_new(temp, data)
    return temp


def _write_new(path: str, data: bytes) -> None:
    fd = os.open(path, _CREATE, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fsync(fd)
    except OSError:
        os.unlink(path)
        raise
    finally:
        os.close(fd)


def locked(path: str) -> bool:
    """Whether somebody has this file locked; a file that is missing is not. OSError if that cannot be told."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        # Given back by hand: a child that is being forked by another thread may have a copy of the descriptor.
        fcntl.flock(fd, fcntl.LOCK_UN)
        return False
    finally:
        os.close(fd)
