"""The options of the verbs that start and end sessions, and those of a shell cell that starts one."""

from __future__ import annotations

from argparse import Namespace

from session_magics.model import check_name
from session_magics.verbs import options as kind
from session_magics.verbs.options import OptionParser

ANY_PORT = 0
"""What --port is without a number."""
ENGINE_PLACE = "engine:"
"""How --on names an engine, before its number."""


def session_options(parser: OptionParser) -> None:
    """What a cell and ``start`` say alike about a session that is made."""
    parser.option("--shell", metavar="SH", type=kind.nonempty, help="bash, zsh, sh, fish, or a path to one of them")
    parser.option("--cwd", metavar="DIR", type=kind.nonempty, help="directory to begin in")
    parser.pairs("--env", help="may be repeated")
    parser.option("--size", metavar="RxC", type=kind.size, help="rows and columns of the terminal, such as 24x80")
    parser.option(
        "--on",
        metavar="PLACE",
        type=kind.nonempty,
        help="docker:IMAGE, container:NAME or ssh:HOST; start: engine:N too",
    )
    lifetime = "kernel: ends with this kernel; detached: until it is stopped"
    parser.option("--lifetime", choices=("kernel", "detached"), help=lifetime)


def start_options(parser: OptionParser) -> None:
    session_options(parser)
    parser.pairs("--label", dest="labels", help="to find it by; may be repeated")
    parser.option("--restart", choices=("no", "on-failure", "always"), default="no", help="after the program's end")
    limit_help = "give up after N restarts (N/TIME: N within that time, such as 5/60s)"
    parser.option("--max-restarts", metavar="N[/TIME]", type=kind.restart_limit, help=limit_help)
    parser.option("--backend", choices=("auto", "native", "tmux"), help="what holds it; tmux can attach to it then")
    parser.option("--wait-for", metavar="REGEX", type=kind.regex, help="return when the output has this")
    port_help = "return when it listens on this TCP port, or on any"
    parser.option("--wait-port", metavar="N", nargs="?", const=ANY_PORT, type=kind.port, help=port_help)
    parser.option("--timeout", metavar="S", type=kind.timeout, help="seconds to wait for it")
    parser.option("--tool", metavar="TOOL", type=kind.nonempty, help="a coding agent, of which only ARGS are given")
    approve_help = "with the tool's own switch that has it ask nothing"
    parser.option("--approve-all", action="store_true", help=approve_help)
    parser.option("--parent", metavar="NAME", type=check_name, help="a session with whose program this one ends")


def finish_start(parser: OptionParser, call: Namespace) -> None:
    check_name(call.name)
    call.lifetime = call.lifetime or "detached"
    if not call.argv and call.shell is None and call.tool is None:
        parser.misuse("PROGRAM is missing")
    if call.tool is not None and call.shell is not None:
        parser.error("--tool and --shell are different things to start: give one")
    if call.approve_all and call.tool is None:
        parser.error("--approve-all belongs to --tool TOOL, which is missing")
    if call.parent is not None and call.shell is not None:
        parser.error("a shell for cells has no parent: leave out --parent, or take %session shell NAME")
    if call.argv and call.shell is not None:
        parser.error("--shell starts a shell and takes no PROGRAM: leave out one of them")
    if call.shell is not None and call.backend == "tmux":
        parser.error("tmux holds no shells for cells: leave out --backend tmux")
    if call.on is not None and call.wait_port is not None and not call.on.startswith(ENGINE_PLACE):
        parser.error("ports are seen on this machine alone: take --wait-for REGEX with --on")
    if call.max_restarts is not None and call.restart == "no":
        parser.error("--max-restarts belongs to --restart on-failure or always, which is missing")
    if call.wait_for is not None and call.wait_port is not None:
        parser.error("give --wait-for or --wait-port: wait for the other one with the verb wait")
    if call.timeout is not None and call.wait_for is None and call.wait_port is None:
        parser.error("--timeout belongs to --wait-for REGEX or --wait-port, which is missing")


def group_options(parser: OptionParser) -> None:
    parser.pairs("--label", dest="labels", help="instead of names: all that carry it; may be repeated")


def finish_group(parser: OptionParser, call: Namespace) -> None:
    if bool(call.names) == bool(call.labels):
        parser.misuse("give names or --label, not both" if call.names else "NAME or --label is missing")


def restart_options(parser: OptionParser) -> None:
    group_options(parser)
    parser.pairs("--env", help="may be repeated")


def finish_restart(parser: OptionParser, call: Namespace) -> None:
    if (call.name is None) == (not call.labels):
        parser.misuse("NAME or --label is missing" if call.name is None else "give NAME or --label, not both")


def stop_options(parser: OptionParser) -> None:
    group_options(parser)
    parser.option("--all", action="store_true", help="every session")
    parser.option("--grace", metavar="S", type=kind.seconds, help="seconds between TERM and KILL")
    parser.option("--now", action="store_true", help="KILL at once")


def finish_stop(parser: OptionParser, call: Namespace) -> None:
    ways = [bool(call.names), bool(call.labels), call.all].count(True)
    if ways != 1:
        parser.misuse("give names, --label or --all, not two of them" if ways else "NAME, --label or --all is missing")
    if call.now and call.grace is not None:
        parser.error("--now leaves no grace: give --now or --grace")


def remove_options(parser: OptionParser) -> None:
    group_options(parser)
    parser.option("--force", action="store_true", help="stop what still runs first")
    parser.option("--keep-log", action="store_true", help="leave the log's files")


def clean_options(parser: OptionParser) -> None:
    option = parser.option
    option("--older", metavar="TIME", type=kind.seconds, help="those that ended longer ago, such as 30s, 10m, 2h or 7d")
    option("--keep", metavar="N", type=kind.count, help="all but the N newest")
    option("--total", metavar="BYTES", type=kind.byte_count, help="the oldest, until the rest fits, such as 500M or 1G")
    parser.pairs("--label", dest="labels", help="only among those that carry it; may be repeated")
    option("--dry-run", action="store_true", help="tell the names and remove nothing")
