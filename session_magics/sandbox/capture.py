r"""State that a shell leaves to the next: as words, in a file, and as the difference that one body made.

A word is a letter and its text::

    =NAME=VALUE  exported        @NAME=VALUE  a variable that is too big for the environment of a program
    -NAME        removed         +NAME        exported without a value, or with one that the shell itself gives
    cPATH oPATH  directory, and the one before           uMASK    umask
    aNAME=VALUE  alias           sWORDS       option (``set -o errexit``, ``shopt -s extglob``)        fTEXT  functions

In files a word is a line in ASCII: a backslash is written twice, a newline as ``\n``, other bytes as ``\0OOO``, as the
format ``%b`` of printf reads it.
The first line of the state file is ``session-magics 1 TOKEN DIGEST``. Nothing in it is ever run.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from session_magics.sandbox.exported import aliases, exported
from session_magics.variables import KEPT_BY_SHELL

# Bytes of "NAME=VALUE" and its NUL that Linux takes at most, and of all that are restored: it takes 2 MB with the
# arguments, as a rule.
ONE_VARIABLE, ENVIRONMENT_ROOM = 128 * 1024 - 1, 1024 * 1024
BEGIN_FIELDS, END_FIELDS = 5, 8
HEADER = re.compile(rb"session-magics 1 ([0-9a-f]+) ([0-9a-f]{64})\n")
ESCAPED, UNESCAPED = re.compile(rb"[\n\\\x80-\xff]"), re.compile(rb"\\(n|\\|0[0-7]{3})")
WORD = re.compile(
    r"=[A-Za-z_]\w*=.*|[-+][A-Za-z_]\w*|[co].+|u[0-7]+|a[^\s=]+=.*|s(?:set [-+]o|shopt -[su]) \w+|f.*",
    re.DOTALL | re.ASCII,
)
OPTION = re.compile(r"^(?:set [-+]o|shopt -[su]) (\w+)$", re.MULTILINE | re.ASCII)
# The shell sets these itself; the directory has words of its own.
NOT_CARRIED: Final = frozenset(("_", "PWD", "OLDPWD", "SHLVL"))
# They would trace the wrapper, keep it from running anything, end it after one command, or are fixed at the start.
OPTIONS_NOT_CARRIED: Final = frozenset(
    ("xtrace", "verbose", "noexec", "onecmd", "privileged", "posix", "restricted_shell", "login_shell")
)


class Damaged(Exception):
    """What was read back is not what had been written; the text says in which way."""


@dataclass(frozen=True)
class Moment:
    """What a shell had, before or after a body."""

    cwd: str
    umask: str
    exports: Mapping[str, str | None]
    options: Mapping[str, str]
    bash: bool = False
    oldpwd: str = ""
    functions: str = ""
    aliases: tuple[str, ...] = ()

    @staticmethod
    def before(data: bytes) -> Moment:
        """Read the far side's first report; raises Damaged."""
        version, umask, cwd, exports, options = _fields(data, BEGIN_FIELDS)
        return _moment(umask, cwd, exports, options, bash=bool(version))

    @staticmethod
    def after(data: bytes) -> Moment:
        """Read its last report; raises Damaged."""
        umask, cwd, oldpwd, exports, functions, listing, options, _ = _fields(data, END_FIELDS)
        try:
            texts = {"oldpwd": os.fsdecode(oldpwd), "functions": os.fsdecode(functions), "aliases": aliases(listing)}
        except ValueError as error:
            raise Damaged(str(error)) from None
        return _moment(umask, cwd, exports, options, **texts)


def _fields(data: bytes, count: int) -> list[bytes]:
    """The fields of a report, each of which ends in NUL; the last of them is a mark that nothing is missing."""
    fields = data.split(b"\0")
    if len(fields) != count + 1 or fields.pop() or (count == END_FIELDS and fields[-1] != b"end"):
        raise Damaged("a report is incomplete")
    return fields


def _moment(umask: bytes, cwd: bytes, exports: bytes, options: bytes, **others: object) -> Moment:
    try:
        listed = {found[1]: found[0] for found in OPTION.finditer(options.decode("ascii", "replace"))}
        return Moment(_line(cwd), _line(umask), exported(exports), listed, **others)  # type: ignore[arg-type]
    except ValueError as error:
        raise Damaged(str(error)) from None


def _line(text: bytes) -> str:
    """One line as a command printed it; a directory's name may itself end in a newline."""
    return os.fsdecode(text.removesuffix(b"\n"))


@dataclass(frozen=True)
class Change:
    """What one body changed; None: nothing. ``exports`` and ``options`` are words by their names."""

    cwd: str | None = None
    oldpwd: str | None = None
    umask: str | None = None
    exports: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] | None = None
    functions: str | None = None

    @classmethod
    def between(cls, old: State, begin: Moment, ends: list[Moment], carry: Container[str] = ()) -> Self:
        """The difference of a body that began with ``old`` restored.

        A body with an EXIT trap of its own has an end before and one after it; of options the first counts, as the
        capture itself turns errexit off in between.
        """
        end = ends[-1]
        options = {}
        if begin.bash and "options" in carry:
            given = {**begin.options, **old.options}
            options = {
                name: word
                for name, word in ends[0].options.items()
                if name not in OPTIONS_NOT_CARRIED and given.get(name) != word
            }
        return cls(
            cwd=end.cwd or None,
            oldpwd=end.oldpwd,
            umask=end.umask if end.umask != begin.umask else None,
            exports=_changed(begin, end),
            options=options,
            aliases=end.aliases if begin.bash and "aliases" in carry else None,
            functions=end.functions if begin.bash and "functions" in carry else None,
        )


def _changed(begin: Moment, end: Moment) -> dict[str, str]:
    """The words of the variables that a body exported, changed or removed."""
    words = {}
    fixed = KEPT_BY_SHELL["bash" if begin.bash else "sh"].split()
    for name in begin.exports.keys() - end.exports.keys() - NOT_CARRIED:
        words[name] = f"-{name}"
    for name in end.exports.keys() - NOT_CARRIED:
        value = end.exports[name]
        if name not in begin.exports or begin.exports[name] != value:
            words[name] = f"+{name}" if value is None or name in fixed else f"={name}={value}"
    return words


@dataclass(frozen=True)
class State:
    """What the calls so far leave to the next one, beside what the place itself has."""

    cwd: str = ""
    """Empty: where the place begins."""
    oldpwd: str = ""
    umask: str = ""
    exports: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    functions: str = ""

    def changed(self, change: Change) -> State:
        """The state after a change."""
        return State(
            self.cwd if change.cwd is None else change.cwd,
            self.oldpwd if change.oldpwd is None else change.oldpwd,
            self.umask if change.umask is None else change.umask,
            {**self.exports, **change.exports},
            {**self.options, **change.options},
            self.aliases if change.aliases is None else change.aliases,
            self.functions if change.functions is None else change.functions,
        )

    def words(self) -> list[str]:
        """All of it; ``of_words`` takes it back."""
        texts = (("c", self.cwd), ("o", self.oldpwd), ("u", self.umask), ("f", self.functions))
        words = [*self.exports.values(), *(letter + text for letter, text in texts if text)]
        return words + [f"a{alias}" for alias in self.aliases] + [f"s{option}" for option in self.options.values()]

    def words_for(self, taken: Container[str], explicit: bool) -> list[str]:
        """What is restored for a call that sets the variables ``taken`` itself; ``explicit``: and its directory."""
        exports = {name: word for name, word in self.exports.items() if name not in taken}
        big = too_big(exports.values())
        state = State(
            "" if explicit else self.cwd,
            self.cwd if explicit and self.cwd else self.oldpwd,
            self.umask,
            {name: "@" + word[1:] if name in big else word for name, word in exports.items()},
            *(self.options, self.aliases, self.functions),
        )
        return state.words()

    @classmethod
    def of_words(cls, words: Iterable[str]) -> Self:
        """The state that has these words."""
        exports, options, aliased, texts = {}, {}, [], {}
        for word in words:
            match word[0]:
                case "=" | "-" | "+":
                    exports[_name(word)] = word
                case "s":
                    options[word.rpartition(" ")[2]] = word[1:]
                case "a":
                    aliased.append(word[1:])
                case letter:
                    texts[letter] = word[1:]
        cwd, oldpwd, umask = (texts.get(letter, "") for letter in "cou")
        return cls(cwd, oldpwd, umask, exports, options, tuple(aliased), texts.get("f", ""))

    def file(self, token: str) -> bytes:
        """The state file."""
        data = lines(self.words())
        return b"session-magics 1 %s %s\n" % (token.encode(), _digest(token.encode(), data)) + data

    @classmethod
    def of_file(cls, data: bytes) -> tuple[Self, str]:
        """The state in a file, and the file's token; raises Damaged."""
        header = HEADER.match(data)
        if header is None:
            raise Damaged("it does not begin as one")
        body = data[header.end() :]
        if header[2] != _digest(header[1], body):
            raise Damaged("it is cut short or was altered")
        words = [os.fsdecode(UNESCAPED.sub(_unescape, line)) for line in body.split(b"\n")[:-1]]
        if not all(WORD.fullmatch(word) for word in words):
            raise Damaged("it was written by another version")
        return cls.of_words(words), header[1].decode()


def lines(words: Iterable[str]) -> bytes:
    """Words as lines of a file, in ASCII: a shell may take part of a letter and the end of its line for another one."""
    return b"".join(ESCAPED.sub(_escape, os.fsencode(word)) + b"\n" for word in words)


def _escape(found: re.Match[bytes]) -> bytes:
    match found[0]:
        case b"\n":
            return rb"\n"
        case b"\\":
            return rb"\\"
        case byte:
            return b"\\0%03o" % byte[0]


def _unescape(found: re.Match[bytes]) -> bytes:
    match found[1]:
        case b"n":
            return b"\n"
        case b"\\":
            return b"\\"
        case digits:
            return bytes([int(digits, 8) & 0xFF])


def too_big(words: Iterable[str]) -> set[str]:
    """The names of variables that would keep every program from being started: the biggest, until the rest fits."""
    big, room = set(), ENVIRONMENT_ROOM
    for word in sorted((word for word in words if word[0] == "="), key=len):
        size = len(os.fsencode(word))
        room -= size
        if size > ONE_VARIABLE or room < 0:
            big.add(_name(word))
    return big


def _name(word: str) -> str:
    return word[1:].partition("=")[0]


def _digest(token: bytes, body: bytes) -> bytes:
    return hashlib.sha256(token + body).hexdigest().encode()
