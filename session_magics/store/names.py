"""Names and the sessions they belong to: one small file a name.

A claim is a file that appears with its content in one step, so that of any number of starters exactly one has
the name, and nobody ever reads an empty one. All other changes happen under one lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterator

from session_magics.durable import TEMP_PREFIX, read_bounded, translated, write_atomic, write_exclusive
from session_magics.errors import StoreError, UsageMistake
from session_magics.model import ENGINE_MARK, check_name
from session_magics.store.records import read_spec

LOCK_DEADLINE = 5.0
"""Seconds to wait for the lock of the registry. It is held for a few milliseconds, as a name waits for the disk; where
others write to it that may be a quarter of a second, and many may want it."""
LOCK_STEP = 0.005
"""Seconds between tries for it."""
KEPT = "kept"
"""Marks the directory of a removed session whose log was to be kept."""

ID = re.compile(r"[0-9A-Za-z][0-9A-Za-z_-]{0,63}")
OWNER = re.compile(r"[0-9A-Za-z._-]{1,64}")
ENGINE_ADDRESS = re.compile(rf"(.+){ENGINE_MARK}([0-9]{{1,6}})")
_ID_BYTES = 64


def name_key(name: str, owner: str | None = None) -> str:
    """Return the name under which a session is claimed: ``name``, or ``name@owner`` within a kernel.

    Raises:
        UsageMistake: no file may be called that.
    """
    check_name(name)
    if owner is None:
        return name
    if not OWNER.fullmatch(owner):
        raise UsageMistake(f"{owner[:40]!r} is no owner of sessions: use 1 to 64 letters, digits, '.', '_' or '-'")
    return f"{name}@{owner}"


def check_key(key: str) -> str:
    """Return ``key`` if it is one that ``name_key`` makes; UsageMistake otherwise."""
    name, at, owner = key.partition("@")
    return name_key(name, owner if at else None)


def at_engine(name: str, engine: int) -> str:
    """How the session of an engine is addressed from elsewhere: ``NAME@engine:N``; also ``NAME@TOKEN@engine:N``."""
    return f"{name}{ENGINE_MARK}{engine}"


def engine_address(name: str) -> tuple[str, int] | None:
    """The name on the engine, and the engine's number; None for a session of this machine.

    Raises:
        UsageMistake: an engine is meant, and not said which.
    """
    if ENGINE_MARK not in name:
        return None
    match = ENGINE_ADDRESS.fullmatch(name)
    if match is None:
        raise UsageMistake(f"{name[:80]!r} is no session of an engine: NAME{ENGINE_MARK}N, such as web{ENGINE_MARK}2")
    return check_key(match[1]), int(match[2])


class Names:
    """The names of one registry. Safe for any number of processes and threads at once."""

    def __init__(self, root: str) -> None:
        self._lock = f"{root}/lock"
        self._sessions = f"{root}/sessions"
        self._names = f"{root}/names"
        for folder in (self._sessions, self._names):
            with translated(folder), contextlib.suppress(FileExistsError):
                os.mkdir(folder, 0o700)

    def claim(self, key: str, id: str) -> None:
        """Give the free name to a session; of any number of claims at once exactly one succeeds.

        Raises:
            FileExistsError: the name is taken.
        """
        path = self._name_path(key)
        try:
            with translated(path):
                write_exclusive(path, id.encode())
        except StoreError as error:
            if isinstance(error.__cause__, FileExistsError):
                raise FileExistsError(*error.__cause__.args) from None
            raise

    def release(self, key: str, id: str) -> None:
        """Give the name up if it still belongs to that session; an ``id`` of "" stands for a damaged name."""
        path = self._name_path(key)
        with self._locked(), translated(path), contextlib.suppress(FileNotFoundError):
            if self._owner_of(key) == id:
                os.unlink(path)

    def takeover(self, key: str, old_id: str, new_id: str) -> None:
        """Hand a name from one session to another.

        Raises:
            FileExistsError: it does not belong to ``old_id`` any more.
        """
        path = self._name_path(key)
        with self._locked():
            if self._owner_of(key) != old_id:
                raise FileExistsError(f"{key} was taken by another session meanwhile")
            with translated(path):
                write_atomic(path, new_id.encode())

    def resolve(self, key: str) -> str | None:
        """Return the id of the session that has the name, None if nobody has.

        Raises:
            StoreError: the name's file is damaged, and no session is known to belong to it.
        """
        id = self._owner_of(key)
        if id == "":
            raise StoreError(
                self._name_path(key), "is damaged, and its session is not known: remove the name, or this file"
            )
        return id

    def names(self) -> dict[str, str]:
        """Return name → id, in order of names. Names whose file is damaged beyond repair: ``damaged_names``."""
        return {key: id for key, id in self._scan_names() if id}

    def damaged_names(self) -> list[str]:
        """Return the names whose file does not lead to a session."""
        return [key for key, id in self._scan_names() if not id]

    def _scan_names(self) -> Iterator[tuple[str, str]]:
        with translated(self._names):
            keys = sorted(os.listdir(self._names))
        for key in keys:
            try:
                id = self._owner_of(check_key(key))
            except UsageMistake:  # not made by us: an editor's backup, a temporary file
                continue
            except StoreError:
                id = ""
            if id is not None:
                yield key, id

    def _name_path(self, key: str) -> str:
        return f"{self._names}/{check_key(key)}"

    def _owner_of(self, key: str) -> str | None:
        """Return the id in a name's file, None without a file, "" if it is damaged beyond repair."""
        path = self._name_path(key)
        with translated(path):
            try:
                id = read_bounded(path, _ID_BYTES + 1).decode("ascii", "replace")
            except FileNotFoundError:
                return None
        if ID.fullmatch(id) and os.path.isdir(f"{self._sessions}/{id}"):
            return id
        # Damage to one small file must not hide a session: its spec knows the name too.
        return self._unclaimed_of(key) or (id if ID.fullmatch(id) else "")

    def _unclaimed_of(self, key: str) -> str | None:
        """Return the newest session that nobody claims and that was started under this name."""
        for id in sorted(self.unclaimed(), reverse=True):
            folder = f"{self._sessions}/{id}"
            if not os.path.exists(f"{folder}/run.json"):
                continue  # perhaps of a starter that has yet to claim its name
            with contextlib.suppress(StoreError, UsageMistake, OSError):
                spec = read_spec(folder)
                if key == name_key(spec.name, spec.owner if spec.lifetime == "kernel" else None):
                    return id
        return None

    def unclaimed(self) -> list[str]:
        """Return the ids of the sessions that no name leads to, without those whose log was kept on purpose."""
        claimed = set()
        with translated(self._names):
            for key in os.listdir(self._names):
                if key.startswith(TEMP_PREFIX):  # no claim yet, and never one if its starter was killed
                    continue
                with contextlib.suppress(OSError):
                    claimed.add(read_bounded(f"{self._names}/{key}", _ID_BYTES + 1).decode("ascii", "replace"))
            ids = [id for id in os.listdir(self._sessions) if ID.fullmatch(id) and id not in claimed]
        return [id for id in ids if not os.path.lexists(f"{self._sessions}/{id}/{KEPT}")]

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        path = self._lock
        with translated(path):
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            deadline = time.monotonic() + LOCK_DEADLINE
            while not _try_lock(fd, path):
                if time.monotonic() > deadline:
                    holder = os.pread(fd, 20, 0).decode("ascii", "replace").strip() or "unknown"
                    raise StoreError(path, f"was locked for {LOCK_DEADLINE:g} s by process {holder}: try again")
                time.sleep(LOCK_STEP)
            with contextlib.suppress(OSError):  # only for the message above: a full disk must not stop a removal
                os.pwrite(fd, b"%-20d" % os.getpid(), 0)
            yield
        finally:
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)


def _try_lock(fd: int, path: str) -> bool:
    with translated(path):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
