"""The verbs that belong to coding agents."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from session_magics.errors import UsageMistake
from session_magics.registry import Registry
from session_magics.session import Session

if TYPE_CHECKING:  # most verbs need none of it
    from session_magics.agents.attachments import Gallery
    from session_magics.agents.audit import Record
    from session_magics.agents.probing import Installed
    from session_magics.agents.standing import Standing

LAST_DECISIONS = 10
"""Decisions that ``approve NAME`` shows."""


class Tools(list["Installed"]):
    """What ``tools`` returns: the tools, shown as a table."""

    def _repr_pretty_(self, printer: object, _cycle: bool) -> None:
        printer.text(str(self))  # type: ignore[attr-defined]

    def __str__(self) -> str:
        rows = [("TOOL", "PROGRAM", "VERSION", "PATH")]
        rows += [(one.name, one.title, one.version or "", one.path or "not installed") for one in self]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        )


class Approvals(list[str]):
    """What ``approve`` returns: how the approval of sessions stands, and what it decided, as lines."""

    def _repr_pretty_(self, printer: object, _cycle: bool) -> None:
        printer.text(str(self))  # type: ignore[attr-defined]

    def __str__(self) -> str:
        return "\n".join(self)


class AgentVerbs:
    """One method a verb; ``Verbs`` has the others."""

    _registry: Registry
    _terminal: Callable[..., object] | None

    def _tools(self, words: Namespace) -> Tools:
        from session_magics.agents.probing import installed
        from session_magics.agents.tools import tools

        return Tools(installed(tools(self._registry.store.root)))

    def _attachments(self, words: Namespace) -> Gallery:
        from session_magics.agents.attachments import Attachments  # few need it

        session = self._registry.get(words.name)
        info = session.info()
        if info.on is not None:
            raise UsageMistake(f"the files of {words.name!r} are on {info.on}: %session copy brings them here")
        return Attachments(session.directory, info.cwd).scan()

    def _shell(self, words: Namespace) -> object:
        session = self._registry.child_shell(words.name)
        if self._terminal is None or words.json:
            return session
        return self._terminal(session, read_only=False, rows=None)

    def _tmux(self, words: Namespace) -> None:
        from session_magics.backends.tmux import act

        act(self._registry.get(words.name).info(), words.action)

    def _approve(self, words: Namespace) -> Approvals:
        from session_magics.agents.audit import newest
        from session_magics.agents.grants import revoke_all
        from session_magics.agents.standing import standing

        sessions = [self._registry.get(words.name)] if words.name else self._every()
        if words.off:
            names = revoke_all(sessions)
            return Approvals([f"{name}: approval is off" for name in names] or ["no approval was on"])
        if words.allow or words.deny:
            return Approvals([_told(sessions[0], self._granted(sessions[0], words))])
        told = [_told(session, found) for session in sessions if (found := standing(session.directory)) is not None]
        if words.name:
            told += map(_decision, newest(sessions[0].directory, LAST_DECISIONS))
        return Approvals(told or ["approval was never on: approve NAME --allow RULE"])

    def _granted(self, session: Session, words: Namespace) -> Standing:
        from session_magics.agents.grants import grant
        from session_magics.agents.probing import version
        from session_magics.agents.tools import find, tool_named, tools

        info = session.info()
        tool = tool_named(info.tool, tools(self._registry.store.root)) if info.tool is not None else None
        program = find(tool) if tool is not None else None
        release = version(tool, program) if tool is not None and program is not None else None
        limits = {key: value for key, value in (("minutes", words.minutes), ("most", words.most)) if value is not None}
        return grant(session, tool, allow=words.allow, deny=words.deny, version=release, **limits)

    def _every(self) -> Sequence[Session]:
        """All sessions: what a damaged record no longer tells to be a tool's may be approved as well."""
        found = [self._registry.find(info.name) for info in self._registry.infos() if info.id]
        return [session for session in found if session is not None]  # one may be removed meanwhile


def _told(session: Session, found: Standing) -> str:
    if found.on:
        rules = ", ".join((*found.allow, *(f"not {rule}" for rule in found.deny)))
        waiting = f" · waits for you: {found.reason}" if found.reason else ""
        return f"{session.name}: {found.badge} · {found.answered} answered · {rules}{waiting}"
    return f"{session.name}: approval is off ({found.reason}) · {found.answered} answered"


def _decision(record: Record) -> str:
    """One line of the audit log, for people."""
    decision, doing = record["decision"], record["sight"]["doing"]
    clock = time.strftime("%H:%M:%S", time.localtime(record["time"]))
    asked = (doing["prompt"] or {}).get("subject") or doing["question"]
    why = decision.get("rule") or decision.get("reason", "")
    return f"  {clock} {decision['kind']}: {asked} · {why}"
