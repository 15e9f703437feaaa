"""The words of a command as a teacher counts them: names, options, operators, without what is quoted or a comment."""

from __future__ import annotations

import re
from collections.abc import Iterator

_PART = re.compile(
    r"""
    (?P<space> [ \t\r]+ | \\\n )
  | (?P<comment> (?<![^\s;|&()]) \#[^\n]* )
  | (?P<operator> \|\|? | &&? | ;;? | [<>]+ | [()\n`] )
  | '(?P<single> [^']* )'
  | "(?P<double> (?: \\. | [^"\\] )* )"
  | \\(?P<escaped> . )
  | (?P<plain> [^\s|&;<>()`'"\\]+ | . )
    """,
    re.X | re.S,
)


OPERATORS = frozenset(["|", "||", "|&", "&", "&&", ";", ";;", "(", ")", "`", "\n"])
"""What parts one command from the next."""


def tokens(command: str) -> Iterator[str]:
    """The words of a shell command, quotes removed, and its operators, in order."""
    word: list[str] | None = None
    for part in _PART.finditer(command):
        kind = part.lastgroup or ""
        if kind not in ("space", "comment", "operator"):
            word = [*(word or ()), part[kind]]
            continue
        if word is not None:
            yield "".join(word)
            word = None
        if kind == "operator":
            yield part[0]
    if word is not None:
        yield "".join(word)


def words_of(command: str) -> frozenset[str]:
    """Each word and operator once; of a substitution inside double quotes, its words too."""
    inside = (part["double"] for part in _PART.finditer(command) if "$(" in (part["double"] or ""))
    more = [words_of(text.partition("$(")[2].rpartition(")")[0]) for text in inside]
    return frozenset(tokens(command)).union(*more)


def last_command(command: str) -> list[str]:
    """The words of the simple command at the end of a text; none where that is something compound."""
    words: list[str] = []
    for token in tokens(command.strip()):
        if token in OPERATORS:
            words = []
        else:
            words.append(token)
    return words
