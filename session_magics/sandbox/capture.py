r"""The far side of a stateful call: its two scripts, and the state file that they leave.

Two shells take part, both of the kind that was asked for. The outer one has the environment of the place, so that
nothing a body does can hurt it: it makes the directory, takes the lock, starts the inner one, publishes what that
wrote and tells the near side. The inner one restores, runs the body and, from an EXIT trap, writes down what became
of it, with builtins alone (PATH may be gone, the environment too big for any program).

State is words, each a letter and its text::

    =NAME=VALUE  exported        @NAME=VALUE  a variable that is too big for the environment of a program
    -NAME        removed         +NAME        exported without a value, or with one that the shell itself gives
    cPATH oPATH  directory, and the one before           uMASK    umask
    aNAME=VALUE  alias           sWORDS       option (``set -o errexit``, ``shopt -s extglob``)        fTEXT  functions
    !WORD        remembered, but not restored by this call, which has a value of its own
    pPATH        the directory before, for this call alone

The file ``next`` is lock and record in one: made anew by whoever takes the lock, renamed to ``state`` at the end. Its
first line is ``session-magics 1 TOKEN PID:START``; fields that end in NUL follow::

    word* "" | bash version, umask, directory, exports, options | (code, umask, directory, previous directory,
    exports, functions, aliases, options, "end")* | "closed\n"

An end may be missing (the body replaced the shell by ``exec``) or there twice (before and after an EXIT trap of the
body): the last one counts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from session_magics.sandbox.exported import aliases, exported
from session_magics.variables import KEPT_BY_SHELL

# Bytes of "NAME=VALUE" and its NUL that Linux takes at most, and of all that are restored: it takes 2 MB with the
# arguments, as a rule.
ONE_VARIABLE, ENVIRONMENT_ROOM = 128 * 1024 - 1, 1024 * 1024
BEGIN_FIELDS, END_FIELDS = 5, 9
HEADER = re.compile(rb"session-magics 1 (?P<token>[0-9a-f]+) [0-9]+:[0-9]*\n")
WORD = re.compile(
    r"!?(?:[=@][A-Za-z_]\w*=.*|[-+][A-Za-z_]\w*|[cop].+|u[0-7]+|a[^\s=]+=.*|s(?:set [-+]o|shopt -[su]) \w+|f.*)",
    re.DOTALL | re.ASCII,
)
OPTION = re.compile(r"^(set [-+]o|shopt -[su]) (\w+)$", re.MULTILINE | re.ASCII)
# The shell sets these itself; the directory has words of its own.
NOT_CARRIED = frozenset(("_", "PWD", "OLDPWD", "SHLVL"))
# They would trace the wrapper, keep it from running anything, end it after one command, or are fixed at the start.
OPTIONS_NOT_CARRIED = frozenset(
    ("xtrace", "verbose", "noexec", "onecmd", "privileged", "posix", "restricted_shell", "login_shell")
)


class Damaged(Exception):
    """A state file is not what a call leaves."""


@dataclass(frozen=True)
class State:
    """What one call leaves to the next. Words are as the module says."""

    cwd: str = ""
    """Empty: where the place begins."""
    oldpwd: str = ""
    umask: str = ""
    exports: Mapping[str, str] = field(default_factory=dict)
    """The word of each variable that differs from what the place itself has, by its name."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Likewise of each option."""
    aliases: tuple[str, ...] = ()
    functions: str = ""

    def words(self, taken: Container[str], explicit: bool) -> list[str]:
        """The words for a call that sets the variables ``taken`` itself; ``explicit``: and its directory."""
        big = _too_big(word for name, word in self.exports.items() if name not in taken)
        words = [
            ("!" if name in taken else "") + ("@" + word[1:] if name in big else word)
            for name, word in self.exports.items()
        ]
        own = "!" if explicit and self.cwd else ""
        words += [f"p{self.cwd}"] if own else []
        words += [own + letter + text for letter, text in (("c", self.cwd), ("o", self.oldpwd)) if text]
        words += [f"u{self.umask}"] if self.umask else []
        words += [f"a{alias}" for alias in self.aliases] + [f"s{option}" for option in self.options.values()]
        return words + ([f"f{self.functions}"] if self.functions else [])

    @classmethod
    def of_words(cls, words: Iterable[str]) -> Self:
        """The state that ``words`` came from."""
        exports, options, aliased, texts = {}, {}, [], {}
        for word in (word.removeprefix("!") for word in words):
            match word[0]:
                case "=" | "@" | "-" | "+":
                    exports[_name(word)] = word.replace("@", "=", 1) if word[0] == "@" else word
                case "s":
                    options[word.rpartition(" ")[2]] = word[1:]
                case "a":
                    aliased.append(word[1:])
                case letter:
                    texts[letter] = word[1:]
        kept = (texts.get(letter, "") for letter in "cou")
        return cls(*kept, exports, options, tuple(aliased), texts.get("f", ""))


@dataclass(frozen=True)
class Moment:
    """What a shell had, before or after a body."""

    cwd: str
    umask: str
    exports: Mapping[str, str | None]
    options: Mapping[str, str]
    oldpwd: str = ""
    code: int = 0
    functions: str = ""
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """The state file as it was read."""

    token: str
    words: tuple[str, ...]
    bash: bool
    begin: Moment
    end: Moment | None
    """None: the body replaced its shell, or was killed with it."""

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Raises Damaged, with the reason, for anything but a whole file."""
        header = HEADER.match(data)
        if header is None:
            raise Damaged("it does not begin as one")
        *fields, closing = data[header.end() :].split(b"\0")
        if closing != b"closed\n" or b"" not in fields:
            raise Damaged("it is cut short")
        count = fields.index(b"")
        words = tuple(os.fsdecode(word) for word in fields[:count])
        version, *begin = fields[count + 1 : count + 1 + BEGIN_FIELDS]
        ends = fields[count + 1 + BEGIN_FIELDS :]
        if not all(WORD.fullmatch(word) for word in words) or len(begin) != BEGIN_FIELDS - 1:
            raise Damaged("its words are none")
        if len(ends) % END_FIELDS or any(mark != b"end" for mark in ends[END_FIELDS - 1 :: END_FIELDS]):
            raise Damaged("its last part is incomplete")
        try:
            moment = _end(ends[:END_FIELDS], ends[-END_FIELDS:]) if ends else None
            return cls(header["token"].decode(), words, bool(version), _begin(*begin), moment)
        except ValueError as error:
            raise Damaged(str(error)) from None

    def state(self, carry: Container[str] = ()) -> State:
        """The state after this call; what the body left alone stays as the words have it."""
        old, begin, end = State.of_words(self.words), self.begin, self.end
        if end is None:
            return old
        exports = dict(old.exports)
        fixed = KEPT_BY_SHELL["bash" if self.bash else "sh"].split()
        for name in begin.exports.keys() | end.exports.keys():
            if name not in NOT_CARRIED and (name in begin.exports, begin.exports.get(name)) != (
                name in end.exports,
                end.exports.get(name),
            ):
                value = end.exports.get(name)
                sign = "-" if name not in end.exports else "+" if value is None or name in fixed else "="
                exports[name] = f"={name}={value}" if sign == "=" else sign + name
        options = dict(old.options)
        if "options" in carry and self.bash:
            given = {**begin.options, **options}
            options |= {name: word for name, word in end.options.items() if given.get(name) != word}
        return State(
            cwd=end.cwd or old.cwd,
            oldpwd=end.oldpwd,
            umask=end.umask if end.umask != begin.umask else old.umask,
            exports=exports,
            options=options,
            aliases=end.aliases if "aliases" in carry and self.bash else old.aliases,
            functions=end.functions if "functions" in carry and self.bash else old.functions,
        )


def _begin(umask: bytes, cwd: bytes, exports: bytes, options: bytes) -> Moment:
    return Moment(_line(cwd), _line(umask), exported(exports), _options(options))


def _end(first: list[bytes], last: list[bytes]) -> Moment:
    """``first`` is from before an EXIT trap of the body's own, during which options may be off."""
    code, umask, cwd, oldpwd, exports, functions, listing, _, _ = last
    return Moment(
        *(_line(cwd), _line(umask), exported(exports), _options(first[7])),
        *(os.fsdecode(oldpwd), int(code), os.fsdecode(functions), aliases(listing)),
    )


def _line(text: bytes) -> str:
    """One line as a command printed it; a directory's name may itself end in a newline."""
    return os.fsdecode(text.removesuffix(b"\n"))


def _options(listing: bytes) -> dict[str, str]:
    found = OPTION.finditer(listing.decode("ascii", "replace"))
    return {option[2]: option[0] for option in found if option[2] not in OPTIONS_NOT_CARRIED}


def _name(word: str) -> str:
    return word[1:].partition("=")[0]


def _too_big(words: Iterable[str]) -> set[str]:
    """The names of those that would keep every program from being started, biggest first until the rest fits."""
    big, room = set(), ENVIRONMENT_ROOM
    for word in sorted((word for word in words if word[0] == "="), key=len):
        size = len(os.fsencode(word))
        room -= size
        if size > ONE_VARIABLE or room < 0:
            big.add(_name(word))
    return big
