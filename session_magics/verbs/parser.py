"""The words of ``%%sh_session`` and ``%session``, checked and turned into values.

One parser for the cell magic, the line magic and a command line, so nothing here knows IPython. Options may stand
before or after the plain words. Words are split as a POSIX shell splits them; nothing is expanded. What is wrong is
a UsageMistake of one line; what asks for help is a HelpRequest.
"""

from __future__ import annotations

import difflib
import functools
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from session_magics.errors import UsageMistake
from session_magics.model import DEFAULT_NAME, Lifetime
from session_magics.verbs import options as kind
from session_magics.verbs.examples import CELL_EXAMPLES, EXAMPLES, grouped
from session_magics.verbs.keys import KEYS, key_bytes
from session_magics.verbs.lifecycleoptions import session_options
from session_magics.verbs.options import HelpRequest, OptionParser, sort_words, split_words
from session_magics.verbs.words import OTHER_WORDS, VERBS, Verb

__all__ = [
    "KEYS",
    "VERBS",
    "CellOptions",
    "HelpRequest",
    "Verb",
    "cell_parser",
    "key_bytes",
    "parse_cell",
    "parse_verb",
    "parse_words",
    "verbs",
]


@dataclass(frozen=True)
class CellOptions:
    """The first line of a ``%%sh_session`` cell. None: not given, so the trait or the session's own value holds."""

    name: str = DEFAULT_NAME
    on: str | None = None
    exec: bool = False
    """Whether each cell is a program of its own, whose state is carried to the next one."""
    shell: str | None = None
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout: float | None = None
    out: str | None = None
    result: str | None = None
    raise_error: bool = True
    bg: bool = False
    set: tuple[str, ...] = ()
    get: tuple[str, ...] = ()
    rc: bool = True
    size: tuple[int, int] | None = None
    lifetime: Lifetime | None = None
    limit: int | None = None
    """Bytes of output shown; 0 is a limit too."""
    status_line: bool | None = None
    explain: bool | None = None


@functools.lru_cache(maxsize=128)
def parse_cell(line: str, *, program: str = "%%sh_session") -> CellOptions:
    """Read the line of a shell cell: an optional NAME and options, in any order."""
    parser = cell_parser(program)
    options, names = sort_words(parser, split_words(line))
    if len(names) > 1:
        parser.error(
            f"one session name at most, not {' '.join(map(repr, names[:4]))}: the command goes below this line"
        )
    call = vars(parser.parse_args(options))
    if names:
        call["name"] = names[0]
    elif call["on"] is not None:
        from session_magics.sandbox.places import session_name  # most cells run here

        call["name"] = session_name(call["on"])
    call.update(set=tuple(call["set"]), get=tuple(call["get"]))
    return CellOptions(**call)


def cell_parser(program: str = "%%sh_session") -> OptionParser:
    """The options of a shell cell's first line."""
    parser = OptionParser(program, "[NAME] [options]", "Run the cell in a shell that lives on between cells.")
    parser.examples = [f"{program} {line}" for line in CELL_EXAMPLES]
    _cell_options(parser)
    return parser


def parse_verb(line: str, *, program: str = "%session") -> Namespace:
    """Read the line of ``%session``; an empty one is ``list``. The result is that of ``parse_words``."""
    return parse_words(split_words(line), program=program)


def parse_words(
    words: Sequence[str],
    *,
    program: str = "%session",
    more: Mapping[str, Verb] = MappingProxyType({}),
) -> Namespace:
    """Read a verb and its words; the result has ``verb``, ``json`` and what that verb takes (None: not given).

    ``more``: verbs that this program has beside the common ones.

    start: name, on, argv (tuple, empty with shell), shell, cwd, env and labels (dicts), size, lifetime, restart,
    max_restarts, backend, wait_for, wait_port (0: any), timeout, tool, approve_all, parent. list: labels, engines.
    info, attachments, interrupt: name.
    tail: name, lines, follow. history: name, last, failed. show: name, read_only, rows. snapshot: name, html.
    send: name, text, enter, keys (names for ``key_bytes``, sent after the text).
    wait: name, pattern, port (0: any), silence, timeout. stop: names, labels, all, grace, now.
    restart: name (None with labels), labels, env. remove: names, labels, force, keep_log.
    clean: labels, older, keep, total, dry_run. resize: name, size. copy: source, target.
    import: file, dry_run. approve: name (None: all), allow, deny, minutes, most, off.
    record: name, file, begin, end, follow, idle_limit, version, force, stop.
    play: what, speed, start_at, idle_limit, autoplay. shell: name. tmux: name, action. tools, doctor: nothing more.
    """
    word, *rest = words or ["list"]
    table = {**VERBS, **more}
    if word in ("-h", "--help") or (word == "help" and not rest):
        raise HelpRequest(_overview(program, table))
    if word == "help":
        word, rest = rest[0], ["--help"]
    verb = table.get(word)
    if verb is None:
        near = OTHER_WORDS.get(word) or next(iter(difflib.get_close_matches(word, table, n=1)), None)
        hint = f"did you mean {near!r}? " if near else ""
        raise UsageMistake(f"{program} has no verb {word[:40]!r}: {hint}verbs are {', '.join(table)}")
    parser = verb.parser(f"{program} {word}")
    parser.examples = [f"{program} {word} {line}".rstrip() for line in EXAMPLES.get(word, ())]
    options, plain = sort_words(parser, rest, tail=verb.tail)
    call = parser.parse_args(options, Namespace(verb=word))
    _place(parser, verb, call, plain)
    verb.finish(parser, call)
    return call


def verbs(table: Mapping[str, Verb] | None = None) -> list[tuple[str, str, str]]:
    """Return (verb, usage, help in one line) for each verb, as the README's tables list them."""
    shown = VERBS if table is None else table
    return [(name, f"{name} {verb.usage}".rstrip(), verb.help) for name, verb in shown.items()]


def _place(parser: OptionParser, verb: Verb, call: Namespace, words: list[str]) -> None:
    """Give the plain words their names in the call."""
    if len(words) < len(verb.fixed):
        parser.misuse(f"{' and '.join(verb.fixed[len(words) :]).upper()} is missing")
    if verb.choices and words[0] not in verb.choices:
        parser.misuse(f"no {verb.fixed[0]} {words[0][:40]!r}")
    for name in verb.fixed:
        setattr(call, name, words.pop(0))
    if verb.optional:
        setattr(call, verb.optional, words.pop(0) if words else None)
    if verb.tail:
        setattr(call, verb.tail, tuple(words))
    elif words:
        parser.misuse(f"{words[0][:40]!r} is a word too many")


def _overview(program: str, table: Mapping[str, Verb]) -> str:
    width = max(map(len, table))
    parts = [f"usage: {program} VERB …"]
    for title, names in grouped(table).items():
        lines = [f"  {name:<{width}}  {table[name].help}" for name in names]
        parts.append("\n".join([f"{title}:", *lines]))
    return "\n\n".join(parts) + f"\n\n{program} VERB --help shows the words of a verb, with examples.\n"


def _cell_options(parser: OptionParser) -> None:
    session_options(parser)
    option = parser.option
    option("--no-rc", dest="rc", action="store_false", help="do not read the start-up file of the shell")
    option("--exec", action="store_true", help="a program of its own for the cell; directory and exports carry over")
    option("--timeout", metavar="S", type=kind.timeout, help="interrupt the command after S seconds")
    option("--out", metavar="VAR", type=kind.python_name, help="put the output's text into this Python variable")
    option("--result", metavar="VAR", type=kind.python_name, help="put status, text, directory and times into it")
    option(
        "--set", metavar="VAR,…", type=kind.variable_names, action="extend", default=[], help="Python to shell, before"
    )
    option(
        "--get", metavar="VAR,…", type=kind.variable_names, action="extend", default=[], help="shell to Python, after"
    )
    option("--no-raise-error", dest="raise_error", action="store_false", help="a failing command is no error")
    option("--bg", action="store_true", help="return at once; output goes on below the cell")
    option(
        "--explain", action="store_true", default=None, help="say in plain words what a failing command stumbled over"
    )
    option("--no-explain", dest="explain", action="store_false", default=None, help="do not")
    option("--status-line", action="store_true", default=None, help="directory, status and duration below the output")
    option("--no-status-line", dest="status_line", action="store_false", default=None, help="no such line")
    option("--limit", metavar="BYTES", type=kind.byte_count, help="output shown at most, such as 500k or 2MB")
