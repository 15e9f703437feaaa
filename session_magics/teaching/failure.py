"""A command that has failed, and what can be found out about it: files where it ran, names that its shell knows."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from session_magics import text
from session_magics.completion.answering import command_names
from session_magics.model import CellResult
from session_magics.session import Session
from session_magics.teaching.evidence import Found, look_here, look_there
from session_magics.teaching.words import last_command, tokens

TAIL_BYTES = 16 * 1024
"""Bytes at the end of the output in which the shell's complaint is looked for."""
TAIL_LINES = 12
"""Lines of them: the complaint comes last, and fish adds a picture of the place."""
NAMES_LIMIT = 3.0
"""Seconds in which its shell has to say what commands there are; on a quiet machine it takes a twentieth of one."""


@dataclass(frozen=True)
class Failure:
    """One command and its outcome. What is looked up is looked up once, when a rule asks."""

    session: Session
    dialect: str
    far: bool
    status: int
    command: str
    tail: str
    """The last lines of the output as plain text."""
    cwd: str
    _seen: dict[str, Found] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, session: Session, result: CellResult) -> Failure:
        """What is known about a cell's command that has ended."""
        info = session.info()
        output = text.plain(session.output(max(result.begin, result.end - TAIL_BYTES), result.end))
        tail = "\n".join(output.rstrip("\n").split("\n")[-TAIL_LINES:])
        return cls(session, info.shell or "sh", info.on is not None, result.returncode, result.text, tail, result.cwd)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Words and operators of the command, in order."""
        return tuple(tokens(self.command))

    @cached_property
    def last(self) -> tuple[str, ...]:
        """The words of the last simple command."""
        return tuple(last_command(self.command))

    def look(self, path: str) -> Found:
        """What a path leads to, seen from where the shell is now."""
        if path not in self._seen:
            self._seen[path] = (look_there if self.far else look_here)(self.session, self.cwd, (path,))[2][path]
        return self._seen[path]

    def missing(self, path: str) -> str:
        """The first part of a path that is not there; "" if all of it is, or is not to be known."""
        parts = path.rstrip("/").split("/")
        for count in range(1, len(parts) + 1):
            part = "/".join(parts[:count])
            if part and not self.look(part).kind:
                return part
        return ""

    @cached_property
    def commands(self) -> tuple[str, ...]:
        """The names of the commands that the shell knows."""
        names = command_names(self.session, NAMES_LIMIT)
        return tuple(sorted(name for name in names if name[0] not in "_."))
