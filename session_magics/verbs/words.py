"""The verbs of ``%session`` and the command line: their words, and the checks that one option alone cannot do."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from session_magics.errors import UsageMistake
from session_magics.model import DEFAULT_NAME, ENGINE_MARK
from session_magics.verbs import lifecycleoptions, recordingoptions, teachingoptions
from session_magics.verbs import options as kind
from session_magics.verbs.lifecycleoptions import ANY_PORT, ENGINE_PLACE
from session_magics.verbs.options import OptionParser, Tail

HISTORY_COMMANDS = 50
"""Commands that ``history`` shows when not told: what a page can be read through."""
TAIL_LINES = 20
"""Lines that ``tail`` shows when not told: they fit on a page next to the cell."""


@dataclass(frozen=True)
class Verb:
    """How a verb is called: ``fixed`` words, an ``optional`` one, the ``tail``; ``finish`` checks them together."""

    usage: str
    help: str
    options: Callable[[OptionParser], None] = lambda parser: None
    fixed: tuple[str, ...] = ()
    tail: Tail = ""
    finish: Callable[[OptionParser, Namespace], None] = lambda parser, call: None
    optional: str = ""
    choices: tuple[str, ...] = ()
    """What the first of the fixed words may be; empty: anything."""

    def parser(self, program: str) -> OptionParser:
        """What reads the options of this verb."""
        parser = OptionParser(program, self.usage, self.help)
        self.options(parser)
        parser.option("--json", action="store_true", help='give {"ok": true, "value": …} as JSON')
        return parser


def _list_options(parser: OptionParser) -> None:
    parser.pairs("--label", dest="labels", help="those that carry it; may be repeated")
    parser.option("--engines", action="store_true", help="those of the engines of an IPython Parallel cluster too")


def _tail_options(parser: OptionParser) -> None:
    parser.option("-n", "--lines", metavar="N", type=kind.count, default=TAIL_LINES, help="how many lines")
    parser.option("-f", "--follow", action="store_true", help="go on with what comes, until interrupted")


def _history_options(parser: OptionParser) -> None:
    parser.option("-n", "--last", metavar="N", type=kind.count, default=HISTORY_COMMANDS, help="how many at most")
    parser.option("--failed", action="store_true", help="only those whose status is not 0")


def _finish_history(_: OptionParser, call: Namespace) -> None:
    call.name = call.name or DEFAULT_NAME


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
    port_help = "wait until it listens on this TCP port, or on any"
    parser.option("--port", metavar="N", nargs="?", const=ANY_PORT, type=kind.port, help=port_help)
    parser.option("--silence", metavar="S", type=kind.timeout, help="wait until nothing was printed for S seconds")
    parser.option("--timeout", metavar="S", type=kind.seconds, help="give up after S seconds; the session goes on")


def _finish_wait(parser: OptionParser, call: Namespace) -> None:
    given = {"PATTERN": call.pattern, "--port": call.port, "--silence": call.silence}
    named = [what for what, value in given.items() if value is not None]
    if len(named) > 1:
        parser.error(f"{' and '.join(named)} are different things to wait for: give one")
    if call.pattern is not None:
        try:
            kind.regex(call.pattern)
        except UsageMistake as mistake:
            parser.error(str(mistake))


def _import_options(parser: OptionParser) -> None:
    parser.option("--dry-run", action="store_true", help="say what would be done, and do nothing")


def _finish_resize(parser: OptionParser, call: Namespace) -> None:
    try:
        call.size = kind.size(call.size)
    except UsageMistake as mistake:
        parser.error(str(mistake))


def _approve_options(parser: OptionParser) -> None:
    allow_help = "what may be approved, such as 'git status', 'npm run *', 'Edit(src/**)'; may be repeated"
    parser.option("--allow", metavar="RULE", type=kind.nonempty, action="append", default=[], help=allow_help)
    parser.option("--deny", metavar="RULE", type=kind.nonempty, action="append", default=[], help="wins over --allow")
    parser.option("--minutes", metavar="N", type=kind.minutes, help="for how long; 30 when not told")
    parser.option("--most", metavar="N", type=kind.count, help="how many answers; 50 when not told")
    parser.option("--off", action="store_true", help="of one session, or without NAME of all")


def _finish_approve(parser: OptionParser, call: Namespace) -> None:
    call.allow, call.deny = tuple(call.allow), tuple(call.deny)
    given = bool(call.allow or call.deny or call.minutes is not None or call.most is not None)
    if given and call.off:
        parser.error("--off takes no rules and no limits: leave out one of them")
    if given and call.name is None:
        parser.misuse("NAME is missing")
    if given and not call.allow:
        parser.misuse("--allow RULE is missing: what no rule allows is asked")


_NAME = ("name",)
_START = (
    "NAME [--on PLACE] [--shell SH] [--cwd DIR] [--env K=V]… [--label K=V]… [--size RxC]"
    " [--lifetime kernel|detached]"
    " [--restart no|on-failure|always] [--max-restarts N[/TIME]] [--backend auto|native|tmux]"
    " [--wait-for REGEX|--wait-port [N]] [--timeout S] [--parent NAME]"
    " [--tool TOOL [--approve-all] [--] ARGS…] [--] PROGRAM ARGS…"
)
_CLEAN = "[--older TIME] [--keep N] [--total BYTES] [--label K=V]… [--dry-run]"

VERBS: Mapping[str, Verb] = {
    "start": Verb(
        _START,
        "start a program on a terminal of its own",
        lifecycleoptions.start_options,
        _NAME,
        "argv",
        lifecycleoptions.finish_start,
    ),
    "list": Verb("[--label K=V]… [--engines]", "list the sessions and their states", _list_options),
    "info": Verb("NAME", "show all that is known about a session", fixed=_NAME),
    "tail": Verb("NAME [-n 20] [-f]", "show the last lines of the output as text", _tail_options, _NAME),
    "history": Verb(
        f"[NAME] [-n {HISTORY_COMMANDS}] [--failed]",
        "list the commands of a shell: when, how long, status, directory",
        _history_options,
        finish=_finish_history,
        optional="name",
    ),
    "show": Verb("NAME [--read-only] [--rows N]", "show a live terminal of a session", _show_options, _NAME),
    "snapshot": Verb("NAME [--html]", "show what the terminal's screen shows now", _snapshot_options, _NAME),
    "attachments": Verb("NAME", "show the images and videos that the output names", fixed=_NAME),
    "send": Verb(
        "NAME TEXT… [--no-enter] [--key KEY]…", "type text or keys", _send_options, _NAME, "text", _finish_send
    ),
    "interrupt": Verb("NAME", "interrupt what runs in the foreground, as Ctrl-C does", fixed=_NAME),
    "wait": Verb(
        "NAME [PATTERN|--port [N]|--silence S] [--timeout S]",
        "wait for the end, for a text, a port or silence",
        _wait_options,
        _NAME,
        finish=_finish_wait,
        optional="pattern",
    ),
    "stop": Verb(
        "NAME…|--label K=V…|--all [--grace S] [--now]",
        "end all processes of sessions",
        lifecycleoptions.stop_options,
        tail="names",
        finish=lifecycleoptions.finish_stop,
    ),
    "restart": Verb(
        "NAME|--label K=V… [--env K=V]…",
        "stop a session and start its program anew",
        lifecycleoptions.restart_options,
        finish=lifecycleoptions.finish_restart,
        optional="name",
    ),
    "remove": Verb(
        "NAME…|--label K=V… [--force] [--keep-log]",
        "forget ended sessions",
        lifecycleoptions.remove_options,
        tail="names",
        finish=lifecycleoptions.finish_group,
    ),
    "clean": Verb(_CLEAN, "forget ended sessions by age, number or size", lifecycleoptions.clean_options),
    "copy": Verb("SOURCE TARGET", "copy files or folders between here and PLACE:PATH", fixed=("source", "target")),
    "resize": Verb("NAME RxC", "set the size of the terminal", fixed=("name", "size"), finish=_finish_resize),
    "approve": Verb(
        "NAME [--allow RULE]… [--deny RULE]… [--minutes N] [--most N]|[NAME] --off",
        "have an agent's questions answered by rule, for a time",
        _approve_options,
        finish=_finish_approve,
        optional="name",
    ),
    "tools": Verb("", "list the coding agents that can be started, and where they are"),
    "expect": Verb(
        teachingoptions.EXPECT,
        "check what the last command of a shell did",
        teachingoptions.expect_options,
        optional="name",
    ),
    "scratch": Verb(
        teachingoptions.SCRATCH,
        "go into a clean directory for a lesson",
        teachingoptions.scratch_options,
        optional="name",
    ),
    "record": Verb(
        "NAME FILE [--from PLACE [--to PLACE|--follow]] [--idle-limit S] [--v2|--v3] [--force] | NAME --stop",
        "record a session as an asciicast, from now on or what it has printed",
        recordingoptions.record_options,
        _NAME,
        finish=recordingoptions.finish_record,
        optional="file",
    ),
    "play": Verb(
        "FILE|NAME [--speed N] [--start-at S] [--idle-limit S] [--autoplay|--no-autoplay]",
        "play a recording, or the log of a session",
        recordingoptions.play_options,
        ("what",),
    ),
    "shell": Verb("NAME", "open a shell in a session's directory, which ends with it", fixed=_NAME),
    "tmux": Verb(
        "NAME ACTION", "have the tmux that holds a session split, zoom and the like", fixed=("name", "action")
    ),
    "import": Verb(
        "FILE [--dry-run]", "take over the finished sessions of another registry", _import_options, ("file",)
    ),
    "doctor": Verb("", "check that everything sessions need is here"),
}


def reaches_engines(call: Namespace) -> bool:
    """Whether a call is about sessions of engines, at least in part."""
    names = (getattr(call, "name", None) or "", *getattr(call, "names", ()))
    on = getattr(call, "on", None) or ""
    return getattr(call, "engines", False) or on.startswith(ENGINE_PLACE) or any(ENGINE_MARK in name for name in names)


# What people type who know other programs.
OTHER_WORDS: Mapping[str, str] = {
    "assert": "expect",
    "attach": "show",
    "check": "expect",
    "cp": "copy",
    "delete": "remove",
    "kill": "stop",
    "log": "tail",
    "logs": "tail",
    "ls": "list",
    "gc": "clean",
    "new": "start",
    "prune": "clean",
    "ps": "list",
    "rm": "remove",
    "run": "start",
    "status": "info",
}
