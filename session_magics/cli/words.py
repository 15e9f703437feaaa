"""The verbs that only the command line has."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping

from session_magics.model import check_name
from session_magics.verbs import options as kind
from session_magics.verbs.options import OptionParser
from session_magics.verbs.words import Verb

PROGRAM = "session-magics"
DETACH_KEY = "C-\\"
"""Leaves the session. Programs know it as the key that makes them dump core, which is seldom wanted."""
SHELLS = ("bash", "zsh", "fish")
KERNEL_ACTIONS = ("install", "remove", "list")


def _attach_options(parser: OptionParser) -> None:
    parser.option("--read-only", action="store_true", help="look and do not touch: no keys, no size")
    key_help = "the key that leaves the session to itself, such as C-] or F12"
    parser.option("--detach-key", metavar="KEY", type=kind.key, default=DETACH_KEY, help=key_help)


def _kernel_options(parser: OptionParser) -> None:
    parser.option("--user", action="store_true", help="for this user, whatever the environment (default)")
    parser.option("--sys-prefix", action="store_true", help="into the environment of this interpreter")
    parser.option("--prefix", metavar="DIR", type=kind.nonempty, help="into DIR/share/jupyter/kernels")
    name_help = "this kernel alone, such as session-zsh; may be repeated"
    parser.option("--name", metavar="NAME", dest="names", action="append", default=[], help=name_help)
    as_help = "install it under another name, such as bash, which notebooks of bash_kernel ask for"
    parser.option("--as", metavar="NAME", dest="called", type=check_name, help=as_help)


def _finish_kernel(parser: OptionParser, call: Namespace) -> None:
    if call.user + call.sys_prefix + (call.prefix is not None) > 1:
        parser.error("--user, --sys-prefix and --prefix are different places: give one")
    if call.called is not None and (call.action != "install" or len(call.names) != 1):
        parser.error("--as belongs to install --name NAME, which says what it is another name of")


VERBS: Mapping[str, Verb] = {
    "attach": Verb(
        "NAME [--read-only] [--detach-key KEY]",
        f"make this terminal the session's, until {DETACH_KEY} or the program's end",
        _attach_options,
        ("name",),
    ),
    "completion": Verb(
        "|".join(SHELLS),
        "print what makes a shell complete verbs and names",
        fixed=("shell",),
        choices=SHELLS,
    ),
    "kernel": Verb(
        "|".join(KERNEL_ACTIONS) + " [--user|--sys-prefix|--prefix DIR] [--name NAME]… [--as NAME]",
        "install kernels whose plain cells are shell, or take them away again",
        _kernel_options,
        ("action",),
        finish=_finish_kernel,
        choices=KERNEL_ACTIONS,
    ),
}
