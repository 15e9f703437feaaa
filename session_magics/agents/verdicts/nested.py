"""What else a command runs: what is inside ``sudo``, ``bash -c``, ``xargs``, ``find -exec`` and their like."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from session_magics.agents.verdicts.shelldata import DATA, is_long, program
from session_magics.agents.verdicts.shellvalues import UNKNOWN, Word

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=", re.ASCII)
_GIT_PROGRAMS = ("-c", "-x", "-u", "--exec", "--config", "--upload-pack", "--receive-pack")
_MODULE = re.compile(r"-[bBdEhiIOPqRsSuvVx?]*m(.*)", re.S)
_STRING = re.compile(r"'([^'\\]{4,})'|\"([^\"\\]{4,})\"")


@dataclass(frozen=True)
class Inside:
    """What a command runs.

    ``clear``: the command does nothing but run these. ``hidden``: it also runs what the text does not show.
    ``maybe``: text in it that may be run as shell text, and may not. ``listening``: commands come from its input.
    """

    commands: tuple[tuple[Word, ...], ...] = ()
    texts: tuple[Word, ...] = ()
    maybe: tuple[str, ...] = ()
    assignments: tuple[tuple[str, Word], ...] = ()
    clear: bool = False
    hidden: bool = False
    listening: bool = False


NOTHING = Inside()


def inside(words: Sequence[Word]) -> Inside:
    """What the command of these words runs."""
    name = program(words[0])
    if name in DATA["shells"]:
        return _shell(words[1:])
    language = re.sub(r"[\d.]+$", "", name)
    if language in DATA["interpreters"]:
        return _interpreter(words[1:], DATA["interpreters"][language])
    if name in ("find", "gfind"):
        return _find(words[1:])
    if name in ("fd", "fdfind"):
        return _fd(words[1:])
    if name in ("export", "declare", "typeset", "local", "readonly"):
        return Inside(assignments=_assignments(words[1:])[0])
    if name == "alias":
        return Inside(maybe=tuple(word.text.partition("=")[2] for word in words[1:]))
    if name == "git":
        return Inside(maybe=tuple(_git_programs(words)))
    for length in (2, 1):
        rule = DATA["wrappers"].get(" ".join([name, *(word.text for word in words[1:length])]))
        if rule is not None and len(words) >= length:
            return _wrapped(words[length:], rule)
    return NOTHING


def _git_programs(words: Sequence[Word]) -> Iterator[str]:
    """Values of options and settings that git may run as shell text."""
    for before, word in pairwise(words):
        if before.text in _GIT_PROGRAMS or word.text.partition("=")[0] in _GIT_PROGRAMS:
            yield (word.text.partition("=")[2] or word.text).lstrip("!")


def _shell(words: Sequence[Word]) -> Inside:
    at = 0
    while at < len(words) and words[at].text[:1] in ("-", "+") and len(words[at].text) > 1:
        option = words[at].text
        if option in ("--rcfile", "--init-file"):
            return Inside(hidden=True)
        if option == "--":
            at += 1
            break
        if not option.startswith("--") and "c" in option:
            rest = list(words[at + 1 :])
            while rest and rest[0].text[:1] in ("-", "+"):
                rest = rest[2:] if rest[0].text in ("-o", "-O", "+o", "+O") else rest[1:]
            return Inside(texts=tuple(rest[:1]), clear=bool(rest), hidden=not rest or not rest[0].sure or len(rest) > 1)
        if not option.startswith("--") and "s" in option:
            return Inside(listening=True, hidden=True)
        at += 2 if option in ("-o", "-O", "+o", "+O") else 1
    if at >= len(words) or words[at].text in ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        harmless = any(word.text in ("--version", "--help") for word in words[:at])
        return NOTHING if harmless else Inside(listening=True, hidden=True)
    return Inside(hidden=not words[at].sure or bool(words[at].inside))


def _interpreter(words: Sequence[Word], rule: Mapping[str, Any]) -> Inside:
    at = 0
    while at < len(words):
        option = words[at].text
        if is_long(option, rule.get("long", ())) or option in rule.get("long", ()):
            return _code(words[at:])
        if option in ("-", "/dev/stdin") or option[:1] != "-":
            break
        if "module" in rule and (found := _MODULE.fullmatch(option)):
            name = found[1] or (words[at + 1].text if at + 1 < len(words) else "")
            return _code(words[at:]) if name in DATA["code_modules"] else NOTHING
        if not option.startswith("--") and set(option[1:]) & set(rule["code"]):
            return _code(words[at:])
        if option in ("--version", "-V", "--help", "-h"):
            return NOTHING
        at += 2 if option in rule.get("values", ()) else 1
    if at >= len(words) or words[at].text in ("-", "/dev/stdin"):
        return Inside(listening=True, hidden=True)
    return Inside(hidden=not words[at].sure or bool(words[at].inside))


def _code(words: Sequence[Word]) -> Inside:
    """Program text of another language: not followed, but its strings may be shell text."""
    strings = (first or second for word in words for first, second in _STRING.findall(word.text))
    return Inside(maybe=tuple(strings), hidden=True)


def _find(words: Sequence[Word]) -> Inside:
    count = next(
        (n for n, word in enumerate(words) if word.text[:1] in ("-", "(", "!") and word.text not in ("-L", "-H", "-P")),
        len(words),
    )
    starts = [word for word in words[:count] if word.text[:1] != "-"] or [Word(".")]
    below = tuple(Word(f"{word.text.rstrip('/')}/*", word.sure, True, word.inside) for word in starts)
    commands: list[tuple[Word, ...]] = []
    at = count
    while at < len(words):
        if words[at].text in ("-exec", "-execdir", "-ok", "-okdir"):
            begin = at + 1
            while at < len(words) and words[at].text not in (";", "+"):
                at += 1
            commands.append(_filled(words[begin:at], below))
        elif words[at].text == "-delete":
            commands.append((Word("rm"), Word("-r"), *below))
        at += 1
    return Inside(commands=tuple(command for command in commands if command))


def _fd(words: Sequence[Word]) -> Inside:
    for at, word in enumerate(words):
        if word.text in ("-x", "-X", "--exec", "--exec-batch"):
            return Inside(commands=(tuple(words[at + 1 :]),) if words[at + 1 :] else (), hidden=True)
    return NOTHING


def _filled(words: Sequence[Word], values: Sequence[Word]) -> tuple[Word, ...]:
    """The words with each ``{}`` replaced by what it stands for."""
    filled: list[Word] = []
    for word in words:
        filled += (
            [Word(word.text.replace("{}", value.text), word.sure and value.sure, True) for value in values]
            if "{}" in word.text
            else [word]
        )
    return tuple(filled)


def _assignments(words: Sequence[Word]) -> tuple[tuple[tuple[str, Word], ...], int]:
    """The assignments in front of the words, options passed over, and where they end."""
    found: list[tuple[str, Word]] = []
    for at, word in enumerate(words):
        match = _ASSIGNMENT.match(word.text)
        if match:
            found.append((match[1], Word(word.text[match.end() :], word.sure, inside=word.inside)))
        elif word.text[:1] != "-":
            return tuple(found), at
    return tuple(found), len(words)


def _wrapped(words: Sequence[Word], rule: Mapping[str, Any]) -> Inside:
    at, texts, sure, unknown = 0, [], True, False
    everywhere = rule.get("only_text")
    while at < len(words) and (everywhere or (words[at].text[:1] == "-" and words[at].text not in ("-", "--"))):
        option = words[at].text
        letters, value = _letters(option, rule)
        elsewhere = is_long(option, rule.get("elsewhere_long", ())) or letters[-1:] in tuple(rule.get("elsewhere", ""))
        sure = sure and words[at].sure and not elsewhere
        if letters and (letters[-1] in rule.get("queries", "")):
            return NOTHING
        if is_long(option, rule.get("long", ())) and "=" not in option:
            at += 1
        elif letters and letters[-1] in rule.get("text", "") + rule.get("split", ""):
            texts.append(
                Word(value, words[at].sure) if value else words[at + 1] if at + 1 < len(words) else Word(UNKNOWN, False)
            )
            at += not value
        elif option.startswith(("--command=", "--split-string=", "--call=", "--session-command=")):
            texts.append(Word(option.partition("=")[2], words[at].sure))
        elif option in ("--command", "--split-string", "--call", "--session-command"):
            at += 1
            texts += words[at : at + 1]
        elif letters and letters[-1] in rule.get("values", "") and not value:
            at += 1
        else:
            unknown = unknown or (option.startswith("--") and "=" not in option)
        at += 1
    if at < len(words) and words[at].text in ("--", "-"):
        at += 1
    given: tuple[tuple[str, Word], ...] = ()
    if rule.get("assignments"):
        given, count = _assignments(words[at:])
        at += count
    at += rule.get("skip", 0)
    if at < len(words) and words[at].text == "--":
        at += 1
    found = _result(list(words[at:]), texts, given, sure, rule)
    if unknown and len(words) > at + 1:  # the first word may be the value of an option that the table does not have
        found = replace(found, commands=(*found.commands, tuple(words[at + 1 :])))
    return found


def _result(
    rest: Sequence[Word],
    texts: Sequence[Word],
    given: tuple[tuple[str, Word], ...],
    sure: bool,
    rule: Mapping[str, Any],
) -> Inside:
    if rule.get("split") and texts:
        rest, texts = [], [Word(" ".join(word.text for word in [*texts, *rest]), False)]
    if rule.get("joined") or rule.get("first"):
        part = rest[:1] if rule.get("first") else rest
        joined = Word(
            " ".join(word.text for word in part),
            all(word.sure for word in part),
            inside=sum((word.inside for word in part), ()),
        )
        texts, rest = [joined] if part else [], []
    if rule.get("only_text"):
        rest = []
    hidden = not sure or not all(text.sure for text in texts) or not (rest or texts or rule.get("clear"))
    clear = bool(rule.get("clear")) and bool(rest or texts)
    return Inside((tuple(rest),) if rest else (), tuple(texts), assignments=given, clear=clear, hidden=hidden)


def _letters(option: str, rule: Mapping[str, Any]) -> tuple[str, str]:
    """The letters of a short option up to the first that takes a value, and the value when it is joined."""
    if option.startswith("--"):
        return "", ""
    takers = rule.get("values", "") + rule.get("text", "") + rule.get("split", "")
    for at, letter in enumerate(option[1:] if option[:1] == "-" else "", 1):
        if letter in takers:
            return option[1 : at + 1], option[at + 1 :]
    return option[1:], ""
