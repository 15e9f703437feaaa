"""Finding sessions by name, and listing them."""

from __future__ import annotations

from collections.abc import Mapping

from session_magics.backends import Backend
from session_magics.errors import SessionNotFound, UsageMistake
from session_magics.model import ENGINE_MARK, SessionInfo, check_name
from session_magics.session import Session
from session_magics.store import Store
from session_magics.store.names import name_key


class Catalogue:
    """The names below one root as one process sees them: its own ``kernel`` sessions, and the detached ones.

    ``owner`` is the token of the process. Nothing is remembered: every call reads the directory.
    """

    def __init__(self, store: Store, backend: Backend, owner: str) -> None:
        self.store, self.backend, self.owner = store, backend, owner

    def get(self, name: str) -> Session:
        """The session of that name: this process's own, then the detached ones; ``NAME@TOKEN``: another process's.

        Raises:
            SessionNotFound: there is none; the error lists those that exist.
            UsageMistake: no session can have that name.
            StoreError: the record of the name is damaged.
        """
        key, id = self._find(name)
        if id is None:
            raise SessionNotFound(name, self._known())
        return Session(self.store, self.backend, self._shown(key), id)

    def find(self, name: str) -> Session | None:
        """Like ``get``, but None where there is no such session."""
        key, id = self._find(name)
        return None if id is None else Session(self.store, self.backend, self._shown(key), id)

    def _find(self, name: str) -> tuple[str, str | None]:
        plain, at, owner = name.partition("@")
        check_name(plain)
        if ENGINE_MARK in name:
            raise UsageMistake(f"{name!r} is on an engine, which %session reaches, and %%px with %%sh_session")
        if at:
            key = name_key(plain, owner)
            return key, self.store.resolve(key)
        for key in (name_key(plain, self.owner), plain):
            if id := self.store.resolve(key):
                return key, id
        return plain, None

    def _shown(self, key: str) -> str:
        return key.removesuffix(f"@{self.owner}")

    def _known(self) -> list[str]:
        return [self._shown(key) for key in self.store.names()]

    def infos(self, labels: Mapping[str, str] | None = None) -> list[SessionInfo]:
        """All sessions, oldest first, or those that carry all the labels."""
        infos = [info for info in self.store.infos(self.owner).values() if _carries(info, labels or {})]
        return sorted(infos, key=lambda info: info.id)


def _carries(info: SessionInfo, labels: Mapping[str, str]) -> bool:
    return all(info.labels.get(key) == value for key, value in labels.items())
