"""What a front end is told about each shell: how cells are highlighted, and what a script is called."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass

VERSION_LIMIT = 2.0
"""Seconds for a shell to say its version; it needs some milliseconds."""


@dataclass(frozen=True)
class Language:
    """One shell language."""

    name: str
    extension: str
    manual: str

    def info(self, program: str) -> dict[str, object]:
        """Jupyter's ``language_info`` for the shell at hand."""
        return {
            "name": self.name,
            "version": _version(program),
            "mimetype": "text/x-sh",  # one for all: front ends know a mode for this one alone
            "file_extension": self.extension,
            "codemirror_mode": "shell",
            "pygments_lexer": self.name,
            "nbconvert_exporter": "script",
        }


LANGUAGES = {
    "bash": Language("bash", ".sh", "https://www.gnu.org/software/bash/manual/"),
    "zsh": Language("zsh", ".zsh", "https://zsh.sourceforge.io/Doc/"),
    "fish": Language("fish", ".fish", "https://fishshell.com/docs/current/"),
}
OTHER = Language("sh", ".sh", "https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html")


def language(program: str) -> Language:
    """The language of a shell, by its name or path."""
    return LANGUAGES.get(os.path.basename(program), OTHER)


def _version(program: str) -> str:
    """What the program says of itself, which no start-up file has a part in; "" where it says nothing."""
    try:
        done = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=VERSION_LIMIT
        )
    except (OSError, subprocess.SubprocessError):
        return ""  # it is not there; the first cell says so
    number = re.search(rb"\d+(?:\.\d+)+", done.stdout)
    return number[0].decode() if number else ""
