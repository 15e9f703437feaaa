"""Putting a session on record and its program on a terminal."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from session_magics.backends import Start
from session_magics.backends.choice import choose
from session_magics.endings import Endings, over
from session_magics.environment import environment, far_environment
from session_magics.errors import SandboxError, SessionExists, SessionNotRunning, StartFailed, UsageMistake
from session_magics.model import (
    BackingOff,
    Command,
    Running,
    Spec,
    Unknown,
    check_name,
    check_size,
    describe,
)
from session_magics.programs import check_command
from session_magics.sandbox import Sandbox
from session_magics.session import Session
from session_magics.showing import give_functions
from session_magics.store.names import name_key

CLAIM_TRIES = 3
"""Tries for a name that others start and remove at the same time."""


class Starting(Endings):
    """How a registry starts sessions, whatever they run."""

    def _start(
        self,
        spec: Spec,
        env: Mapping[str, str | None],
        *,
        again: tuple[str, ...] = (),
        conversation: str | None = None,
        rc: bool = True,
        place: Sandbox | None = None,
        displays: bool = False,
    ) -> Session:
        """Start what the spec says; its owner, moment, and id if it has none, are filled in here. See ``Start``."""
        if spec.on is not None and place is None:
            spec = replace(spec, id=self.store.new_id())
            with self._there(spec.on, spec.id) as place:
                return self._start(spec, env, rc=rc, place=place)
        name, shell = check_name(spec.name), spec.shell is not None
        check_command(Command(spec.argv, spec.cwd, env))
        owner = self.owner if spec.lifetime == "kernel" else None
        cwd = spec.cwd if spec.on else os.path.abspath(os.path.expanduser(spec.cwd or "."))
        spec = replace(
            spec,
            id=spec.id or self.store.new_id(),
            cwd=cwd,
            size=check_size(spec.size),
            owner=owner,
            created=time.time(),
            backend=choose(self.backend, spec.backend, shell=shell, far=spec.on is not None),
        )
        parent = self._parent(spec)
        self._clear_shadow(name, owner)
        key = name_key(name, owner)
        directory = self._recorded(spec, key, conversation, displays=displays)
        self._launch(self._to_start(spec, directory, env, rc=rc, again=again, parent=parent, place=place))
        self.store.sweep_now_and_then()
        return Session(self.store, self.backend, name, spec.id)

    @contextlib.contextmanager
    def _there(self, on: str | None, id: str) -> Iterator[Sandbox | None]:
        """The place of a session that is started within the block: what is made there goes if that fails."""
        if on is None:
            yield None
            return
        from session_magics.sandbox.places import open_place, read_place  # most sessions are here

        place = open_place(read_place(on, self.store.root), session=id)
        try:
            yield place
        except BaseException:
            with contextlib.suppress(SandboxError):
                place.close()
            raise
        place.let_go()

    def _to_start(self, spec: Spec, directory: Path, env: Mapping[str, str | None], **more: Any) -> Start:
        """What is on record, as its backend is told of it."""
        shell = spec.shell is not None
        if spec.on is None:
            more["env"] = environment(env, session_id=spec.id, shell=shell)
        else:
            more["env"], more["unset"] = far_environment(env, session_id=spec.id, shell=shell)
        key = name_key(spec.name, spec.owner)
        return Start(
            spec=spec,
            directory=directory,
            program=spec.argv[0] if shell else None,
            owner=owner_process(spec.owner),
            name_file=self.store.name_file(key) if spec.owner else None,
            **more,
        )

    def _recorded(self, spec: Spec, key: str, conversation: str | None, *, displays: bool) -> Path:
        """Put the session on record, and its name; its directory."""
        directory = self.store.create(spec)
        try:
            if conversation is not None:
                from session_magics.agents.conversation import remember

                remember(directory, conversation)
            if displays and spec.shell is not None:
                give_functions(directory, spec.shell, far=spec.on is not None)
            if spec.parent:
                self.store.add_child(spec.parent, spec.id)
            self._claim(key, spec.id)
        except BaseException:
            self.store.discard(spec.id)
            raise
        return directory

    def _parent(self, spec: Spec) -> tuple[int, int] | None:
        """Pid and start tick of the program that a session ends with; None for one that ends with nothing else.

        Raises:
            SessionNotRunning: that program does not run.
            UsageMistake: its session was removed.
        """
        if spec.parent is None:
            return None
        state, run = self.store.observed(spec.parent)
        if isinstance(state, Running) and run is not None:
            # Of a program elsewhere there is a process here that holds the session, and ends with it.
            return (run.pid, run.tick) if self.store.spec(spec.parent).on is None else (run.holder, run.holder_tick)
        key = next((key for key, id in self.store.names().items() if id == spec.parent), None)
        if key is None:
            raise UsageMistake(f"{spec.name!r} ends with a session that was removed: start it anew")
        raise SessionNotRunning(self._shown(key), describe(state))

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
        except SandboxError as error:
            self.store.record_failure(start.spec.id, str(error))
            raise StartFailed(start.spec.name, str(error)) from None

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


def owner_process(token: str | None) -> tuple[int, int] | None:
    """Pid and start tick of the kernel that a token stands for."""
    pid, _, tick = (token or "").partition("-")
    return (int(pid), int(tick)) if pid.isdigit() and tick.isdigit() else None
