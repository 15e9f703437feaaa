"""What could come next on a line of words: verbs, options and their values, sessions, labels.

The words are those before the cursor, the one that is being written last. ``:files``, ``:directories`` and
``:commands`` stand for what whoever asks has to complete by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from session_magics.backends.tmux import ACTIONS
from session_magics.errors import SessionError
from session_magics.model import SessionInfo, describe
from session_magics.registry import Registry
from session_magics.verbs.keys import KEYS
from session_magics.verbs.options import OptionParser
from session_magics.verbs.parser import cell_parser
from session_magics.verbs.words import VERBS, Verb

FILES, DIRECTORIES, COMMANDS = ":files", ":directories", ":commands"

HELP_LIMIT = 60
"""Characters of what is told about a session."""
UNPRINTABLE = dict.fromkeys((*range(32), *range(127, 160)), "�")
RUNNING_ONLY = frozenset(("attach", "interrupt", "resize", "send", "shell", "stop", "tmux", "wait"))
"""Verbs for which a session that has ended is no use."""
ENDED_ONLY = frozenset(("remove",))
SIZES = ("24x80", "40x120", "50x160")
VALUES: Mapping[str, Sequence[str]] = {"--shell": ("bash", "zsh", "sh", "fish"), "--size": SIZES}
"""What is usual for options that take many values."""
TAKES_PATH: Mapping[str, str] = {
    **dict.fromkeys(("--cwd", "--dir"), DIRECTORIES),
    **dict.fromkeys(("--executable", "--file", "--no-file", "--file-contains"), FILES),
}
"""Options whose value is a path."""
Sessions = Callable[[], Iterable[SessionInfo]]
"""Reads what sessions there are; called if they matter."""


@dataclass(frozen=True)
class Candidate:
    """A word that could stand there, and what it is."""

    word: str
    help: str = ""
    kind: str = ""
    """verb, option, session; empty for a value or another word."""


def candidates(words: Sequence[str], sessions: Sessions, verbs: Mapping[str, Verb] = VERBS) -> list[Candidate]:
    """What could stand in place of the last word; of sessions, those that the verb can do something with."""
    *before, word = words
    verb = verbs.get(before[0]) if before else None
    if not before or before == ["help"]:
        found = [Candidate(name, verb.help, "verb") for name, verb in verbs.items()]
    elif verb is None:
        found = []
    else:
        found = _of_verb(before[0], verb, before[1:], word, sessions)
    return _fitting(found, word)


def cell_candidates(words: Sequence[str], sessions: Sessions) -> list[Candidate]:
    """What could stand in place of the last word behind ``%%sh_session``."""
    *before, word = words
    options = cell_parser()
    found = _of_option(options, before, word, sessions)
    if found is None:
        shells = (info for info in sessions() if info.shell is not None and "@" not in info.name)
        found = _names("shell", shells, ()) if not _plain(options, before) else []
    return _fitting(found, word)


def _fitting(found: Iterable[Candidate], word: str) -> list[Candidate]:
    return [one for one in found if one.word[:1] == ":" or one.word.startswith(word)]


def _of_option(options: OptionParser, before: Sequence[str], word: str, sessions: Sessions) -> list[Candidate] | None:
    """Options and their values; None: a plain word stands there."""
    previous = before[-1] if before else ""
    if options.takes_value.get(previous):
        return _values(options, previous, "", sessions)
    flag, equals, _ = word.partition("=")
    if equals and options.takes_value.get(flag):
        return _values(options, flag, f"{flag}=", sessions)
    if word.startswith("-"):
        return [
            Candidate(flag, text, "option")
            for flag, text in options.described()
            if flag not in before or flag in options.repeatable
        ]
    return None


def _of_verb(name: str, verb: Verb, before: list[str], word: str, sessions: Sessions) -> list[Candidate]:
    options = verb.parser(name)
    plain = _plain(options, before)
    in_tail = "--" in before or (verb.tail == "argv" and len(plain) > 1)
    if not in_tail and (found := _of_option(options, before, word, sessions)) is not None:
        return found
    if name == "start":
        return [Candidate(COMMANDS if len(plain) == 1 and "--tool" not in before else FILES)] if plain else []
    if verb.choices:
        return [Candidate(one) for one in verb.choices] if not plain else []
    if name == "record" and len(plain) == 1:
        return [Candidate(FILES)]
    if name in ("copy", "import"):
        return [Candidate(FILES)] if len(plain) < len(verb.fixed) else []
    if name == "resize" and len(plain) == 1:
        return [Candidate(size) for size in SIZES]
    if name == "tmux" and len(plain) == 1:
        return [Candidate(action) for action in ACTIONS]
    if verb.tail == "names" or (not plain and (verb.fixed or verb.optional)):
        return _names(name, sessions(), plain)
    return []


def _plain(options: OptionParser, words: Sequence[str]) -> list[str]:
    """The words that are neither options nor their values."""
    plain: list[str] = []
    previous = ""
    for at, word in enumerate(words):
        if word == "--":
            return [*plain, *words[at + 1 :]]
        of_option = options.takes_value.get(previous) or (previous in options.takes_number and word.isdecimal())
        if not of_option and word[:1] != "-":
            plain.append(word)
        previous = word
    return plain


def _names(verb: str, infos: Iterable[SessionInfo], given: Sequence[str]) -> list[Candidate]:
    wanted = {True} if verb in RUNNING_ONLY else {False} if verb in ENDED_ONLY else {True, False}
    return [
        Candidate(
            info.name, f"{describe(info.state)} · {info.command_line}"[:HELP_LIMIT].translate(UNPRINTABLE), "session"
        )
        for info in infos
        if info.running in wanted and info.name not in given
    ]


def _values(options: OptionParser, flag: str, head: str, sessions: Sessions) -> list[Candidate]:
    if flag in TAKES_PATH and not head:
        return [Candidate(TAKES_PATH[flag])]
    if flag == "--label":
        values = sorted({f"{key}={value}" for info in sessions() for key, value in info.labels.items()})
    elif flag == "--parent":
        values = sorted(info.name for info in sessions() if info.running)
    elif flag == "--tool":
        from session_magics.agents.tools import tools_or_built_in

        values = []
        with contextlib.suppress(SessionError):
            values = list(tools_or_built_in(Registry().store.root))
    elif flag in ("--key", "--detach-key"):
        values = list(KEYS)
    else:
        values = list(VALUES.get(flag, options.choices(flag)))
    return [Candidate(head + value) for value in values]
