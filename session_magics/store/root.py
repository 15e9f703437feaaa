"""Where the registry lives on this machine, and whether that place is safe to use."""

from __future__ import annotations

import binascii
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from session_magics.durable import translated
from session_magics.errors import StoreError

HOME_VARIABLE = "SESSION_MAGICS_HOME"
APP = "session-magics"
MOUNTS = Path("/proc/self/mounts")

# fmt: off
NETWORK_FILE_SYSTEMS = frozenset((
    "nfs", "nfs3", "nfs4", "cifs", "smb3", "smbfs", "lustre", "gpfs", "afs", "ceph", "glusterfs", "beegfs",
    "panfs", "pvfs2", "orangefs", "wekafs", "davfs", "fuse.sshfs", "fuse.glusterfs", "fuse.ceph", "fuse.s3fs",
    "fuse.gcsfuse", "fuse.rclone", "fuse.juicefs", "fuse.blobfuse2", "fuse.davfs2", "fuse.mount.davfs",
    "fuse.cvmfs2", "fuse.lizardfs", "fuse.moosefs",
))
# fmt: on
"""Types in the mount table on which locks or sockets fail or are slow: observed failures, then their kin."""


@dataclass(frozen=True)
class Root:
    """The directory chosen, and the line to show once if it is not the one asked for."""

    path: Path
    relocated: str | None = None


def choose_root(explicit: Path | None, *, mounts: Path = MOUNTS) -> Root:
    """Return the registry's place: ``explicit``, else $SESSION_MAGICS_HOME, else the user's state directory.

    A place on a network file system is replaced by a local one.

    Raises:
        StoreError: no local place exists.
    """
    named = os.environ.get(HOME_VARIABLE)
    if explicit is None and named:
        explicit = Path(named)
    if explicit is None:
        wanted = _default_root()
    else:
        wanted = Path(os.path.abspath(os.path.expanduser(explicit)))
    try:
        table = mounts.read_text(errors="surrogateescape")
    except OSError:  # macOS has no such table
        return Root(wanted)
    kind = network_file_system(wanted, table)
    if kind is None:
        return Root(wanted)
    # Two explicit roots are two registries, so they must not meet in one local directory.
    suffix = "" if explicit is None else f"-{binascii.crc32(os.fsencode(wanted)):08x}"
    for local in _local_roots(suffix):
        if network_file_system(local, table) is None:
            return Root(local, f"{wanted} is on a network file system ({kind}): sessions are kept in {local}")
    raise StoreError(wanted, f"is on a network file system ({kind}): set {HOME_VARIABLE} to a local directory")


def network_file_system(path: Path, table: str) -> str | None:
    """Return the type of the network file system that ``path`` is on, or None, by a mount table."""
    target = os.path.realpath(path)
    best, kind = "", ""
    for line in table.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[1])
        inside = point == "/" or target == point or target.startswith(point + "/")
        if inside and len(point) >= len(best):  # of two mounts on one point the later covers the earlier
            best, kind = point, fields[2]
    return kind if kind in NETWORK_FILE_SYSTEMS else None


def prepare_root(path: Path) -> None:
    """Create the directory (0700) if need be, and check that nobody else can change it.

    Raises:
        StoreError: it cannot be used; the text says what to do.
    """
    try:
        with translated(str(path)):
            if not os.path.lexists(path):
                _make_private(path)
            status = os.lstat(path)
    except StoreError as error:
        raise StoreError(path, f"cannot be created or read ({error.reason}): {_elsewhere()}") from error
    _refuse_unsafe(path, status)
    if status.st_mode & 0o077:
        with translated(str(path)):
            os.chmod(path, 0o700)
    effective = os.access in os.supports_effective_ids
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK, effective_ids=effective):
        raise StoreError(path, f"cannot be read and written: chmod 700 it, or {_elsewhere()}")


def _refuse_unsafe(path: Path, status: os.stat_result) -> None:
    if stat.S_ISLNK(status.st_mode):
        raise StoreError(path, f"is a symbolic link: {_elsewhere('the directory it should be')}")
    if not stat.S_ISDIR(status.st_mode):
        raise StoreError(path, f"is not a directory: remove it, or {_elsewhere()}")
    if status.st_uid != os.geteuid():
        raise StoreError(path, f"belongs to user {status.st_uid}, not to you ({os.geteuid()}): {_elsewhere()}")
    if status.st_mode & 0o022:
        mode = stat.S_IMODE(status.st_mode)
        raise StoreError(path, f"can be changed by other users (mode {mode:04o}): check it, then chmod 700 it")


def _elsewhere(place: str = "another directory") -> str:
    return f"set {HOME_VARIABLE} to {place}"


def _make_private(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return  # another process was faster; the check that follows judges what it made
    os.chmod(path, 0o700)  # an odd umask could have taken our own bits away


def _default_root() -> Path:
    import platformdirs  # slow to import, and not needed when the variable is set

    return Path(platformdirs.user_state_dir(APP, appauthor=False))


def _local_roots(suffix: str) -> list[Path]:
    import tempfile  # only for the rare relocation

    runtime = os.environ.get("XDG_RUNTIME_DIR")
    places = [Path(runtime, APP + suffix)] if runtime and os.path.isdir(runtime) else []
    return [*places, Path(tempfile.gettempdir(), f"{APP}-{os.getuid()}{suffix}")]
