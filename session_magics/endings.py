"""Ending sessions: stopping many at once, and forgetting those that have ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from session_magics.backends.choice import abandoned, may_live_on
from session_magics.catalogue import Catalogue
from session_magics.errors import SandboxError, SessionExists, SessionNotFound, StoreError
from session_magics.model import Exited, FailedToStart, Lost, SessionInfo, State, describe
from session_magics.session import GRACE, Session
from session_magics.together import stop_each


class Endings(Catalogue):
    """What a registry does about the end of its sessions."""

    def remove(self, name: str, *, force: bool = False, keep_log: bool = False) -> list[str]:
        """Forget a session that has ended; with ``force`` stop it first.

        ``keep_log`` leaves its directory with all that was recorded; only the name is free again. With ``force`` a
        session that is lost goes also where its place cannot be reached: returned is what may still run there.

        Raises:
            SessionExists: it still runs, or something that it started does, or its state is not known.
            SessionNotFound: there is none of that name.
            SandboxError: what it has left elsewhere cannot be reached; it is kept.
        """
        return self._remove(*self.removable(name, force=force), force=force, keep_log=keep_log)

    def removable(self, name: str, *, force: bool = False) -> tuple[str, str]:
        """Check that ``remove`` may be done and change nothing; the name's key and id. Raises as ``remove`` does."""
        try:
            key, id = self._find(name)
        except StoreError:
            damaged = {f"{name}@{self.owner}", name}.intersection(self.store.damaged_names())
            if not damaged:
                raise
            key, id = max(damaged, key=len), ""
        if id is None:
            raise SessionNotFound(name, self._known())
        if id and not force and (running := [one.name for one in self.descendants(id) if not over(one.state)]):
            end = "ends" if len(running) == 1 else "end"
            raise SessionExists(name, f"{' and '.join(running)}, which {end} with it, still running", kept=True)
        if id and not force and not over(state := Session(self.store, self.backend, name, id).settled()):
            raise SessionExists(name, describe(state), kept=True)
        return key, id

    def _remove(self, key: str, id: str, *, force: bool, keep_log: bool) -> list[str]:
        left: list[str] = []
        for below, child in self._children(id).items() if id else ():
            left += self._remove(below, child.id, force=force, keep_log=keep_log)
        if id:
            state = self.store.state(id)
            if force and not over(state):
                Session(self.store, self.backend, self._shown(key), id).stop()
            else:
                try:
                    self._end_what_lives_on(key, id, state)
                except SandboxError as error:
                    if not force:
                        raise SandboxError(error.place, f"{error.reason}: remove --force forgets it") from None
                    left.append(f"{self._shown(key)}: {error}")
        self.store.remove(id, key, keep_log=keep_log)
        return left

    def _end_what_lives_on(self, key: str, id: str, state: State) -> None:
        """End what a program that has ended left behind, and what has lost its holder."""
        behind = isinstance(state, Exited) and state.background
        if behind or isinstance(state, Lost) or (over(state) and abandoned(self.store.directory(id))):
            Session(self.store, self.backend, self._shown(key), id).stop()

    def children(self, id: str) -> list[SessionInfo]:
        """The sessions that end with the one of this id: first those that run, and of these the newest."""
        return sorted(self._children(id).values(), key=lambda info: (info.running, info.id), reverse=True)

    def _children(self, id: str) -> dict[str, SessionInfo]:
        """The same by the keys of their names."""
        noted = self.store.children(id)
        names = self.store.names() if noted else {}
        return {key: self.store.info(child, self._shown(key)) for key, child in names.items() if child in noted}

    def descendants(self, id: str) -> list[SessionInfo]:
        """The children of that session, theirs, and so on."""
        children = self.children(id)
        return children + [below for child in children for below in self.descendants(child.id)]

    def family(self, sessions: Sequence[Session]) -> list[Session]:
        """These sessions and the descendants of theirs that live: what a stop has to wait for."""
        every = {session.id: session for session in sessions}
        for parent in sessions:
            for info in self.descendants(parent.id):
                if not over(info.state):
                    every.setdefault(info.id, Session(self.store, self.backend, info.name, info.id))
        return list(every.values())

    def stop_all(
        self,
        labels: Mapping[str, str] | None = None,
        *,
        grace: float = GRACE,
        now: bool = False,
        left: Callable[[Sequence[str]], None] = lambda names: None,
    ) -> list[str]:
        """Stop every session (with these labels) that has a living process, all at once; the names of those stopped.

        ``grace`` is in seconds, ``now`` forces at once, ``left`` is told what is not over yet; see ``stop_each``.
        Shells that belong to other kernels are left alone: they end with their kernel, or are stopped by name.

        Raises:
            SessionError: some could not be stopped; the text says which, and all others are.
        """
        infos = [info for info in self.infos(labels) if _stoppable(info) and "@" not in info.name and info.id]
        sessions = [Session(self.store, self.backend, info.name, info.id) for info in infos]
        stop_each(self.family(sessions), grace=grace, now=now, left=left)
        return [info.name for info in infos]


def over(state: State) -> bool:
    """Whether no process of the session lives, as far as the record knows."""
    return isinstance(state, Lost | FailedToStart) or (isinstance(state, Exited) and not state.background)


def _stoppable(info: SessionInfo) -> bool:
    return not over(info.state) or may_live_on(info.directory, info.id)
