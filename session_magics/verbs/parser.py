"""The words of ``%%sh_session`` and ``%session``, checked and turned into values.

One parser for the cell magic, the line magic and a command line, so nothing here knows IPython. Options may stand
before or after the plain words. Words are split as a POSIX shell splits them; nothing is expanded. What is wrong is
a UsageMistake of one line; what asks for help is a HelpRequest.
"""

from __future__ import annotations

import difflib
import functools
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from session_magics.errors import UsageMistake
from session_magics.model import Lifetime, check_name
from session_magics.verbs import options as kind
from session_magics.verbs.keys import KEYS, key_bytes
from session_magics.verbs.options import HelpRequest, OptionParser, Tail, sort_words, split_words

__all__ = [
    "KEYS",
    "CellOptions",
    "HelpRequest",
    "Verb",
    "key_bytes",
    "parse_cell",
    "parse_verb",
    "parse_words",
    "verbs",
]

TAIL_LINES = 20
"""Lines that ``tail`` shows when not told: they fit on a page next to the cell."""


@dataclass(frozen=True)
class CellOptions:
    """The first line of a ``%%sh_session`` cell. None: not given, so the trait or the session's own value holds."""

    name: str = "main"
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


@functools.lru_cache(maxsize=128)
def parse_cell(line: str, *, program: str = "%%sh_session") -> CellOptions:
    """Read the line of a shell cell: an optional NAME and options, in any order."""
    parser = OptionParser(program, "[NAME] [options]", "Run the cell in a shell that lives on between cells.")
    _cell_options(parser)
    options, names = sort_words(parser, split_words(line))
    if len(names) > 1:
        parser.error(
            f"one session name at most, not {' '.join(map(repr, names[:4]))}: the command goes below this line"
        )
    call = vars(parser.parse_args(options))
    call.update(
        {"name": names[0]} if names else {}, env=dict(call["env"]), set=tuple(call["set"]), get=tuple(call["get"])
    )
    return CellOptions(**call)


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

    start: name, argv (tuple, empty with shell), shell, cwd, env and labels (dicts), size, lifetime, restart,
    backend, wait_for, timeout. list: labels. info, interrupt: name. snapshot: name, html. restart: name, env.
    tail: name, lines, follow. show: name, read_only, rows.
    send: name, text, enter, keys (names for ``key_bytes``, sent after the text).
    wait: name, timeout, pattern. stop: names, all, grace, now. remove: names, force, keep_log.
    resize: name, size. import: file, dry_run. doctor: nothing more.
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
    options, plain = sort_words(parser, rest, tail=verb.tail)
    call = parser.parse_args(options, Namespace(verb=word))
    _place(parser, verb, call, plain)
    verb.finish(parser, call)
    return call


def verbs(table: Mapping[str, Verb] | None = None) -> list[tuple[str, str, str]]:
    """Return (verb, usage, help in one line) for each verb, as the README's tables list them."""
    shown = VERBS if table is None else table
    return [(name, f"{name} {verb.usage}".rstrip(), verb.help) for name, verb in shown.items()]


@dataclass(frozen=True)
class Verb:
    """How a verb is called: ``fixed`` words, then the ``tail``; ``finish`` checks what one option cannot."""

    usage: str
    help: str
    options: Callable[[OptionParser], None] = lambda parser: None
    fixed: tuple[str, ...] = ()
    tail: Tail = ""
    finish: Callable[[OptionParser, Namespace], None] = lambda parser, call: None

    def parser(self, program: str) -> OptionParser:
        """What reads the options of this verb."""
        parser = OptionParser(program, self.usage, self.help)
        self.options(parser)
        parser.option("--json", action="store_true", help='give {"ok": true, "value": …} as JSON')
        return parser


def _place(parser: OptionParser, verb: Verb, call: Namespace, words: list[str]) -> None:
    """Give the plain words their names in the call."""
    if len(words) < len(verb.fixed):
        parser.misuse(f"{' and '.join(verb.fixed[len(words) :]).upper()} is missing")
    for name in verb.fixed:
        setattr(call, name, words.pop(0))
    if verb.tail:
        setattr(call, verb.tail, tuple(words))
    elif words:
        parser.misuse(f"{words[0][:40]!r} is a word too many")


def _overview(program: str, table: Mapping[str, Verb]) -> str:
    width = max(map(len, table))
    lines = [f"  {name:<{width}}  {verb.help}" for name, verb in table.items()]
    return f"usage: {program} VERB …\n\n" + "\n".join(lines) + f"\n\n{program} VERB --help shows the words of a verb.\n"


# --------------------------------------------------- options and checks by verb


def _session_options(parser: OptionParser) -> None:
    """What a cell and ``start`` say alike about a session that is made."""
    parser.option("--shell", metavar="SH", type=kind.nonempty, help="bash, zsh, sh, fish, or a path to one of them")
    parser.option("--cwd", metavar="DIR", type=kind.nonempty, help="directory to begin in")
    parser.option("--env", metavar="K=V", type=kind.pair, action="append", default=[], help="may be repeated")
    parser.option("--size", metavar="RxC", type=kind.size, help="rows and columns of the terminal, such as 24x80")
    lifetime = "kernel: ends with this kernel; detached: until it is stopped"
    parser.option("--lifetime", choices=("kernel", "detached"), help=lifetime)


def _cell_options(parser: OptionParser) -> None:
    _session_options(parser)
    option = parser.option
    option("--no-rc", dest="rc", action="store_false", help="do not read the start-up file of the shell")
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
    option("--limit", metavar="BYTES", type=kind.byte_count, help="output shown at most, such as 500k or 2MB")


def _start_options(parser: OptionParser) -> None:
    _session_options(parser)
    parser.option("--label", metavar="K=V", dest="labels", type=kind.pair, action="append", default=[])
    parser.option("--restart", choices=("no", "on-failure", "always"), default="no", help="after the program's end")
    parser.option("--backend", choices=("auto", "native", "tmux"), help="what holds it; tmux can attach to it then")
    parser.option("--wait-for", metavar="REGEX", type=kind.regex, help="return when the output has this")
    parser.option("--timeout", metavar="S", type=kind.timeout, help="seconds to wait for it")


def _finish_start(parser: OptionParser, call: Namespace) -> None:
    check_name(call.name)
    call.env, call.labels = dict(call.env), dict(call.labels)
    call.lifetime = call.lifetime or "detached"
    if not call.argv and call.shell is None:
        parser.misuse("PROGRAM is missing")
    if call.argv and call.shell is not None:
        parser.error("--shell starts a shell and takes no PROGRAM: leave out one of them")
    if call.shell is not None and call.backend == "tmux":
        parser.error("tmux holds no shells for cells: leave out --backend tmux")
    if call.timeout is not None and call.wait_for is None:
        parser.error("--timeout belongs to --wait-for REGEX, which is missing")


def _list_options(parser: OptionParser) -> None:
    parser.option("--label", metavar="K=V", dest="labels", type=kind.pair, action="append", default=[])


def _finish_list(_: OptionParser, call: Namespace) -> None:
    call.labels = dict(call.labels)


def _tail_options(parser: OptionParser) -> None:
    parser.option("-n", "--lines", metavar="N", type=kind.count, default=TAIL_LINES, help="how many lines")
    parser.option("-f", "--follow", action="store_true", help="go on with what comes, until interrupted")


def _show_options(parser: OptionParser) -> None:
    parser.option("--read-only", action="store_true", help="look and do not touch: no keys, no buttons")
    parser.option("--rows", metavar="N", type=kind.count, help="height of the view in lines")


def _snapshot_options(parser: OptionParser) -> None:
    parser.option("--html", action="store_true", help="as HTML that stands alone, with the colours")


def _send_options(parser: OptionParser) -> None:
    parser.option("--no-enter", dest="enter", action="store_false", help="do not press Enter after the text")
    key_help = "a key after the text, such as C-c, Enter, Up, M-x; may be repeated; Enter is not added then"
    parser.option("--key", metavar="KEY", dest="keys", type=kind.key, action="append", default=[], help=key_help)


def _finish_send(parser: OptionParser, call: Namespace) -> None:
    call.keys = tuple(call.keys)
    if not call.text and not call.keys:
        parser.misuse("TEXT or --key is missing")
    call.enter = call.enter and not call.keys
    call.text = " ".join(call.text) if call.text else None


def _wait_options(parser: OptionParser) -> None:
    parser.option("--timeout", metavar="S", type=kind.seconds, help="give up after S seconds; the session goes on")
    parser.option("--for", metavar="REGEX", dest="pattern", type=kind.regex, help="wait for this in the output")


def _stop_options(parser: OptionParser) -> None:
    parser.option("--all", action="store_true", help="every session")
    parser.option("--grace", metavar="S", type=kind.seconds, help="seconds between TERM and KILL")
    parser.option("--now", action="store_true", help="KILL at once")


def _finish_stop(parser: OptionParser, call: Namespace) -> None:
    if bool(call.names) == call.all:
        parser.misuse("give names or --all, not both" if call.all else "NAME or --all is missing")
    if call.now and call.grace is not None:
        parser.error("--now leaves no grace: give --now or --grace")


def _restart_options(parser: OptionParser) -> None:
    parser.option("--env", metavar="K=V", type=kind.pair, action="append", default=[], help="may be repeated")


def _finish_restart(_: OptionParser, call: Namespace) -> None:
    call.env = dict(call.env)


def _remove_options(parser: OptionParser) -> None:
    parser.option("--force", action="store_true", help="stop what still runs first")
    parser.option("--keep-log", action="store_true", help="leave the log's files")


def _finish_remove(parser: OptionParser, call: Namespace) -> None:
    if not call.names:
        parser.misuse("NAME is missing")


def _import_options(parser: OptionParser) -> None:
    parser.option("--dry-run", action="store_true", help="say what would be done, and do nothing")


def _finish_resize(parser: OptionParser, call: Namespace) -> None:
    try:
        call.size = kind.size(call.size)
    except UsageMistake as mistake:
        parser.error(str(mistake))


_NAME = ("name",)
_START = (
    "NAME [--shell SH] [--cwd DIR] [--env K=V]… [--label K=V]… [--size RxC] [--lifetime kernel|detached]"
    " [--restart no|on-failure|always] [--backend auto|native|tmux] [--wait-for REGEX [--timeout S]] [--] PROGRAM ARGS…"
)

VERBS: Mapping[str, Verb] = {
    "start": Verb(_START, "start a program on a terminal of its own", _start_options, _NAME, "argv", _finish_start),
    "list": Verb("[--label K=V]…", "list the sessions and their states", _list_options, finish=_finish_list),
    "info": Verb("NAME", "show all that is known about a session", fixed=_NAME),
    "tail": Verb("NAME [-n 20] [-f]", "show the last lines of the output as text", _tail_options, _NAME),
    "show": Verb("NAME [--read-only] [--rows N]", "show a live terminal of a session", _show_options, _NAME),
    "snapshot": Verb("NAME [--html]", "show what the terminal's screen shows now", _snapshot_options, _NAME),
    "send": Verb(
        "NAME TEXT… [--no-enter] [--key KEY]…", "type text or keys", _send_options, _NAME, "text", _finish_send
    ),
    "interrupt": Verb("NAME", "interrupt what runs in the foreground, as Ctrl-C does", fixed=_NAME),
    "wait": Verb("NAME [--timeout S] [--for REGEX]", "wait for the end, or for a text", _wait_options, _NAME),
    "stop": Verb(
        "NAME…|--all [--grace S] [--now]", "end all processes of a session", _stop_options, (), "names", _finish_stop
    ),
    "restart": Verb(
        "NAME [--env K=V]…", "stop a session and start its program anew", _restart_options, _NAME, "", _finish_restart
    ),
    "remove": Verb(
        "NAME… [--force] [--keep-log]", "forget ended sessions", _remove_options, (), "names", _finish_remove
    ),
    "resize": Verb("NAME RxC", "set the size of the terminal", fixed=("name", "size"), finish=_finish_resize),
    "import": Verb(
        "FILE [--dry-run]", "take over the finished sessions of another registry", _import_options, ("file",)
    ),
    "doctor": Verb("", "check that everything sessions need is here"),
}

# What people type who know other programs.
OTHER_WORDS: Mapping[str, str] = {
    "attach": "show",
    "delete": "remove",
    "kill": "stop",
    "log": "tail",
    "logs": "tail",
    "ls": "list",
    "new": "start",
    "ps": "list",
    "rm": "remove",
    "run": "start",
    "status": "info",
}
