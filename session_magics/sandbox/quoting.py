"""Commands as text that any login shell hands on unchanged, and that a POSIX shell then runs.

A login shell may be bash, fish, csh or anything else. What it is given is ``exec /bin/sh -c '…'`` where between the
quotes only characters stand that no shell treats specially there: a backslash comes before a digit only (fish has \\\\
and \\', csh \\! and a line's end), everything else is written as octal digits, which ``printf %b`` undoes.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping

from session_magics.errors import UsageMistake
from session_magics.model import Command

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -_./=:,+@%")
"""Bytes that mean themselves between any shell's single quotes, between double quotes, and to printf."""
_PLAIN_IN_A_LINE = _PLAIN | frozenset(b"'\"$`!;&|<>()[]{}*?#~^")
"""Those that mean themselves in a line that ``read -r`` takes and printf undoes."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWN_BUSINESS = re.compile(
    "_|BASHOPTS|BASHPID|BASH_VERSINFO|EUID|FUNCNAME|GROUPS|IFS|LINENO|MAILCHECK|OLDPWD|OPTIND|PPID|PS4|PWD|RANDOM"
    "|SECONDS|SHELLOPTS|SHLVL|UID"
)
"""Variables that a shell keeps itself: assigned there, they are refused or become something else."""


def encoded(data: bytes, plain: frozenset[int] = _PLAIN) -> str:
    """The bytes as ``printf %b`` undoes them."""
    return "".join(chr(byte) if byte in plain else f"\\0{byte:03o}" for byte in data)


def login_line(script: str, marks: Mapping[str, str] | None = None) -> str:
    """The command line for an unknown login shell that runs a script of ``sh`` in its place.

    ``marks``: variables that the ``sh`` itself has; plain words, as they are seen in the lists of processes.
    """
    words = "".join(f" {name}={value}" for name, value in (marks or {}).items())
    environment = f"env{words} " if words else ""
    return f"""exec {environment}/bin/sh -c 'eval "$(printf %b "{encoded(os.fsencode(script))}")"'"""


def input_line(script: str) -> bytes:
    """The script as one line of input; ``READ_LINE`` runs it."""
    return encoded(os.fsencode(script), _PLAIN_IN_A_LINE).encode() + b"\n"


READ_LINE = 'IFS= read -r line && eval "$(printf %b "$line")"'
"""Runs a script that comes as one line of standard input, and takes no byte of what follows it."""


def executing(command: Command) -> str:
    """A script that becomes the program, with its variables; for a subshell, as names of the script are overwritten."""
    if command.argv[0].startswith("-"):
        raise UsageMistake(f"{command.argv[0]!r} cannot be run by a shell: a program's name begins with no '-'")
    lines, words = [], []
    for name, value in command.env.items():
        if _OWN_BUSINESS.fullmatch(name) or not _NAME.fullmatch(name):
            words += ["-u", name] if value is None else [f"{name}={value}"]
        elif value is None:
            lines.append(f"unset {name}")
        else:
            lines.append(f"export {name}={shlex.quote(value)}")
    removed = [word for word in words if "=" not in word]  # options of env come before what it sets
    program = ["env", *removed, *(word for word in words if "=" in word)] if words else []
    return "\n".join([*lines, f"exec {shlex.join([*program, *command.argv])}"])


def entering(root: str | None, cwd: str | None) -> str:
    """A script that goes to a directory below ``root``, or calls ``refuse`` with root, missing or outside.

    Both are absolute; without a root a directory may also be relative to where the login begins.
    """
    lines = []
    if root is not None:
        lines.append(f'cd -P -- {shlex.quote(root)} 2>/dev/null || refuse root; root=$(pwd -P); root="${{root%/}}"')
    if cwd:
        path = cwd if cwd.startswith("/") else f"./{cwd}"
        lines.append(f"cd -P -- {shlex.quote(path)} 2>/dev/null || refuse missing")
    if root is not None and cwd:
        lines.append('case "$(pwd -P)/" in "$root"/*) ;; *) refuse outside ;; esac')
    return "\n".join(lines)
