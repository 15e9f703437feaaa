"""What a front end is told about each shell: how cells are highlighted, and what a script is called."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass

VERSION_LIMIT = 2.0
"""Seconds for a shell to say its version; it needs some milliseconds."""


@dataclass(frozen=True)
class Language:
    """One shell language. ``version`` is shell text that prints the version."""

    name: str
    extension: str
    version: str
    manual: str

    def info(self, program: str) -> dict[str, object]:
        """Jupyter's ``language_info`` for the shell at hand."""
        return {
            "name": self.name,
            "version": _printed(program, self.version),
            "mimetype": "text/x-sh",  # one for all: front ends know a mode for this one alone
            "file_extension": self.extension,
            "codemirror_mode": "shell",
            "pygments_lexer": self.name,
            "nbconvert_exporter": "script",
        }


LANGUAGES = {
    "bash": Language("bash", ".sh", 'printf %s "$BASH_VERSION"', "https://www.gnu.org/software/bash/manual/"),
    "zsh": Language("zsh", ".zsh", 'printf %s "$ZSH_VERSION"', "https://zsh.sourceforge.io/Doc/"),
    "fish": Language("fish", ".fish", "printf %s $version", "https://fishshell.com/docs/current/"),
}
OTHER = Language("sh", ".sh", ":", "https://pubs.opengroup.org/onlinepubs/9799919799/utilities/V3_chap02.html")


def language(program: str) -> Language:
    """The language of a shell, by its name or path."""
    return LANGUAGES.get(os.path.basename(program), OTHER)


def _printed(program: str, text: str) -> str:
    try:
        done = subprocess.run(
            [program, "-c", text],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=VERSION_LIMIT,
        )
    except (OSError, subprocess.SubprocessError):
        return ""  # it is not there; the first cell says so
    return done.stdout.strip()
