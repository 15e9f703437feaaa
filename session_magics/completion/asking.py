"""Asking a shell what it knows: the text that is run in a subshell of it, and what comes back."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from session_magics.completion import MOST_ITEMS
from session_magics.completion.lexing import Place
from session_magics.completion.words import Part, Word
from session_magics.variables import OWN_PREFIX, RECORD, quoted

SHELL_SHARE = 0.6
"""Of the time that there is, what a command's own completion may take; files are listed in the rest."""
DIRECTORIES_ONLY = frozenset(("cd", "pushd", "rmdir"))
JOB_COMMANDS = frozenset(("bg", "disown", "fg", "jobs", "kill", "wait"))
BREAKS = re.compile(r"[=:]+|[^=:]+")
"""Where bash parts the words that it gives to completion functions."""
KNOWN = "known-"
"""Kinds that begin so are for later, when the shell is busy."""
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


def question(place: Place, text: str, dialect: str, limit: float, *, files: bool = True) -> str:
    """Shell text that has a shell of that kind tell all that could stand at the place; ``text`` is the cell's.

    ``limit``: seconds in which the answer is wanted. ``files``: whether files are among the arguments that are.
    """
    if dialect == "fish":
        return _fish_question(place, text)
    whole = f"{script(dialect)}\n{_call(place, text, dialect, limit * SHELL_SHARE, files=files)}"
    return _FRAME[dialect].format(script=quoted(whole, dialect))


def _fish_question(place: Place, text: str) -> str:
    """fish completes everything by itself, and has no subshells: nothing is set there that would stay."""
    word = place.word
    pattern = quoted("^" + re.escape(word.literal or ""), "fish")
    if place.kind == "variable":
        tell = _told_by_fish("variable", f"builtin set -n | builtin string match -er -- {pattern}")
    elif place.kind == "command" and not word.slash:  # fish itself would look up what each command is for
        tell = "".join(
            _told_by_fish(kind, f"{names} | builtin string match -er -- {pattern}")
            for kind, names in (
                ("function", "builtin functions -n | builtin string split ', '"),
                ("builtin", "builtin builtin -n"),
                ("command", _FISH_COMMANDS.format(begin=quoted(word.literal or "", "fish"))),
            )
        )
    else:
        begin = word.start if place.kind in ("command", "user") else place.before[0].start if place.before else None
        line = f"ls {word.raw}" if begin is None else text[begin : word.start + len(word.raw)]
        ask = f"(builtin complete --do-complete={quoted(line, 'fish')})[1..{MOST_ITEMS}]"
        tell = _told_by_fish("given", rf"builtin string join \n -- {ask}")
    return f"begin\n{script('fish')}{tell}end </dev/null >$__sm_fifo 2>/dev/null"


_FISH_COMMANDS = (
    "begin; builtin set -l __sm_one; for __sm_one in $PATH/{begin}*;"
    " builtin test -x $__sm_one; and builtin string replace -r '.*/' '' -- $__sm_one; end; end"
)


def _told_by_fish(kind: str, names: str) -> str:
    return rf"builtin printf '{RECORD}{kind}\t%s\0' ({names} | builtin string collect)" + "\n"


def _call(place: Place, text: str, dialect: str, limit: float, *, files: bool) -> str:
    word, limited = place.word, f"{OWN_PREFIX}limited {limit:.3f} {OWN_PREFIX}"
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
                which = "none" if not files else "directories" if name in DIRECTORIES_ONLY else "all"
                named = _directory(word, dialect, which)
                arguments = f"{named} {_current(word, dialect)} {quoted(name, dialect)}"
                instead = f"{{ {OWN_PREFIX}files {named}; {OWN_PREFIX}sweep; }}"
                call = f"{_words(place, text, dialect)}\n{limited}arguments {arguments} || {instead}"
    return f"{OWN_PREFIX}snapshot\n{call}"


def _directory(word: Word, dialect: str, which: str = "") -> str:
    """Three words of shell text, or two: the directory, its expansions still to be made, the name's begin, which."""
    path = (_piece(word) if which else word).path()
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


def _piece(word: Word) -> Word:
    """The last piece of a word, as a word."""
    raw = last_piece(word)
    if raw == word.raw:
        return word
    home = re.match(r"~[\w.-]*(?=/)", raw)
    piece = Word(0, raw)
    if home is not None:
        piece.add("tilde", home[0])
    piece.add("text", raw[home.end() if home else 0 :])
    return piece


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
    "bash": "( \\builtin set +eux\n\\builtin trap - DEBUG ERR RETURN\n"
    "\\builtin shopt -u expand_aliases\n\\builtin shopt -s extglob\n"
    "\\builtin eval {script} ) >/dev/null 2>&1",
    "zsh": "( \\builtin \\emulate \\-R \\zsh\n\\builtin \\set \\+eux\n\\builtin \\trap \\- \\DEBUG \\ZERR\n"
    "\\builtin \\unsetopt \\aliases\n\\builtin \\eval {script} ) >/dev/null 2>&1",
    "sh": '( \\set +eux\n\\eval {script} ) </dev/null 2>/dev/null >"$__sm_fifo"',
}
