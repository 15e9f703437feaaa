"""Asking a shell what it knows: the text that is run in a subshell of it, and what comes back."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from session_magics.completion import MOST_ITEMS
from session_magics.completion.lexing import Place
from session_magics.completion.words import Part, Word
from session_magics.variables import OWN_PREFIX, quoted

SHELL_LIMIT = 0.11
"""Seconds for the shell's own completion; whoever waits for the answer gives up a little later."""
DIRECTORIES_ONLY = frozenset(("cd", "pushd", "rmdir"))
JOB_COMMANDS = frozenset(("bg", "disown", "fg", "jobs", "kill", "wait"))
BREAKS = re.compile(r"[=:]+|[^=:]+")
"""Where bash parts the words that it gives to completion functions."""
SINGLE = frozenset(("file", "directory", "name", "named-directory", "reply", "path"))
"""Kinds of record that hold one name; the others hold one a line."""


@dataclass(frozen=True)
class Answer:
    """A name that a shell knows, as it is; ``kind`` as in the records."""

    kind: str
    text: str
    help: str = ""


def answers(records: Iterable[bytes]) -> list[Answer]:
    """Read the records back."""
    found: list[Answer] = []
    for record in records:
        kind, _, names = record.decode("utf-8", "surrogateescape").partition("\t")
        lines = [names] if kind in SINGLE else names.split("\n")
        for line in lines:
            name, _, help = line.partition("\t") if kind not in SINGLE else (line, "", "")
            if name and not name.startswith(OWN_PREFIX):
                found.append(Answer(kind, name, help))
    return found


def script(dialect: str) -> str:
    """The functions that a shell of that kind is given."""
    text = importlib.resources.files("session_magics.completion").joinpath(f"live.{dialect}").read_text("utf-8")
    return text.replace("__sm_most=1000", f"__sm_most={MOST_ITEMS}")


def question(place: Place, text: str, dialect: str) -> str:
    """Shell text that has a shell of that kind tell all that could stand at the place; ``text`` is the cell's."""
    return _FRAME[dialect].format(script=quoted(f"{script(dialect)}\n{_call(place, text, dialect)}", dialect))


def _call(place: Place, text: str, dialect: str) -> str:
    word, limited = place.word, f"{OWN_PREFIX}limited {SHELL_LIMIT} {OWN_PREFIX}"
    written = quoted(word.literal or "", dialect)
    match place.kind:
        case "variable":
            call = f"{OWN_PREFIX}variables {written}"
        case "user":
            call = f"{OWN_PREFIX}users {quoted(word.raw[1:], dialect)}"
        case "file":
            call = f"{limited}files {_directory(word, dialect)} all"
        case "command" if "/" in word.raw:
            call = f"{limited}files {_directory(word, dialect)} programs"
        case "command":
            call = f"{limited}commands {written}" if word.literal is not None else ":"
        case _:
            name = place.before[0].literal or ""
            if name in JOB_COMMANDS and word.raw[:1] == "%":
                call = f"{OWN_PREFIX}jobs {quoted(word.raw[1:], dialect)}"
            else:
                which = "directories" if name in DIRECTORIES_ONLY else "all"
                arguments = f"{_directory(word, dialect, which)} {_current(word, dialect)} {quoted(name, dialect)}"
                call = f"{_words(place, text, dialect)}\n{limited}arguments {arguments}"
    return f"{OWN_PREFIX}snapshot\n{call}"


def _directory(word: Word, dialect: str, which: str = "") -> str:
    """Three words of shell text, or two: the directory, its expansions still to be made, the name's begin, which."""
    path = word.path()
    if path is None:
        return "'' '' none" if which else "/dev/null/ ''"
    parts, name = path
    directory = "".join(_part(part, dialect) for part in parts) or quoted("", dialect)
    if parts and parts[0].kind == "tilde":  # which counts before an unquoted slash alone
        directory = directory.replace(f"{parts[0].text}'/", f"{parts[0].text}/'", 1)
    return f"{directory} {quoted(name, dialect)} {which}"


def _part(part: Part, dialect: str) -> str:
    if part.kind == "tilde":
        return part.text
    if part.kind == "variable":
        return f'"${{{part.text}-}}"'
    return quoted(part.text, dialect)


def _pieces(word: Word) -> list[str]:
    return BREAKS.findall(word.raw) if word.plain else [word.raw]


def last_piece(word: Word) -> str:
    """What the shell takes for the word to complete: it begins behind ``=`` and ``:``."""
    if not word.plain:
        return word.raw
    return re.split(r"[=:]", word.raw)[-1]


def _current(word: Word, dialect: str) -> str:
    return quoted(last_piece(word) if word.plain else (word.literal or ""), dialect)


def _words(place: Place, text: str, dialect: str) -> str:
    """Assignments of what a completion function looks at."""
    words = [piece for word in place.before for piece in _pieces(word)]
    before = text[place.before[0].start : place.word.start]
    if dialect == "bash" and not place.word.plain and place.word.literal is not None:
        # Functions that complete files take the rest of a word behind ' as it is, and outside readline they know no
        # other quotes.
        last = ["'" + place.word.literal]
    else:
        last = _pieces(place.word) or [""]
    words, line = words + last, before + "".join(last)
    if dialect != "bash":
        return f"{OWN_PREFIX}line={quoted(line, dialect)}"
    array = " ".join(quoted(word, dialect) for word in words)
    return (
        f"COMP_WORDS=({array}) COMP_CWORD={len(words) - 1} COMP_LINE={quoted(line, dialect)} "
        f"COMP_POINT={len(line)} COMP_TYPE=9 COMP_KEY=9"
    )


# Everything of ours happens in a subshell, and is parsed there: what the shell itself parses are these few words.
_FRAME: Mapping[str, str] = {
    "bash": "( \\builtin set +eux\n\\builtin trap - DEBUG ERR RETURN\n\\builtin shopt -u expand_aliases\n"
    "\\builtin eval {script} ) >/dev/null 2>&1",
    "zsh": "( \\builtin \\emulate \\-R \\zsh\n\\builtin \\set \\+eux\n\\builtin \\trap \\- \\DEBUG \\ZERR\n"
    "\\builtin \\unsetopt \\aliases\n\\builtin \\eval {script} ) >/dev/null 2>&1",
    "sh": '( \\set +eux\n\\eval {script} ) </dev/null 2>/dev/null >"$__sm_fifo"',
}
