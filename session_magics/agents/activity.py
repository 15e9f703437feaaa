"""What each agent is doing now: by its screen once that stands still, and by its output until then."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from session_magics.agents.attachments import Attachments
from session_magics.agents.conversation import learn
from session_magics.agents.media import estimate
from session_magics.agents.prompts import read_screen
from session_magics.agents.standing import standing
from session_magics.agents.tools import Tool, tools_or_built_in
from session_magics.errors import SessionError
from session_magics.log import LogReader, log_changed
from session_magics.model import LOGIN_SHELL, Exited, SessionInfo
from session_magics.text import strip_styles
from session_magics.text.amounts import short_time
from session_magics.text.screen import SNAPSHOT_BYTES, picture

EARLY = 256 * 1024
"""Bytes of a log, from its beginning, in which the id of the conversation is looked for: tools tell it at first."""
SCANNED = 4 * 1024 * 1024
"""Bytes of the longest log in which attachments are counted for a line of a list; it takes up to 0.1 s."""
NAMES = 1_000
"""Most names in it, about: each takes 0.03 ms."""
QUIET = 0.8
"""Seconds without output after which a screen is read: agents draw a sign of working several times a second, and a
reading takes up to 60 ms."""


@dataclass(frozen=True)
class Activity:
    """What one agent does; of a program that is no known tool, nothing."""

    state: Literal["", "working", "waiting", "idle", "finished"] = ""
    question: str = ""
    """What it waits for, in one line."""
    badge: str = ""
    """How its approval by rule stands, where that is on."""
    after: float = 0.0
    """Seconds that it took to finish."""
    attachments: int = 0
    """Files to look at that it has named and left."""

    def __str__(self) -> str:
        doing: str = self.state
        if self.state == "waiting" and self.question:
            doing = f"waiting: {self.question}"
        elif self.state == "finished":
            doing = f"finished after {short_time(self.after)}"
        left = f"{self.attachments} attachment{'s'[: self.attachments != 1]}" if self.attachments else ""
        return " · ".join(filter(None, (self.badge, doing, left)))  # a table cuts the end


NOTHING = Activity()


class ActivityReader:
    """Tells what agents do; remembers screens that have not changed. For one thread."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, Activity]] = {}
        self._tools: Mapping[str, Tool] | None = None

    def read(self, info: SessionInfo) -> Activity:
        """What the program of a session does now. Raises nothing: what cannot be read is not told."""
        if info.tool in (None, LOGIN_SHELL):
            return NOTHING
        with contextlib.suppress(SessionError, OSError):
            if not info.running:
                return self._end(info)
            approval = standing(info.directory)
            state, question = self._screen(info)
            return Activity(state, question, approval.badge if approval is not None else "")
        return NOTHING

    def _end(self, info: SessionInfo) -> Activity:
        if not isinstance(info.state, Exited):
            return NOTHING
        known = self._known.get(info.id)
        if known is None or known[0] != info.log_bytes or known[1].state != "finished":
            after = info.state.at - info.since
            known = (info.log_bytes, Activity("finished", after=after, attachments=_attachments(info)))
            self._known[info.id] = known
        return known[1]

    def _screen(self, info: SessionInfo) -> tuple[Literal["", "working", "waiting", "idle", "finished"], str]:
        known = self._known.get(info.id)
        if known is not None and known[0] == info.log_bytes and known[1].state != "finished":
            return known[1].state, known[1].question
        if time.time() - log_changed(str(info.directory)) < QUIET:
            return "working", ""
        tool = self._tool(info)
        with LogReader(info.directory) as log:
            end = log.end()
            if tool is not None:  # while it is there: the log may lose its beginning
                learn(info.directory, tool, log, EARLY)
            data = log.bytes(max(0, end - SNAPSHOT_BYTES), end)
        shown = picture(data, info.size, behind=False, returns=False)
        prompts = tool.prompts if tool is not None else ""
        doing = read_screen([strip_styles(line) for line in shown.lines], shown.row, prompts)
        self._known[info.id] = (info.log_bytes, Activity(doing.state, doing.question))
        return doing.state, doing.question

    def _tool(self, info: SessionInfo) -> Tool | None:
        if self._tools is None:
            self._tools = tools_or_built_in(Path(info.directory).parent.parent)
        return self._tools.get(info.tool or "")


def _attachments(info: SessionInfo) -> int:
    """How many attachments a session has left; 0 where it would take long to find out."""
    if info.log_bytes > SCANNED:
        return 0
    with LogReader(info.directory) as log:
        names = sum(estimate(data) for _, data in log.read(log.start(), log.end()))
    return len(Attachments(info.directory, info.cwd).scan()) if names <= NAMES else 0
