"""What may be started: checks of a command, and the shells that cells can be run in."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from session_magics.errors import UsageMistake
from session_magics.model import Command

DIALECTS = {"bash": "bash", "zsh": "zsh", "sh": "sh", "dash": "sh", "ksh": "sh", "mksh": "sh", "fish": "fish"}
"""Program name of a shell → the dialect it is spoken to in."""


def find_shell(name: str) -> tuple[str, str]:
    """The path of a shell and its dialect, by name or path; UsageMistake if there is none."""
    program = shutil.which(name)
    if program is None:
        raise UsageMistake(f"no shell {name!r} on this machine: install it, or take bash, zsh, fish or sh")
    return program, DIALECTS.get(os.path.basename(program), "sh")


def has_prompt(argv: Sequence[str]) -> bool:
    """Whether it is a shell that is given neither a script nor a command: at a prompt it ignores TERM."""
    return os.path.basename(argv[0]) in DIALECTS and all(word[:1] == "-" for word in argv[1:])


def check_command(command: Command) -> None:
    """Raise UsageMistake for a command that no system could start."""
    texts = [*command.argv, command.cwd or "", *command.env, *[one for one in command.env.values() if one is not None]]
    if not command.argv or not command.argv[0]:
        raise UsageMistake("no program to start: give one, such as python3 -m http.server")
    if any("\0" in one for one in texts):
        raise UsageMistake("a command, its directory and its environment cannot hold a NUL character")
    if any("=" in one or not one for one in command.env):
        raise UsageMistake("a variable's name has no '=' and is not empty")
