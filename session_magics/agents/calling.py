"""What is run when a tool is started, and when it is to go on with the same conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from session_magics.agents.arguments import resume_arguments, start_arguments
from session_magics.agents.conversation import learn
from session_magics.agents.tools import command_line, tool_named, tools
from session_magics.log import LogReader


@dataclass(frozen=True)
class Calling:
    """How a tool is called: the first time, and in later generations. ``args``: what the person wants of it."""

    argv: tuple[str, ...]
    args: tuple[str, ...]
    again: tuple[str, ...]
    conversation: str | None
    """Id of the conversation, where it was given and need not be looked for."""
    env: Mapping[str, str] = field(repr=False)


def calling(name: str, args: Sequence[str], root: Path, *, approve_all: bool) -> Calling:
    """How the tool of that name is called; ``root`` may have the user's own tools.

    Raises:
        UsageMistake: there is no such tool, or it is not installed.
    """
    tool = tool_named(name, tools(root))
    first = start_arguments(tool, args, approve=approve_all)
    again = resume_arguments(tool, first.args, first.conversation)
    return Calling(command_line(tool, first.args), first.kept, command_line(tool, again), first.conversation, tool.env)


def calling_again(
    name: str, args: Sequence[str], directory: Path, root: Path
) -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The argv and the variables with which a tool goes on with its conversation.

    ``directory``: of its session, in whose log the conversation's id is looked for if it was not given. Where there
    is none, the tool takes up its newest conversation.

    Raises:
        UsageMistake: as ``calling``.
    """
    tool = tool_named(name, tools(root))
    with LogReader(directory) as log:
        conversation = learn(directory, tool, log)
    return command_line(tool, resume_arguments(tool, args, conversation)), tool.env
