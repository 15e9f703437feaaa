"""What a word on a ``%session`` line, or on the first line of a shell cell, is."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable

from session_magics.errors import SessionError
from session_magics.inspection import BOLD, PLAIN
from session_magics.listing import directory, last_line, short_path
from session_magics.model import SessionInfo, describe
from session_magics.registry import Registry
from session_magics.text.amounts import short_bytes, short_time
from session_magics.verbs.options import OptionParser
from session_magics.verbs.parser import cell_parser
from session_magics.verbs.words import OTHER_WORDS, VERBS


def of_verb_line(line: str, cursor: int, registry: Callable[[], Registry]) -> str | None:
    """What stands at the cursor of what follows ``%session``: a verb, one of its options, or a session's name."""
    words = list(re.finditer(r"\S+", line))
    name = words[0][0] if words else "list"
    name = OTHER_WORDS.get(name, name)
    if name == "help" and len(words) > 1:
        name = words[1][0]
    verb = VERBS.get(name)
    if verb is None:
        return None
    parser = verb.parser(f"%session {name}")
    at = next((one[0] for one in words[1:] if one.start() <= cursor <= one.end()), "")
    return _option(parser, at) or _named(at, registry) or parser.format_help().rstrip("\n")


def of_cell_line(line: str, cursor: int, registry: Callable[[], Registry]) -> str | None:
    """What stands at the cursor of what follows ``%%sh_session``: an option, or a session's name."""
    at = next((one[0] for one in re.finditer(r"\S+", line) if one.start() <= cursor <= one.end()), "")
    return _option(cell_parser(), at) or _named(at, registry)


def _option(parser: OptionParser, word: str) -> str:
    """How an option is written and what it does; "" for what is none."""
    flag = word.partition("=")[0]
    return next((f"{BOLD}{form}{PLAIN}\n{help}" for flags, form, help in parser.explained() if flag in flags), "")


def _named(name: str, registry: Callable[[], Registry]) -> str | None:
    """What is known about a session, in a few lines; None if there is none of that name."""
    if not name:
        return None
    with contextlib.suppress(SessionError):
        session = registry().find(name)
        return None if session is None else summary(session.info())
    return None


def summary(info: SessionInfo) -> str:
    """A session in a few lines: what it runs, where, for how long, and what it printed last."""
    age = f" for {short_time(time.time() - info.since)}" if info.running and info.since else ""
    rows = [
        ("state", describe(info.state) + age),
        ("program", info.command_line),
        ("directory", short_path(directory(info))),
        ("log", short_bytes(info.log_bytes)),
        ("last line", last_line(info)),
    ]
    return "\n".join([f"{BOLD}{info.name}{PLAIN}", *(f"{what:<10} {value}" for what, value in rows if value)])
