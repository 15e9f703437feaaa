"""The registry on disk: one directory a session, one file a name.

Whoever starts a session first creates its directory, then claims the name, then starts the holder. So a name
always leads to a directory, and one without (deleted by hand) may be taken over.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import os
import shutil
import socket
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from session_magics.durable import TEMP_PREFIX, read_bounded, sync_files, translated, write_atomic
from session_magics.errors import StoreError, UsageMistake
from session_magics.holder.record import blank_record, format_exit
from session_magics.log import log_end
from session_magics.model import Exited, FailedToStart, Lost, SessionInfo, Spec, State, Unknown
from session_magics.store import records, states
from session_magics.store.names import ID, KEPT, Names, check_key, name_key
from session_magics.store.records import RunRecord
from session_magics.store.root import choose_root, prepare_root

__all__ = ["RunRecord", "Store", "check_key", "name_key"]

LEFTOVER_AGE = 3600.0
"""Seconds after which an unfinished write or start is certainly nobody's any more."""
SWEEP_PERIOD = 600.0
"""Seconds between two sweeps; one takes 30 ms among 1200 sessions, as long as a start."""
CHILDREN_BYTES = 1 << 22
"""Most that is read of a session's list of children: 180,000 of them."""
TRASH_PREFIX = ".trash-"


class Store(Names):
    """The registry's directory. Safe for any number of processes and threads at once.

    ``relocated`` is the line to show once if the directory asked for is on a network file system, else None.

    Raises (the constructor too):
        StoreError: the directory cannot be used, is unsafe, or a record in it is damaged.
    """

    def __init__(self, root: Path | None = None) -> None:
        chosen = choose_root(root)
        self.root = chosen.path
        self.relocated = chosen.relocated
        prepare_root(self.root)
        super().__init__(str(self.root))

    def __repr__(self) -> str:
        return f"<Store {self.root}>"

    # ------------------------------------------------------------ directories

    def new_id(self) -> str:
        """Return a new session id; ids sort by the time they were made."""
        return f"{time.time_ns() // 1_000_000:013x}{os.urandom(4).hex()}"

    def directory(self, id: str) -> Path:
        """Return the session's directory, whether or not it exists."""
        return Path(self._path(id))

    def create(self, spec: Spec) -> Path:
        """Make the directory of a new session; it is invisible until its name is claimed."""
        path = self._path(spec.id)
        with translated(path):
            os.mkdir(path, 0o700)
            try:
                write_atomic(f"{path}/exit", blank_record())
                write_atomic(f"{path}/spec.json", records.spec_bytes(spec))
            except OSError:
                shutil.rmtree(path, ignore_errors=True)
                raise
        return Path(path)

    def add_child(self, id: str, child: str) -> None:
        """Note that a session ends with another one, so that who asks that one need not read all."""
        path = f"{self._path(id)}/children"
        with translated(path):
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                os.write(fd, f"{child}\n".encode())
            finally:
                os.close(fd)

    def children(self, id: str) -> set[str]:
        """The ids that ``add_child`` has noted, also of sessions that are gone."""
        try:
            return set(read_bounded(f"{self._path(id)}/children", CHILDREN_BYTES).decode("ascii", "replace").split())
        except OSError:
            return set()

    def write_spec(self, spec: Spec) -> None:
        """Replace the spec of a session that exists."""
        path = f"{self._path(spec.id)}/spec.json"
        with translated(path):
            write_atomic(path, records.spec_bytes(spec))

    def record_failure(self, id: str, reason: str) -> None:
        """Record that the holder never came up; nothing is written if it did, or if an end is recorded."""
        path = self._path(id)
        with translated(path):
            try:
                if records.read_exit(path) is not None or states.held(path):
                    return
            except ValueError:  # a damaged end is an end too
                return
            run = records.read_run(path)
            _write_exit(path, format_exit(run.generation if run else 1, "failed", reason, time.time()))

    def record_past(self, spec: Spec, log: Iterable[bytes], code: int | None, at: float, lost: str) -> None:
        """Make the directory of a session that something else ran and that is over, as if a holder had ended it.

        As with ``create`` it is invisible until its name is claimed. No process is ever looked for on its account.

        Args:
            log: pieces of its output; of more than a log keeps, the newest stay.
            code: its exit code; None: it is lost, and ``lost`` says why.
            at: Unix time of the end.
        """
        from session_magics.holder.logfile import LogWriter  # only for what comes from elsewhere
        from session_magics.holder.statefiles import run_bytes

        path = str(self.create(spec))
        try:
            with translated(path):
                writer = LogWriter(path)
                for piece in log:
                    writer.append(piece)
                writer.close()
                if writer.index_size or writer.end != log_end(path):  # a gap
                    raise OSError(errno.ENOSPC, "the disk is full")
                if code is not None:
                    _write_exit(path, format_exit(1, "code", code, at))
                more: dict[str, object] = {"lost": lost} if lost else {}
                write_atomic(f"{path}/run.json", run_bytes(0, 0, 1, spec.created, spec.size, more))
                sync_files(path)
        except BaseException:
            self.discard(spec.id)
            raise

    def lock_import(self) -> contextlib.AbstractContextManager[None]:
        """Keep other imports out for as long as the block lasts."""
        return _alone(f"{self.root}/import.lock")

    def remove(self, id: str, key: str, *, keep_log: bool = False) -> None:
        """Release the name and delete the directory, or with ``keep_log`` all but lock and socket.

        It is for the caller to see that the session has ended. Harmless if parts are gone already. An ``id`` of ""
        removes a damaged name.
        """
        self.release(key, id)
        if not id:
            return
        path = self._path(id)
        with translated(path), contextlib.suppress(FileNotFoundError):
            if keep_log:
                write_atomic(f"{path}/{KEPT}", b"")
                for name in ("alive", "sock"):
                    with contextlib.suppress(FileNotFoundError):
                        os.unlink(f"{path}/{name}")
            else:
                self._discard(path)

    def discard(self, id: str) -> None:
        """Delete the directory of a session that no name leads to; harmless if it is gone."""
        path = self._path(id)
        with translated(path), contextlib.suppress(FileNotFoundError):
            self._discard(path)

    def name_file(self, key: str) -> Path:
        """Where the claim of a name is, whether or not it exists."""
        return Path(self._name_path(key))

    def _discard(self, path: str) -> None:
        trash = f"{self._sessions}/{TRASH_PREFIX}{os.path.basename(path)}-{os.urandom(4).hex()}"
        os.rename(path, trash)  # gone in one step, however long the deletion takes
        shutil.rmtree(trash, ignore_errors=True)

    def _path(self, id: str) -> str:
        if not ID.fullmatch(id):
            raise UsageMistake(f"{id[:40]!r} is no session id")
        return f"{self._sessions}/{id}"

    # ---------------------------------------------------------------- reading

    @functools.cached_property
    def _machine(self) -> tuple[str, str, int]:
        from session_magics.holder.processes import boot_id, pid_namespace  # only where a session was lost

        return boot_id(), socket.gethostname(), pid_namespace()

    def _identity(self) -> tuple[str, str, int]:
        return self._machine

    def spec(self, id: str) -> Spec:
        """Return what the session was started as."""
        path = self._path(id)
        with translated(path):
            return records.read_spec(path)

    def run(self, id: str) -> RunRecord | None:
        """Return what the holder recorded about the newest generation; None if it never came up."""
        path = self._path(id)
        with translated(path):
            return records.read_run(path)

    def next_generation(self, id: str) -> int:
        """Return the generation of the next start: above those of both records, so that no old end is taken for its."""
        path = self._path(id)
        run, ended = None, None
        with translated(path), contextlib.suppress(StoreError):
            run = records.read_run(path)
        with translated(path), contextlib.suppress(ValueError):
            ended = records.read_exit(path)
        return max(run.generation if run else 0, ended.generation if ended else 0) + 1

    def state(self, id: str) -> State:
        """Return the state as the files tell it now; what cannot be read is Unknown, never an error."""
        return self.observed(id)[0]

    def observed(self, id: str) -> tuple[State, records.RunRecord | None]:
        """The state, and the run record where there is a readable one."""
        return states.observe(self._path(id), self._identity)

    def info(self, id: str, name: str) -> SessionInfo:
        """Return all that a list shows about one session, under the name given."""
        return states.session_info(self._path(id), name, self._identity)

    def infos(self, owner: str | None = None) -> dict[str, SessionInfo]:
        """Return name → session for all names; those of ``owner`` are shown without their ``@owner``."""
        suffix = f"@{owner}"
        found = {}
        for key, id in self._scan_names():
            name = key.removesuffix(suffix) if owner else key
            if not id:
                found[key] = self._nameless(key, name)
                continue
            info = self.info(id, name)
            if info.argv or self._owner_of(key) == id:  # else removed while it was read
                found[key] = info
        return found

    def _nameless(self, key: str, name: str) -> SessionInfo:
        path = f"{self._names}/{key}"
        unknown = Unknown("its name file is damaged: remove it")
        return SessionInfo(name, "", unknown, (), "", {}, "detached", "no", None, (0, 0), 0, None, 0.0, Path(path), 0)

    def sweep_now_and_then(self) -> None:
        """Sweep if nobody has for a while. Never raises: what it is called beside must not fail of it."""
        marker = f"{self.root}/swept"
        with contextlib.suppress(StoreError, OSError):
            if not (os.path.lexists(marker) and 0 <= _age(marker) < SWEEP_PERIOD):
                fd = os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                try:
                    os.utime(fd)
                finally:
                    os.close(fd)
                self.sweep()

    def sweep(self) -> list[str]:
        """Delete what killed starters and removers left behind, and return the paths deleted.

        A session without a name goes when it has ended and is an hour old; one whose state is not known stays.
        """
        swept = []
        for id in set(self.unclaimed()) - set(self.names().values()):  # a damaged name can still lead to its session
            path = self._path(id)
            ended = self.state(id)
            over = isinstance(ended, Lost | FailedToStart) or (isinstance(ended, Exited) and not ended.background)
            if over and _age(path) > LEFTOVER_AGE:
                with translated(path), contextlib.suppress(FileNotFoundError):
                    self._discard(path)
                    swept.append(path)
        # Afterwards, as a directory that something is taken out of is young again.
        return swept + [path for path in self._leftovers() if _delete(path)]

    def _leftovers(self) -> Iterator[str]:
        with translated(self._sessions):
            entries = os.listdir(self._sessions)
        yield from (f"{self._sessions}/{name}" for name in entries if name.startswith(TRASH_PREFIX))
        folders = [self._names, *(f"{self._sessions}/{name}" for name in entries if ID.fullmatch(name))]
        for folder in folders:
            with contextlib.suppress(OSError):
                temps = (
                    name
                    for name in os.listdir(folder)
                    if name.startswith(TEMP_PREFIX) or name.endswith((".new", ".tmp"))
                )
                yield from (path for name in temps if _age(path := f"{folder}/{name}") > LEFTOVER_AGE)


def _write_exit(path: str, record: bytes) -> None:
    fd = os.open(f"{path}/exit", os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.pwrite(fd, record, 0)
        os.fsync(fd)
    finally:
        os.close(fd)


@contextlib.contextmanager
def _alone(path: str) -> Iterator[None]:
    with translated(path):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with translated(path):
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _age(path: str) -> float:
    """Return the seconds since a file or directory changed; 0 if it is gone."""
    try:
        return time.time() - os.lstat(path).st_mtime
    except OSError:
        return 0.0


def _delete(path: str) -> bool:
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.unlink(path)
    return not os.path.lexists(path)
