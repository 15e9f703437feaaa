"""The environment that sessions start with."""

from __future__ import annotations

import os
from collections.abc import Mapping

from session_magics.holder.trees import RUN

COOKIE = "SESSION_MAGICS_SESSION"
"""Carries the session's id into everything that it starts, so that a stop finds what left the tree."""
OF_THE_KERNEL = ("COLUMNS", "LINES", "FORCE_COLOR", "CLICOLOR_FORCE", "PS1", "PS2", "PS4", "PROMPT_COMMAND", RUN)
"""Set for a kernel, for another terminal or for a command in a sandbox, and wrong on a terminal of one's own."""
POOR_TERMS = ("", "dumb", "linux", "unknown", "xterm", "xterm-color")
"""Fewer colours than the views have, whatever terminal the server was started in."""


def environment(command_env: Mapping[str, str | None], *, session_id: str, shell: bool) -> dict[str, str]:
    """This process's environment made fit for a session, with the command's own variables over it.

    What ipykernel sets for itself (colour switches, its matplotlib backend) is left out. A shell's pagers default
    to ``cat``, as nobody pages through a notebook cell.
    """
    env = {key: value for key, value in os.environ.items() if key not in OF_THE_KERNEL and not key.startswith("JPY_")}
    if env.get("MPLBACKEND", "").startswith("module://matplotlib_inline"):
        del env["MPLBACKEND"]
    if env.get("TERM", "") in POOR_TERMS:
        env["TERM"] = "xterm-256color"
    if shell:
        env |= {"PAGER": env.get("PAGER", "cat"), "GIT_PAGER": env.get("GIT_PAGER", "cat"), "PS1": "", "PS2": ""}
    for key, value in command_env.items():
        if value is None:
            env.pop(key, None)
        else:
            env[key] = value
    return env | {COOKIE: session_id}


def far_environment(
    command_env: Mapping[str, str | None], *, session_id: str, shell: bool
) -> tuple[dict[str, str], tuple[str, ...]]:
    """What is added to the environment that a place has, and the names that are removed there."""
    env = {"TERM": "xterm-256color"} | ({"PAGER": "cat", "GIT_PAGER": "cat", "PS1": "", "PS2": ""} if shell else {})
    env |= {key: value for key, value in command_env.items() if value is not None}
    return env | {COOKIE: session_id}, tuple(key for key, value in command_env.items() if value is None)
