"""The words of a command as a teacher counts them: names, options, operators, without what is quoted or a comment."""

from __future__ import annotations

import re

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


def words_of(command: str) -> frozenset[str]:
    """Each word of a shell command once, quotes removed; of a substitution inside double quotes, its words too."""
    found: set[str] = set()
    word: list[str] = []

    def end_word() -> None:
        if word:
            found.add("".join(word))
            word.clear()

    for part in _PART.finditer(command):
        kind = part.lastgroup or ""
        if kind in ("space", "comment", "operator"):
            end_word()
            if kind == "operator":
                found.add(part[0])
            continue
        word.append(part[kind])
        if kind == "double" and "$(" in part[kind]:
            found.update(words_of(part[kind].partition("$(")[2].rpartition(")")[0]))
    end_word()
    return frozenset(found)
