"""Which paths matter: what must not be removed, what holds secrets, what is run by itself later."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from posixpath import join, normpath

from session_magics.agents.verdicts.shelldata import DATA

# A last component that names everything in its directory: "*", ".*", ".[!.]*", "?*".
_SWEEPING = re.compile(r"(?=.*\*)(?:[*.?]|\[[^\]]*\])+")
_PATTERN = re.compile(r"[*?\[]")
_TOKENS = re.compile(r"[\s@=,:;'\"()<>|`]+")
# Components of a path that are compared; the longest of the tables has fewer.
_COMPARED = 12


def _parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


def _alike(pattern: Sequence[str], known: Sequence[str]) -> bool:
    return all(known_part == part or _fits(known_part, part) for known_part, part in zip(known, pattern, strict=False))


def _fits(known: str, part: str) -> bool:
    return fnmatchcase(known, part) if any(char in part for char in "*?[") else fnmatchcase(part, known)


def below(path: str, known: str) -> bool:
    """Whether a path, which may be a pattern, is ``known`` or in it."""
    if not _PATTERN.search(path) and not _PATTERN.search(known):
        return path == known or path.startswith(known.rstrip("/") + "/")
    parts, wanted = _parts(path)[:_COMPARED], _parts(known)
    return len(parts) >= len(wanted) and _alike(parts, wanted)


def same(path: str, known: str) -> bool:
    """Whether a path, which may be a pattern, is ``known``."""
    return len(_parts(path)) == len(_parts(known)) and below(path, known)


def _marks() -> re.Pattern[str]:
    """What an argument must hold to name a secret: most are told apart at once."""
    tables = DATA["credentials"]
    known = [path.rpartition("/")[2] for path in (*tables["home"], *tables["absolute"], *tables["names"])]
    return re.compile("|".join([r"[*?\[~]", r"\.\.", r"\.env", r"/$", *map(re.escape, sorted(set(known)))]))


_MARKS = _marks()


@dataclass(frozen=True)
class Places:
    """The paths that matter for a command in ``cwd`` of the user of ``home``."""

    cwd: str
    home: str

    def absolute(self, text: str, base: str | None = None) -> str:
        """The path that a word names, without "..", "." and doubled slashes; links are not followed."""
        if text == "~" or text.startswith("~/"):
            text = self.home + text[1:]
        path = normpath(join(base or self.cwd, text))
        return "/" + path.lstrip("/") if path.startswith("/") else path

    @cached_property
    def _in_secrets(self) -> bool:
        """Whether plain names may be secrets, as the commands run among them."""
        return self.credential(self.cwd)

    def inside(self, path: str) -> bool:
        return path == self.cwd or path.startswith(self.cwd.rstrip("/") + "/")

    @cached_property
    def _precious(self) -> tuple[str, ...]:
        """What no recursive command may touch: the tops, home with its main directories, and all above ``cwd``."""
        system = DATA["system"]
        return (
            *system["tops"],
            *(join(self.home, name).rstrip("/") for name in system["home"]),
            join(self.home.rpartition("/")[0], "*"),
            *_parents(self.home),
            *_parents(self.cwd),
        )

    def precious(self, path: str, *, itself: bool = True) -> bool:
        """Whether a command that goes through a whole tree would do lasting harm there."""
        swept = False
        while len(path) > 1 and _SWEEPING.fullmatch(path.rpartition("/")[2]):
            path, swept = path.rpartition("/")[0] or "/", True
        if any(same(path, known) for known in self._precious):
            return True
        if any(below(path, tree) for tree in DATA["system"]["trees"]) and not (
            below(path, "/usr/local") and len(_parts(path)) > 3
        ):
            return True
        return itself and not swept and (path == self.cwd or same(path, join(self.cwd, ".git")))

    def device(self, path: str) -> bool:
        return below(path, "/dev") and _parts(path)[1:2] not in [
            (name,) for name in ("fd", "tcp", "udp", "shm", "pts", *DATA["system"]["devices"])
        ]

    def system(self, path: str) -> bool:
        return any(below(path, tree) for tree in DATA["system"]["trees"]) and not (
            below(path, "/usr/local") or below(path, "/dev")
        )

    def startup(self, path: str) -> bool:
        """Whether shells, the login or the agents themselves run or obey the file later."""
        return any(below(path, join(self.home, name)) for name in DATA["startup"]["home"])

    def obeyed(self, path: str) -> bool:
        """Whether a file of a project makes later commands run others, or may hold its secrets."""
        parts = _parts(path)
        if any(name in parts for name in DATA["startup"]["project"]):
            return True
        if any("/" in name and path.endswith("/" + name) for name in DATA["startup"]["project"]):
            return True
        return self._project_secret(path)

    def credential(self, path: str) -> bool:
        """Whether the file or directory holds keys or passwords of the user."""
        name = path.rpartition("/")[2]
        tables = DATA["credentials"]
        if any(fnmatchcase(name, public) for public in tables["public"]):
            return False
        return (
            name in tables["names"]
            or any(below(path, join(self.home, known)) for known in tables["home"])
            or any(below(path, known) for known in tables["absolute"])
        )

    def secret(self, path: str) -> bool:
        """The same, with the files in which projects keep theirs, and directories that hold all of a user's."""
        return self.private(path) or path in ("/", self.home)

    def private(self, path: str) -> bool:
        """Whether the file holds secrets, of the user or of a project."""
        return self.credential(path) or self._project_secret(path)

    def _project_secret(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        tables = DATA["credentials"]
        return any(fnmatchcase(name, kind) for kind in tables["project"]) and not any(
            fnmatchcase(name, kind) for kind in tables["samples"]
        )

    def named(self, text: str) -> Iterator[str]:
        """The paths with secrets that an argument may name, also behind ``@``, ``=``, ``:`` and short options."""
        if not (self._in_secrets or self.home in text or _MARKS.search(text)):
            return
        for token in {text, *_TOKENS.split(text)}:
            if token and len(token) < 1024:
                yield self.absolute(re.sub(r"^-[A-Za-z](?=[~/.])", "", token))


def _parents(path: str) -> tuple[str, ...]:
    parts = _parts(path)
    return tuple("/" + "/".join(parts[:count]) for count in range(len(parts)))
