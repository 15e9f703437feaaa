"""The options of the verbs for lessons."""

from __future__ import annotations

from session_magics.errors import UsageMistake
from session_magics.variables import check_variable_names
from session_magics.verbs import options as kind
from session_magics.verbs.options import OptionParser

EXPECT = (
    "[NAME] [--status N] [--contains TEXT]… [--lacks TEXT]… [--matches REGEX]… [--file PATH]… [--no-file PATH]…"
    " [--file-contains PATH=TEXT]… [--executable PATH]… [--cwd DIR] [--variable NAME=VALUE]… [--command-used WORD]…"
    " [--hint TEXT] [--strict]"
)

SCRATCH = "[NAME] [--dir DIR] [--from DIR] [--reset]"


def _status(text: str) -> int:
    if not text.removeprefix("-").isdecimal() or len(text) > 4:
        raise UsageMistake(f"{text!r} is no exit status, such as 0 or 127")
    return int(text)


def _variable(text: str) -> tuple[str, str]:
    name, value = kind.pair(text)
    check_variable_names([name])
    return name, value


def expect_options(parser: OptionParser) -> None:
    """What can be expected of a command."""

    def several(flag: str, metavar: str, type: object, help: str) -> None:
        parser.option(flag, metavar=metavar, type=type, action="append", default=[], help=f"{help}; may be repeated")

    parser.option("--status", metavar="N", type=_status, help="it ended with this status; 0 if nothing else is asked")
    several("--contains", "TEXT", kind.nonempty, "the output has this text")
    several("--lacks", "TEXT", kind.nonempty, "the output does not have this text")
    several("--matches", "REGEX", kind.regex, "the output matches, ^ and $ being the ends of lines")
    several(
        "--file",
        "PATH",
        kind.nonempty,
        "this exists, seen from the shell's directory; with a / at the end: a directory",
    )
    several("--no-file", "PATH", kind.nonempty, "this does not exist")
    several("--file-contains", "PATH=TEXT", kind.pair, "this file has the text in it")
    several("--executable", "PATH", kind.nonempty, "this file may be executed")
    parser.option("--cwd", metavar="DIR", type=kind.nonempty, help="the shell is there; relative: the end of its name")
    several("--variable", "NAME=VALUE", _variable, "the shell's variable has this value")
    several("--command-used", "WORD", kind.nonempty, "the command has this word, such as grep, -r or '|'")
    parser.option("--hint", metavar="TEXT", type=kind.nonempty, help="shown if something does not hold")
    parser.option("--strict", action="store_true", help="what does not hold is an error, for graders and CI")


def scratch_options(parser: OptionParser) -> None:
    """Where the directory is and what is put into it."""
    default = "the directory; default: one for this session, among the temporary files"
    parser.option("--dir", metavar="DIR", type=kind.nonempty, help=default)
    parser.option("--from", dest="source", metavar="DIR", type=kind.nonempty, help="copy what is in this directory")
    parser.option(
        "--reset", action="store_true", help="empty the directory first, if it is one that this verb has made"
    )
