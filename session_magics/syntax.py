"""Whether shell text is complete, as the shell itself reads it: in a process of its own, which runs nothing of it."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

TIME_LIMIT = 1.0
"""Seconds for one reading, which takes some milliseconds; who types waits for the answer."""
INDENT = 4
"""Spaces by which a block is indented."""

Status = Literal["complete", "incomplete", "invalid", "unknown"]


@dataclass(frozen=True)
class Reading:
    """What the shell says about a text."""

    status: Status
    indent: str = ""
    """Of an incomplete text: what its next line begins with."""


@dataclass(frozen=True)
class _Reader:
    """How a shell is made to read its standard input, and what it says of a text that is only begun."""

    options: Sequence[str]
    unfinished: re.Pattern[str]
    silent_heredoc: bool = True
    """Whether a here-document that has not ended is no mistake to it."""


_END_MISSING = r"unexpected end of file|unexpected EOF while looking|end of file unexpected|delimited by end-of-file"
_QUOTE_OPEN = r"[Uu]nterminated quoted string|EOF in backquote substitution|[Mm]issing '}'|unmatched\b"
_READERS: Mapping[str, _Reader] = {
    "bash": _Reader(("--norc", "--noprofile", "-n", "-O", "extglob"), re.compile(_END_MISSING)),
    # without short loops, a "while x" that goes on in the next line is not taken for a whole one
    "zsh": _Reader(
        ("-f", "-n", "-o", "no_short_loops"),
        re.compile(r"parse error near `(?:\\n|[$<>=]\(.*|.*\()'|unmatched|closing brace expected"),
    ),
    "fish": _Reader(
        ("--no-config", "--no-execute"),
        re.compile(r"Missing end|Unexpected end of string|found end of the input|an incomplete token"),
        silent_heredoc=False,
    ),
    "sh": _Reader(("-n",), re.compile(rf"{_END_MISSING}|{_QUOTE_OPEN}|`(?:end of file|newline)' unexpected")),
}
_GOES_ON = re.compile(r"(?:&&|\|)[ \t]*(?:#.*)?\s*\Z")
"""A list that zsh takes for whole."""
_LAST_BACKSLASH = re.compile(r"(?<!\\)(?:\\\\)*\\\n?\Z")
_COMMENT = re.compile(r"(?:^|[\s;&|()])#")
_OPENER = re.compile(
    r"(?:^|[\s;&|(])(?:do|then|else|begin|in|\{)\s*\Z|[({]\s*\Z|^\s*(?:if|elif|while|for|switch|case|function)\b"
)
_FISH_OPENER = re.compile(r"^\s*(?:if|else|while|for|switch|case|function|begin)\b")


def read(text: str, program: str, dialect: str) -> Reading:
    """Have the shell ``program`` read the text; ``unknown`` if it does not say in time, or is not there."""
    if not text.strip():
        return Reading("complete")
    text = text.replace("\r\n", "\n")
    reader = _READERS[dialect]
    said = _said(program, reader, text)
    if said is None:
        return Reading("unknown")
    if reader.unfinished.search(said):
        return _incomplete(text, dialect)
    if any("warning:" not in line for line in said.splitlines() if line.strip()):
        return Reading("invalid")
    if _goes_on(text) or (dialect == "zsh" and _GOES_ON.search(text)):
        return _incomplete(text, dialect)
    # a parenthesis too many is a mistake everywhere but inside of a here-document
    if reader.silent_heredoc and "<<" in text and _said(program, reader, text + "\n)") in ("", None):
        return _incomplete(text, dialect)
    return Reading("complete")


def _said(program: str, reader: _Reader, text: str) -> str | None:
    """What the shell says about the text; None if it cannot be asked.

    The environment is bare, so that nothing in it is read or run (BASH_ENV, exported functions), and the messages are
    those that are known.
    """
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}
    argv = [program, *reader.options, *([] if "fish" in reader.options[0] else ["/dev/stdin"])]
    data = f"{text}\n".encode("utf-8", "surrogateescape")
    try:
        done = subprocess.run(argv, input=data, capture_output=True, env=environment, timeout=TIME_LIMIT, check=False)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
    said = done.stderr.decode("utf-8", "replace")
    return said or ("syntax error" if done.returncode else "")


def _goes_on(text: str) -> bool:
    """Whether the last line ends in a backslash that takes the next line to it."""
    last = text.rstrip("\n").rpartition("\n")[2]
    return bool(_LAST_BACKSLASH.search(text)) and not _COMMENT.search(last)


def _incomplete(text: str, dialect: str) -> Reading:
    last = text.rstrip("\n").rpartition("\n")[2]
    indent = last[: len(last) - len(last.lstrip())]
    opener = _FISH_OPENER if dialect == "fish" else _OPENER
    return Reading("incomplete", indent + " " * INDENT if opener.search(last) else indent)
