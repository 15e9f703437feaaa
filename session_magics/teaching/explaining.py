"""A friendly line about a command that failed, where something certain can be said."""

from __future__ import annotations

import os.path

from session_magics.model import CellResult
from session_magics.session import Session
from session_magics.teaching.advice import about
from session_magics.teaching.complaints import Complaint, complaints
from session_magics.teaching.failure import Failure

ENDINGS = {
    126: "Status 126: what was to be run was found, but could not be executed.",
    127: "Status 127: a command was not found.",
    130: "Status 130: the command was interrupted (128 + 2, the signal of Ctrl-C).",
    137: "Status 137: the command was killed by force (128 + 9, the signal KILL), by somebody or for want of memory.",
    139: "Status 139: the program crashed (128 + 11, the signal SEGV): it used memory that it does not have.",
    141: "Status 141: nobody read on what the command wrote into a pipe (128 + 13, the signal PIPE); often harmless.",
    143: "Status 143: the command was asked to end (128 + 15, the signal TERM).",
}
"""Statuses that mean the same everywhere."""
QUIET = {
    "grep": "`grep` found no line: it prints nothing then, and its status is 1.",
    "diff": "`diff` found differences: its status is 1 then.",
    "cmp": "`cmp` found a difference: its status is 1 then.",
    "[": "The condition is false: the status of `[ … ]` is 1 then.",
    "test": "The condition is false: the status of `test` is 1 then.",
    "false": "`false` does nothing but fail: that is what it is for.",
}
"""Programs whose status 1 is an answer and no error."""


def explanation(session: Session, result: CellResult) -> str | None:
    """What to tell about a cell's command that has ended; None for nothing. Code stands between backticks."""
    if result.state != "done" or (result.returncode == 0 and "|" not in result.text):
        return None
    return explained(Failure.of(session, result))


def explained(failure: Failure) -> str | None:
    """The same for what is known of it."""
    for complaint in complaints(failure.tail):
        if _is_its_own(failure, complaint) and (text := about(failure, complaint)) is not None:
            return text
    if failure.status == 1 and failure.last and (failure.last[0] != "grep" or not failure.tail.strip()):
        return QUIET.get(failure.last[0])
    return ENDINGS.get(failure.status)


_OF_PROGRAMS = frozenset(
    {"no-file", "denied", "directory", "no-directory", "exists", "not-empty", "option", "operand", "interpreter"}
)
"""Kinds that programs report too, whose lines may stand in any output."""


def _is_its_own(failure: Failure, complaint: Complaint) -> bool:
    """Whether the command itself complains, and does not show a file in which such a line stands.

    Of a pipe that ends well, only a part that is no command at all is told.
    """
    it = complaint.it
    if complaint.kind == "no-command":
        return (failure.status == 127 and it != "") or it in failure.words
    if failure.status == 0:
        return False
    if complaint.kind not in _OF_PROGRAMS:
        return True
    if complaint.kind in ("option", "operand") or "$" in failure.command:
        return complaint.program in failure.words
    return os.path.basename(it.rstrip("/")) in failure.command
