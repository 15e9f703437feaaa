"""All sessions of one user: start them, find them, list them, remove them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from session_magics.backends import Backend, Start
from session_magics.backends.choice import Backends, choose
from session_magics.endings import Endings, over
from session_magics.environment import environment
from session_magics.errors import (
    SessionExists,
    SessionNotFound,
    SessionNotRunning,
    StartFailed,
    StoreError,
    UsageMistake,
)
from session_magics.holder.processes import start_tick
from session_magics.model import (
    DEFAULT_SIZE,
    BackingOff,
    Command,
    FailedToStart,
    Lifetime,
    RestartLimit,
    RestartPolicy,
    Running,
    Spec,
    Unknown,
    check_limit,
    check_name,
    check_size,
    describe,
)
from session_magics.programs import check_command, find_shell
from session_magics.session import GRACE, Session
from session_magics.store import Store
from session_magics.store.names import name_key
from session_magics.store.states import START_GRACE, STARTING

CLAIM_TRIES = 3
"""Tries for a name that others start and remove at the same time."""
STARTING_STEP = 0.02
"""Seconds between looks at a shell that another process starts; a holder takes about 0.04."""


class Registry(Endings):
    """The sessions below one root directory. Safe for any number of processes and threads at once.

    Args:
        root: where the records are; default ``$SESSION_MAGICS_HOME`` or the user's state directory.
        backend: what holds new sessions: "auto" (native), "native", "tmux", or an object for all sessions alike.

    Sessions with the lifetime "kernel" belong to the process that made the registry: they end with it, and other
    processes see them as ``NAME@TOKEN``.
    """

    def __init__(self, root: Path | str | None = None, *, backend: Backend | str = "auto") -> None:
        store = Store(Path(root) if root is not None else None)
        pid = os.getpid()
        held_by = Backends(backend) if isinstance(backend, str) else backend
        super().__init__(store, held_by, f"{pid}-{start_tick(pid)}")

    def __repr__(self) -> str:
        return f"<Registry {self.store.root}>"

    # ---------------------------------------------------------------- starting

    def start(
        self,
        name: str,
        command: Command,
        *,
        labels: Mapping[str, str] | None = None,
        size: tuple[int, int] = DEFAULT_SIZE,
        lifetime: Lifetime = "detached",
        restart: RestartPolicy = "no",
        max_restarts: RestartLimit | None = None,
        backend: str | None = None,
    ) -> Session:
        """Start a program under a name. When this returns it runs.

        A session of that name that has ended is replaced, its log with it. ``size`` is (rows, columns). Values of
        ``command.env`` are handed to the program and stored nowhere. ``restart``: whether the holder starts the
        program again after it has ended, 0.5 s later and up to a minute when it fails again and again;
        ``max_restarts``: when it gives that up. ``backend``: "auto" (what the registry prefers), "native" or "tmux".

        Raises:
            SessionExists: one of that name still runs.
            StartFailed: the program never ran; the record of the attempt stays.
            UsageMistake: name, size, command or backend are wrong; nothing was done.
        """
        limit = check_limit(max_restarts) if max_restarts else None
        if limit and restart == "no":
            raise UsageMistake(f"a limit of {limit} restarts needs a policy: restart on-failure or always")
        return self._start(name, command, labels, size, lifetime, restart, limit, backend, shell=None, rc=True)

    def shell(
        self,
        name: str = "main",
        *,
        shell: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str | None] | None = None,
        labels: Mapping[str, str] | None = None,
        size: tuple[int, int] | None = None,
        lifetime: Lifetime = "kernel",
        rc: bool = True,
    ) -> Session:
        """The shell session of that name, started if it does not run; its cells are run by ``run_cell``.

        The options say how to *start*; of a shell that runs already, a different ``shell`` is refused. ``rc``: whether
        it reads the user's start-up file. Of several callers at once, one starts the shell and all get it.

        Raises:
            UsageMistake: something else runs under that name, or there is no such shell.
            StartFailed: the shell could not be started.
        """
        deadline = time.monotonic() + START_GRACE
        while True:
            session = self._running_shell(name, shell)
            if session is not None:
                return session
            program, dialect = find_shell(shell or "bash")
            command = Command((program,), cwd, env or {})
            try:
                return self._start(name, command, labels, size or DEFAULT_SIZE, lifetime, "no", shell=dialect, rc=rc)
            except SessionExists:  # another process was faster: use its shell once that is up
                there = self.find(name)
                if there is not None and there.state() not in (STARTING,) and not there.info().running:
                    raise
                if time.monotonic() > deadline:
                    raise
            time.sleep(STARTING_STEP)

    def _running_shell(self, name: str, shell: str | None) -> Session | None:
        session = self.find(name)
        info = session.info() if session is not None else None
        if info is None or not isinstance(info.state, Running | BackingOff):
            if "@" in name:
                raise SessionNotFound(name, self._known())
            return None
        if info.shell is None:
            raise UsageMistake(f"session {name!r} runs {info.argv[0]}, no shell: take another name for the cell")
        if shell is not None and os.path.basename(info.argv[0]) != os.path.basename(shell):
            raise UsageMistake(f"session {name!r} runs {info.argv[0]} already: stop it, or take another name")
        return session

    def _start(
        self,
        name: str,
        command: Command,
        labels: Mapping[str, str] | None,
        size: tuple[int, int],
        lifetime: Lifetime,
        restart: RestartPolicy,
        max_restarts: RestartLimit | None = None,
        backend: str | None = None,
        *,
        shell: str | None,
        rc: bool,
    ) -> Session:
        check_name(name)
        check_command(command)
        backend = choose(self.backend, backend, shell=shell is not None)
        owner = self.owner if lifetime == "kernel" else None
        self._clear_shadow(name, owner)
        spec = Spec(
            id=self.store.new_id(),
            name=name,
            argv=command.argv,
            cwd=os.path.abspath(os.path.expanduser(command.cwd or ".")),
            env_names=tuple(sorted(command.env)),
            labels=dict(labels or {}),
            size=check_size(size),
            lifetime=lifetime,
            restart=restart,
            shell=shell,
            owner=owner,
            created=time.time(),
            backend=backend,
            max_restarts=max_restarts,
        )
        key = name_key(name, owner)
        directory = self.store.create(spec)
        try:
            self._claim(key, spec.id)
        except BaseException:
            self.store.discard(spec.id)
            raise
        start = Start(
            spec=spec,
            directory=directory,
            env=environment(command.env, session_id=spec.id, shell=shell is not None),
            program=command.argv[0] if shell else None,
            rc=rc,
            owner=_owner(owner),
            name_file=self.store.name_file(key) if owner else None,
        )
        self._launch(start)
        self.store.sweep_now_and_then()
        return Session(self.store, self.backend, name, spec.id)

    def _clear_shadow(self, name: str, owner: str | None) -> None:
        """See to it that within this process the name will mean one session alone, of whatever lifetime."""
        key = name_key(name, self.owner) if owner is None else name
        id = self.store.resolve(key)
        if id is None:
            return
        state = self.store.state(id)
        if not over(state):
            raise SessionExists(name, describe(state))
        if owner is None:
            self._end_what_lives_on(key, id, state)
            self.store.remove(id, key)

    def _launch(self, start: Start) -> None:
        try:
            self.backend.start(start)
        except StartFailed as error:
            self.store.record_failure(start.spec.id, error.reason)
            raise

    def _claim(self, key: str, id: str) -> None:
        """Take the name, also from a session that has ended; that one's record goes."""
        for _ in range(CLAIM_TRIES):
            try:
                self.store.claim(key, id)
                return
            except FileExistsError:
                old = self.store.resolve(key)
            if old is None:
                continue
            state = self.store.state(old)
            if isinstance(state, Running | BackingOff | Unknown):
                raise SessionExists(self._shown(key), describe(state))
            self._end_what_lives_on(key, old, state)
            try:
                self.store.takeover(key, old, id)
            except FileExistsError:
                continue
            self.store.discard(old)
            return
        raise SessionExists(self._shown(key), "others start and remove it at this moment")

    # ---------------------------------------------------------------- again

    def restart(self, name: str, grace: float = GRACE, *, env: Mapping[str, str | None] | None = None) -> Session:
        """Stop the program if it runs and start it again: same id, name and log, the next generation.

        A program that runs keeps its environment, which its holder has in memory. One that has ended gets that of
        this process; values given at its start with ``env`` are stored nowhere and have to be given again. ``grace``
        is in seconds.

        Raises:
            SessionNotFound: there is none of that name.
            StartFailed: it was stopped and did not come up again; the record says why.
            StopIncomplete: it could not be ended, so it was not started again.
            UsageMistake: values are missing; nothing was done.
            StoreError: its record is damaged, so that it is not known what to start.
        """
        session = self.get(name)
        state = session.state()
        if isinstance(state, Running | BackingOff) and env is None and self._restarted(session, grace):
            return session
        spec = self.store.spec(session.id)
        if not spec.argv:
            raise UsageMistake(f"the program of {name!r} is not on record (it was imported): start one under that name")
        missing = sorted(set(spec.env_names) - set(env or {}))
        if missing:
            raise UsageMistake(
                f"the values of {', '.join(missing)} are not stored: give them again (restart {name} --env K=V), "
                f"or start {name!r} anew"
            )
        if isinstance(state, Unknown):
            raise StoreError(session.directory, describe(state))
        session.stop(grace)
        if env and set(env) != set(spec.env_names):
            spec = replace(spec, env_names=tuple(sorted(env)))
            self.store.write_spec(spec)
        self._launch(
            Start(
                spec=spec,
                directory=session.directory,
                env=environment(env or {}, session_id=spec.id, shell=spec.shell is not None),
                generation=self.store.next_generation(spec.id),
                program=spec.argv[0] if spec.shell else None,
                owner=_owner(spec.owner),
                name_file=self.store.name_file(name_key(spec.name, spec.owner)) if spec.owner else None,
            )
        )
        return session

    @staticmethod
    def _restarted(session: Session, grace: float) -> bool:
        """Have the holder restart its program; False if the program, and the holder with it, ended meanwhile."""
        try:
            with session.link() as link:
                link.restart(grace)
        except SessionNotRunning:
            if isinstance(failed := session.settled(), FailedToStart):
                raise StartFailed(session.name, failed.reason) from None
            return False
        return True


def _owner(token: str | None) -> tuple[int, int] | None:
    """Pid and start tick of the kernel that a token stands for."""
    pid, _, tick = (token or "").partition("-")
    return (int(pid), int(tick)) if pid.isdigit() and tick.isdigit() else None
