"""All sessions of one user: start them, find them, list them, remove them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from session_magics.backends import Backend
from session_magics.backends.choice import AUTO, Backends
from session_magics.errors import (
    SessionError,
    SessionExists,
    SessionNotFound,
    SessionNotRunning,
    StartFailed,
    StoreError,
    UsageMistake,
)
from session_magics.holder.processes import start_tick
from session_magics.model import (
    AGENT_SIZE,
    DEFAULT_NAME,
    DEFAULT_SIZE,
    LOGIN_SHELL,
    BackingOff,
    Command,
    Exited,
    FailedToStart,
    Lifetime,
    RestartLimit,
    RestartPolicy,
    Running,
    Spec,
    State,
    Unknown,
    check_limit,
    describe,
)
from session_magics.programs import DIALECTS, find_shell
from session_magics.sandbox import Sandbox
from session_magics.session import GRACE, Session
from session_magics.starting import Starting
from session_magics.store import Store
from session_magics.store.states import START_GRACE, STARTING

CHILD_STEM = 58
"""Characters of the parent's name in that of its terminal child: names have 64 at most."""
FAR_SHELLS = ("bash", "zsh", "sh")
"""Shells that are taken at a place where none is asked for, in this order."""
STARTING_STEP = 0.02
"""Seconds between looks at a shell that another process starts; a holder takes about 0.04."""


class Registry(Starting):
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
        size: tuple[int, int] | None = None,
        lifetime: Lifetime = "detached",
        restart: RestartPolicy = "no",
        max_restarts: RestartLimit | None = None,
        backend: str | None = None,
        tool: str | None = None,
        approve_all: bool = False,
        parent: str | None = None,
        on: str | None = None,
    ) -> Session:
        """Start a program, or a known tool, under a name. When this returns it runs.

        A session of that name that has ended is replaced, its log with it. ``size`` is (rows, columns), 24x80 when not
        told, and 36x120 for a tool. Values of ``command.env`` are handed to the program and stored nowhere.
        ``restart``: whether the holder starts the program again after it has ended, 0.5 s later and up to a minute when
        it fails again and again; ``max_restarts``: when it gives that up. ``backend``: "auto" (what the registry
        prefers), "native" or "tmux".

        ``tool``: a coding agent by name (see ``session_magics.agents.tools``), for which the command has the arguments
        alone; a restart goes on with its conversation. ``approve_all`` adds the tool's own switch that asks nothing.
        ``parent``: name of a session whose program's end, however it comes, stops this one. ``on``: where it runs, as
        ``docker:IMAGE``, ``container:NAME`` or ``ssh:HOST``; its directory and its environment are those of that place.

        Raises:
            SessionExists: one of that name still runs.
            StartFailed: the program never ran; the record of the attempt stays.
            SessionNotRunning: the parent has ended.
            UsageMistake: name, size, command, tool, backend or place are wrong; nothing was done.
        """
        limit = check_limit(max_restarts) if max_restarts else None
        if limit and restart == "no":
            raise UsageMistake(f"a limit of {limit} restarts needs a policy: restart on-failure or always")
        spec = Spec(
            id="",
            name=name,
            argv=command.argv,
            cwd=command.cwd or "",
            env_names=tuple(sorted(command.env)),
            labels=dict(labels or {}),
            size=size or (DEFAULT_SIZE if tool is None else AGENT_SIZE),
            lifetime=lifetime,
            restart=restart,
            max_restarts=limit,
            backend=backend or AUTO,
            on=self._place(on),
        )
        if parent is not None:
            spec = replace(spec, parent=self.get(parent).id)
        if tool is None:
            return self._start(spec, command.env)
        if spec.on is not None:
            raise UsageMistake(f"tools are looked for on this machine: name the program that {on} has, without a tool")
        from session_magics.agents.calling import calling  # most sessions are no agents

        called = calling(tool, command.argv, self.store.root, approve_all=approve_all)
        spec = replace(spec, argv=called.argv, tool=tool, tool_args=called.args)
        return self._start(spec, {**called.env, **command.env}, again=called.again, conversation=called.conversation)

    def shell(
        self,
        name: str = DEFAULT_NAME,
        *,
        shell: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str | None] | None = None,
        labels: Mapping[str, str] | None = None,
        size: tuple[int, int] | None = None,
        lifetime: Lifetime = "kernel",
        rc: bool = True,
        on: str | None = None,
        displays: bool = False,
    ) -> Session:
        """The shell session of that name, started if it does not run; its cells are run by ``run_cell``.

        The options say how to *start*; of a shell that runs already, a different ``shell`` or place is refused.
        ``rc``: whether it reads the user's start-up file. ``on``: where it runs (see ``start``); not told, it is where
        the last shell of that name was. ``displays``: whether it has the functions of ``showing``. Of several callers
        at once, one starts the shell and all get it.

        Raises:
            UsageMistake: something else runs under that name, or there is no such shell.
            StartFailed: the shell could not be started.
        """
        deadline = time.monotonic() + START_GRACE
        place = self._place(on or self.last_place(name))
        while True:
            session = self._running_shell(name, shell, place)
            if session is not None:
                return session
            id = self.store.new_id()
            try:
                with self._there(place, id) as sandbox:
                    program, dialect = find_shell(shell or "bash") if sandbox is None else _far_shell(sandbox, shell)
                    spec = Spec(
                        id=id,
                        name=name,
                        argv=(program,),
                        cwd=cwd or "",
                        env_names=tuple(sorted(env or {})),
                        labels=dict(labels or {}),
                        size=size or DEFAULT_SIZE,
                        lifetime=lifetime,
                        shell=dialect,
                        backend=AUTO,
                        on=place,
                    )
                    return self._start(spec, env or {}, rc=rc, place=sandbox, displays=displays)
            except SessionExists:  # another process was faster: use its shell once that is up
                there = self.find(name)
                if there is not None and there.state() not in (STARTING,) and not there.info().running:
                    raise
                if time.monotonic() > deadline:
                    raise
            time.sleep(STARTING_STEP)

    def last_place(self, name: str) -> str | None:
        """Where the shell of that name is, or was; None: here, or there is none."""
        session = self.find(name)
        info = session.info() if session is not None else None
        return info.on if info is not None and info.shell is not None else None

    def child_shell(self, parent: str) -> Session:
        """A login shell in a session's directory, which ends with it; the one that runs already, if there is one."""
        above = self.get(parent)
        if above.info().on is not None:
            raise UsageMistake(
                f"{parent!r} is on {above.info().on}: %session start NAME --on PLACE sh opens a shell there"
            )
        deadline = time.monotonic() + START_GRACE
        while True:
            running = [one for one in self.children(above.id) if one.tool == LOGIN_SHELL and one.running]
            if running:
                return Session(self.store, self.backend, running[0].name, running[0].id)
            info = above.info()
            name = f"{above.name.partition('@')[0][:CHILD_STEM]}-shell"
            try:
                command = Command((), info.cwd)
                return self.start(name, command, tool=LOGIN_SHELL, parent=parent, lifetime=info.lifetime)
            except SessionExists:  # another process was faster: use its shell once that is up
                taken = self.find(name)
                if time.monotonic() > deadline or (taken is not None and taken.info().parent != above.id):
                    raise
            time.sleep(STARTING_STEP)

    def _place(self, text: str | None) -> str | None:
        """A place as it is put on record; None for this machine."""
        if text is None:
            return None
        from session_magics.sandbox.places import read_place  # most sessions are here

        place = read_place(text, self.store.root)
        return None if place.kind == "local" else str(place)

    def _running_shell(self, name: str, shell: str | None, place: str | None) -> Session | None:
        session = self.find(name)
        info = session.info() if session is not None else None
        if info is None or not isinstance(info.state, Running | BackingOff):
            if "@" in name:
                raise SessionNotFound(name, self._known())
            return None
        if info.shell is None:
            raise UsageMistake(f"session {name!r} runs {info.argv[0]}, no shell: take another name for the cell")
        if place is not None and info.on != place:
            where = info.on or "on this machine"
            raise UsageMistake(f"session {name!r} runs {where} already: stop it, or take another name")
        if shell is not None and os.path.basename(info.argv[0]) != os.path.basename(shell):
            raise UsageMistake(f"session {name!r} runs {info.argv[0]} already: stop it, or take another name")
        return session

    # ---------------------------------------------------------------- again

    def restart(self, name: str, grace: float = GRACE, *, env: Mapping[str, str | None] | None = None) -> Session:
        """Stop the program if it runs and start it again: same id, name and log, the next generation.

        A tool goes on with its conversation. A program that runs keeps its environment, which its holder has in memory.
        One that has ended gets that of this process; values given at its start with ``env`` are stored nowhere and have
        to be given again. ``grace`` is in seconds.

        Raises:
            SessionNotFound: there is none of that name.
            StartFailed: it was stopped and did not come up again; the record says why.
            StopIncomplete: it could not be ended, so it was not started again.
            SessionNotRunning: what it ends with has ended.
            UsageMistake: values are missing, or what it ends with was removed; nothing was done.
            StoreError: its record is damaged, so that it is not known what to start.
        """
        session = self.get(name)
        state = self._state(session)
        resumed = self._resumed(session)
        argv, tool_env = resumed if resumed is not None else ((), {})
        if isinstance(state, Running | BackingOff) and env is None and self._restarted(session, grace, argv):
            if argv:
                self.store.write_spec(replace(self.store.spec(session.id), argv=argv))
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
        parent = self._parent(spec)
        session.stop(grace)
        again = replace(spec, env_names=tuple(sorted(env or spec.env_names)), argv=argv or spec.argv)
        if again != spec:
            spec = again
            self.store.write_spec(spec)
        with self._there(spec.on, spec.id) as place:
            given = {**tool_env, **(env or {})}
            generation = self.store.next_generation(spec.id)
            start = self._to_start(spec, session.directory, given, generation=generation, parent=parent, place=place)
            self._launch(start)
        return session

    def _state(self, session: Session) -> State:
        """The state; not that between two generations, where the end is on record and the new start is not yet.

        A holder does both in one go, so once it has answered anything, the record says what came of it.
        """
        state = session.state()
        if isinstance(state, Exited) and state.background:
            with suppress(SessionError), closing(self.backend.connect(session.directory, session.name)) as link:
                link.probe()
            state = session.state()
        return state

    def _resumed(self, session: Session) -> tuple[tuple[str, ...], Mapping[str, str]] | None:
        """With what argv and variables a tool goes on with its conversation; None for what is no tool."""
        if session.info().tool is None:
            return None
        from session_magics.agents.calling import calling_again

        spec = self.store.spec(session.id)
        return calling_again(spec.tool or "", spec.tool_args, session.directory, self.store.root)

    @staticmethod
    def _restarted(session: Session, grace: float, argv: Sequence[str]) -> bool:
        """Have the holder restart its program; False if the program, and the holder with it, ended meanwhile."""
        try:
            with session.link() as link:
                link.restart(grace, argv)
        except SessionNotRunning:
            if isinstance(failed := session.settled(), FailedToStart):
                raise StartFailed(session.name, failed.reason) from None
            return False
        return True


def _far_shell(place: Sandbox, shell: str | None) -> tuple[str, str]:
    """The path of a shell at a place and its dialect: the one asked for, or the first that is there."""
    shells = place.probe().shells
    name = shell or next((one for one in FAR_SHELLS if one in shells), "bash")
    program = shell if shell and "/" in shell else shells.get(name)
    if program is None:
        raise UsageMistake(f"no shell {name!r} at {place.place}: it has {', '.join(shells) or 'none'}")
    return program, DIALECTS.get(os.path.basename(program), "sh")
