"""Patterns that say which commands, paths and addresses are allowed or denied."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from session_magics.agents.verdicts.places import Places
from session_magics.errors import UsageMistake

Kind = Literal["command", "edit", "read", "fetch"]

# Characters of one pattern; each "*" may be tried at every place of the text.
LENGTH_LIMIT = 256
_STAR_LIMIT = 8
_NAMES: dict[str, Kind] = {
    "Bash": "command",
    "Shell": "command",
    "Edit": "edit",
    "Write": "edit",
    "Read": "read",
    "WebFetch": "fetch",
    "Fetch": "fetch",
}
_NAMED = re.compile(r"([A-Za-z]+)\((.*)\)")


@dataclass(frozen=True)
class Pattern:
    """A rule, taken apart: what it is about, and its pattern."""

    kind: Kind
    body: str


@dataclass(frozen=True)
class Rules:
    """The user's patterns; a bad one is refused here.

    ``git *`` and ``Bash(git *)`` are about commands, ``Edit(src/**)`` and ``Read(**)`` about paths below the
    directory of the session (or absolute, or from ``~``), ``WebFetch(domain:example.org)`` about addresses.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for rule in (*self.allow, *self.deny):
            parse(rule)


@lru_cache(maxsize=512)
def parse(rule: str) -> Pattern:
    """Takes a rule apart."""
    text = rule.strip()
    if not text or len(text) > LENGTH_LIMIT or text.count("*") > _STAR_LIMIT or any(char < " " for char in text):
        raise UsageMistake(
            f"rule {rule[:60]!r}: write one line such as 'git *', "
            f"of at most {LENGTH_LIMIT} characters and {_STAR_LIMIT} '*'"
        )
    found = _NAMED.fullmatch(text)
    if found is None:
        if re.match(r"[A-Z][A-Za-z]*\(", text) or text.endswith(")"):
            raise UsageMistake(f"rule {rule!r}: the parentheses do not match: write it as Bash(git *)")
        return Pattern("command", " ".join(text.split()))
    name, body = found[1], found[2].strip()
    if name not in _NAMES:
        raise UsageMistake(f"rule {rule!r}: {name} is not known: use {', '.join(sorted(_NAMES))}")
    if not body:
        raise UsageMistake(f"rule {rule!r}: nothing between the parentheses: write * for everything")
    kind = _NAMES[name]
    if kind == "fetch" and body != "*" and not re.fullmatch(r"domain:(\*\.)?[\w-]+(\.[\w-]+)*", body):
        raise UsageMistake(f"rule {rule!r}: write WebFetch(domain:example.org)")
    return Pattern(kind, " ".join(body.split()) if kind == "command" else body)


def command_rule(rules: Iterable[str], texts: Iterable[str]) -> str | None:
    """The first rule for commands that fits one of the texts."""
    texts = tuple(texts)
    for rule in rules:
        pattern = parse(rule)
        if pattern.kind == "command" and any(_command(pattern.body).fullmatch(text) for text in texts):
            return rule
    return None


def path_rule(rules: Iterable[str], kind: Kind, paths: Iterable[str], places: Places) -> str | None:
    """The first rule of the kind that fits one of the absolute paths."""
    paths = tuple(paths)
    for rule in rules:
        pattern = parse(rule)
        if pattern.kind == kind and any(_path(places.absolute(pattern.body)).fullmatch(path) for path in paths):
            return rule
    return None


def address_rule(rules: Iterable[str], host: str) -> str | None:
    """The first rule for addresses that fits the host."""
    for rule in rules:
        pattern = parse(rule)
        domain = pattern.body.removeprefix("domain:").lower()
        if pattern.kind == "fetch" and (domain in ("*", host) or (domain[:2] == "*." and host.endswith(domain[1:]))):
            return rule
    return None


@lru_cache(maxsize=512)
def _command(body: str) -> re.Pattern[str]:
    """``*`` is any text; at the end after a blank or a colon it may also be missing."""
    for end in (" *", ":*"):
        if body.endswith(end) and body != end:
            return re.compile(_stars(body[:-2]) + r"(?: .*)?", re.S)
    return re.compile(_stars(body), re.S)


def _stars(body: str) -> str:
    return ".*".join(re.escape(part) for part in body.split("*"))


@lru_cache(maxsize=512)
def _path(body: str) -> re.Pattern[str]:
    """``**`` is any part of a path, ``*`` and ``?`` stay within one component."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", body)
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(meaning.get(part, re.escape(part)) for part in parts), re.S)
