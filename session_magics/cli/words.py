"""The verbs that only the command line has."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping

from session_magics.verbs import options as kind
from session_magics.verbs.options import OptionParser
from session_magics.verbs.words import Verb

PROGRAM = "session-magics"
DETACH_KEY = "C-\\"
"""Leaves the session. Programs know it as the key that makes them dump core, which is seldom wanted."""
SHELLS = ("bash", "zsh", "fish")


def _attach_options(parser: OptionParser) -> None:
    parser.option("--read-only", action="store_true", help="look and do not touch: no keys, no size")
    key_help = "the key that leaves the session to itself, such as C-] or F12"
    parser.option("--detach-key", metavar="KEY", type=kind.key, default=DETACH_KEY, help=key_help)


def _finish_completion(parser: OptionParser, call: Namespace) -> None:
    if call.shell not in SHELLS:
        parser.misuse(f"no completion for {call.shell[:40]!r}")


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
        finish=_finish_completion,
    ),
}
