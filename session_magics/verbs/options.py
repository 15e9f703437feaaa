"""Options and plain words of a line, and the kinds of value that options take.

argparse reads the options alone. Plain words are sorted out before, so that options may stand on either side of a
NAME, and so that the words of a program or of a text stay untouched.
"""

from __future__ import annotations

import argparse
import difflib
import keyword
import re
import shlex
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn

from session_magics.errors import UsageMistake
from session_magics.model import RestartLimit, check_limit, check_size
from session_magics.text.window import compiled
from session_magics.variables import check_variable_names
from session_magics.verbs.keys import key_bytes

HELP_WIDTH = 100
"""Columns of help texts: they are shown in a page, whose width is not known."""

Tail = Literal["", "argv", "text", "names"]
"""What may follow the fixed words of a verb."""

OPTIONS_IN_TEXT = ("--key", "--no-enter")
"""Options of ``send`` that count after its text has begun; any other word with a dash is text there."""


class HelpRequest(Exception):
    """Help was asked for instead of an action; ``text`` is what to show."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)


def split_words(line: str) -> list[str]:
    """Split a line at spaces outside quotes, and remove the quotes."""
    try:
        return shlex.split(line)
    except ValueError:
        raise UsageMistake(
            "the line ends inside a quote or after a backslash: close the quote, or write a plain ' as \"'\""
        ) from None


def _shown(check: Callable[[str], Any]) -> Callable[[str], Any]:
    """Let argparse show the sentence of a UsageMistake: it hides those of other ValueErrors."""

    def convert(text: str) -> Any:
        try:
            return check(text)
        except UsageMistake as mistake:
            raise argparse.ArgumentTypeError(str(mistake)) from None

    return convert


class _Help(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        raise HelpRequest(parser.format_help())


class _Pairs(argparse.Action):
    """Pairs of several options become one dict."""

    def __call__(self, _: object, call: argparse.Namespace, value: Any, __: str | None = None) -> None:
        setattr(call, self.dest, {**getattr(call, self.dest), value[0]: value[1]})


class OptionParser(argparse.ArgumentParser):
    """argparse for options alone: plain words are sorted out before, so that those of a program stay untouched."""

    def __init__(self, prog: str, usage: str, description: str) -> None:
        super().__init__(
            prog=prog,
            usage=f"%(prog)s {usage}".rstrip(),
            description=description,
            add_help=False,
            allow_abbrev=False,
            formatter_class=lambda prog: argparse.HelpFormatter(prog, width=HELP_WIDTH),
        )
        self.color = False  # Python 3.14 colours help by itself
        self.takes_value: dict[str, bool] = {}
        self.takes_number: set[str] = set()
        """Options that may stand alone, or before a number."""
        self.repeatable: set[str] = set()
        self.examples: Sequence[str] = ()
        """Whole lines that its help shows at the end."""
        self.option("-h", "--help", action=_Help, nargs=0, default=argparse.SUPPRESS, help="show this text")

    def option(self, *flags: str, **how: Any) -> None:
        """Add an option; ``takes_value`` remembers which of them eat the next word."""
        if "type" in how:
            how["type"] = _shown(how["type"])
        action = self.add_argument(*flags, **how)
        if how.get("action") in ("append", "extend", _Pairs):
            self.repeatable.update(flags)
        self.takes_value.update(dict.fromkeys(flags, action.nargs not in (0, "?")))
        if action.nargs == "?":
            self.takes_number.update(flags)

    def pairs(self, flag: str, **how: Any) -> None:
        """Add an option ``K=V`` that may be repeated; its value is a dict."""
        self.option(flag, metavar="K=V", type=pair, action=_Pairs, default={}, **how)

    def format_help(self) -> str:
        text = super().format_help()
        return text + "\nexamples:\n" + "".join(f"  {line}\n" for line in self.examples) if self.examples else text

    def described(self) -> list[tuple[str, str]]:
        """Each option that has a name, with its help."""
        return [
            (flag, action.help or "")
            for action in self._actions
            for flag in action.option_strings
            if flag.startswith("--")
        ]

    def explained(self) -> list[tuple[list[str], str, str]]:
        """Of each option its names, how it is written with its value, and its help."""
        found = []
        for action in self._actions:
            value = action.metavar or "|".join(map(str, action.choices or ()))
            value = f"[{value}]" if value and action.nargs == "?" else value
            found.append(
                (list(action.option_strings), f"{', '.join(action.option_strings)} {value}".strip(), action.help or "")
            )
        return found

    def choices(self, flag: str) -> list[str]:
        """The values that an option has to choose from; none where it takes others."""
        action = self._option_string_actions.get(flag)
        return [str(choice) for choice in action.choices] if action is not None and action.choices else []

    def error(self, message: str) -> NoReturn:
        raise UsageMistake(f"{self.prog}: {message}")

    def misuse(self, message: str) -> NoReturn:
        """An error about the shape of the whole line: it ends with how the line should look."""
        self.error(f"{message}; usage: {self.format_usage().removeprefix('usage: ').strip()}")

    def unknown(self, word: str, *, tail: Tail) -> NoReturn:
        flag = word.partition("=")[0]
        near = difflib.get_close_matches(flag, self.takes_value, n=1)
        hint = f"did you mean {near[0]}?" if near else f"it has {' '.join(self.takes_value)}"
        dashes = {
            "argv": " (options of the program go after its name, those of a tool after --)",
            "text": " (text with a dash goes after --)",
        }
        self.error(f"no option {flag[:40]!r}: {hint}{dashes.get(tail, '')}")


def sort_words(parser: OptionParser, words: Sequence[str], *, tail: Tail = "") -> tuple[list[str], list[str]]:
    """Part options, each with its value attached, from plain words. ``tail`` says what follows NAME.

    "argv": from the first plain word after NAME on, all words belong to the program. "text": from there on, only
    OPTIONS_IN_TEXT are options, so that ``send web git log -p`` is sent whole. After ``--`` (which is text itself
    inside a text) everything is plain.
    """
    options: list[str] = []
    plain: list[str] = []
    rest = deque(words)
    while rest:
        word = rest.popleft()
        in_tail = len(plain) > 1 and tail == "text"
        flag = word.partition("=")[0] if word.startswith("--") else word[:2]
        if word == "--" and not in_tail:
            return options, [*plain, *rest]
        if word[:1] != "-" or word == "-" or (in_tail and flag not in OPTIONS_IN_TEXT):
            plain.append(word)
            if tail == "argv" and len(plain) == 2:
                return options, [*plain, *rest]
        elif flag not in parser.takes_value:
            parser.unknown(word, tail=tail)
        elif word in parser.takes_number and rest and rest[0].isdecimal():
            options.append(f"{word}={rest.popleft()}")
        elif not parser.takes_value[flag]:
            options.append(word if word.startswith("--") else flag)
            if len(word) > 2 and not word.startswith("--"):
                rest.appendleft("-" + word[2:])
        elif word == flag and rest and rest[0] != "--" and rest[0] not in parser.takes_value:
            options.append(word + ("=" if word.startswith("--") else "") + rest.popleft())
        else:
            options.append(word)
    return options, plain


# -------------------------------------------------------------- kinds of value


_TIMES = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(text: str) -> float:
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{0,9})?|\.\d{1,9})([smhd]?)", text, re.ASCII)
    if match is None:
        raise UsageMistake(f"{text!r} is no number of seconds, such as 10 or 0.5, or with a unit: 30s, 10m, 2h, 7d")
    return float(match[1]) * _TIMES[match[2]]


def timeout(text: str) -> float:
    value = seconds(text)
    if value == 0:
        raise UsageMistake("0 s leaves no time: give a number of seconds above 0")
    return value


def minutes(text: str) -> float:
    try:
        value = seconds(text) if text[-1:] in "smhd" else 60 * seconds(text)
    except UsageMistake:
        raise UsageMistake(f"{text!r} is no number of minutes, such as 30, or with a unit: 90s, 10m, 2h") from None
    if value == 0:
        raise UsageMistake(f"{text} leaves no time: give a number of minutes above 0")
    return value / 60


def count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise UsageMistake(f"{text!r} is no whole number of up to 9 digits, such as 20")
    return int(text)


def port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 0 < int(text) < 65536:
        raise UsageMistake(f"{text!r} is no port, such as 8000")
    return int(text)


def restart_limit(text: str) -> RestartLimit:
    number, slash, window = text.partition("/")
    try:
        return check_limit(RestartLimit(count(number), seconds(window) if slash else None))
    except UsageMistake:
        raise UsageMistake(f"{text!r} is no limit of restarts: N, or N/TIME, such as 5 or 5/60s") from None


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


def byte_count(text: str) -> int:
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)\s*([kmg]i?)?b?", text, re.IGNORECASE | re.ASCII)
    if match is None:
        raise UsageMistake(f"{text!r} is no number of bytes, such as 500k, 2MB or 1MiB")
    return int(float(match[1]) * _UNITS[(match[2] or "").lower()])


def size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,6})[xX×](\d{1,6})", text, re.ASCII)
    if match is None:
        raise UsageMistake(f"{text!r} is no terminal size: ROWSxCOLUMNS, such as 24x80")
    return check_size((int(match[1]), int(match[2])))


def pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals or "\0" in text:
        raise UsageMistake(f"{text!r} is no KEY=VALUE")
    return key, value


def python_name(text: str) -> str:
    if not text.isidentifier() or keyword.iskeyword(text):
        raise UsageMistake(f"{text!r} is no name of a Python variable")
    return text


def variable_names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise UsageMistake("name at least one variable, such as a,b")
    for name in names:
        python_name(name)
    check_variable_names(names)
    return names


def regex(text: str) -> str:
    compiled(text)
    return text


def key(text: str) -> str:
    key_bytes(text)
    return text


def nonempty(text: str) -> str:
    if not text or "\0" in text:
        raise UsageMistake("the value is empty or has a NUL in it")
    return text
