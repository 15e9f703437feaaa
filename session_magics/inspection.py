"""What a word of shell text is: asked of the live shell, of a fresh one of its kind, and of the manual.

Nothing that the word names is ever run. In a live shell the question is a hidden command in a subshell.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from session_magics import manual
from session_magics.completion.lexing import place
from session_magics.completion.sideshell import asked_aside
from session_magics.completion.words import Word
from session_magics.errors import SessionError
from session_magics.listing import directory
from session_magics.programs import find_shell
from session_magics.run import run_hidden
from session_magics.session import Session
from session_magics.variables import RECORD, quoted, report

ANSWER_LIMIT = 3.0
"""Seconds in which a shell has to say what a word is; it takes some milliseconds, on a busy machine more."""
FIRST_LINES = 30
"""Lines of a function or a help text that are shown when not all is asked for."""
VALUE_CHARACTERS = 2000
"""Characters of a variable's value that are shown."""
BOLD, PLAIN = "\x1b[1m", "\x1b[0m"

WORD_END = re.compile(r"[^\s;|&()<>\"'`$\\]*")
NAME = re.compile(r"[^\s\"'`$\\;|&()<>{}*?\x00-\x1f-][^\s\"'`$\\;|&()<>{}*?\x00-\x1f]*|\{|\[\[?|!|\}")
"""What can be asked about: one word that is no option and holds nothing to be expanded."""


@dataclass(frozen=True)
class Subject:
    """What the cursor is at: a ``word`` of a command (the command itself too), or a ``variable``."""

    command: str = ""
    word: str = ""
    second: str = ""
    """The first argument, if the word is further on: with some programs a command of their own."""
    variable: str = ""


def subject(text: str, cursor: int) -> Subject | None:
    """What stands at the cursor of shell text, or right before it; None: nothing that could be asked about."""
    name_end = re.compile(r"\w*").match(text, cursor).end()  # type: ignore[union-attr]
    found = place(text, name_end)
    if found.kind == "variable":
        return Subject(variable=found.word.raw) if found.word.raw else None
    found = place(text, WORD_END.match(text, cursor).end())  # type: ignore[union-attr]
    word = found.word.literal or ""
    if found.kind == "command":
        return Subject(word, word) if word else None
    if found.kind in ("argument", "file", "user") and found.before:
        command, second = (one.literal or "" for one in (*found.before, Word(0))[:2])
        return Subject(command, word, second)
    return None


def inspect(
    text: str,
    cursor: int,
    session: Session | None,
    program: str,
    *,
    cwd: str | None = None,
    detail: int = 0,
    aside: bool = False,
) -> str | None:
    """What stands at the cursor, as text with bold headings; None where nothing is known.

    Args:
        text: shell text, such as the body of a cell.
        cursor: code points of it before the cursor.
        session: the shell session that would run it. None, busy or not answering: what is known without it.
        program: the shell, by name or path, if there is no session.
        cwd: the directory it would begin in, if there is no session.
        detail: 0 for the first lines, 1 for whole functions and pages.
        aside: have no session asked, as if all were busy.
    """
    found = subject(text, cursor)
    if found is None:
        return None
    asked = Shell.of(session, program, cwd, aside=aside)
    if found.variable:
        return asked.variable(found.variable)
    parts = [asked.argument(found, detail), asked.command(found.command, detail)]
    return next((part for part in parts if part), None)


@dataclass(frozen=True)
class Shell:
    """A shell that can be asked: the live one if there is a session that is free, else a fresh one of its kind."""

    session: Session | None
    program: str
    dialect: str
    cwd: str | None
    here: bool
    """Whether it runs on this machine, so that the manual of this machine is its own."""
    aside: bool = False
    """Whether it is taken for busy."""

    @classmethod
    def of(cls, session: Session | None, program: str, cwd: str | None, *, aside: bool) -> Shell:
        """The shell of a session, or of that program where there is none."""
        info = session.info() if session is not None else None
        if info is None or info.shell is None or not info.running:
            path, dialect = find_shell(program)
            return cls(None, path, dialect, cwd, True)
        return cls(session, info.argv[0], info.shell, None if info.on else directory(info), info.on is None, aside)

    def _ask(self, body: str) -> dict[str, str]:
        """The records of a query, by their names."""
        records = self._live(body)
        if records is None:
            records = self._fresh(body) if self.here else []
        pairs = (one.decode("utf-8", "replace").partition("\t") for one in records)
        return {name: value for name, _, value in pairs if value.strip()}

    def _live(self, body: str) -> list[bytes] | None:
        """What the session's shell answers; None while it cannot, which a busy one says at once."""
        if self.session is None or self.aside:
            return None
        with contextlib.suppress(SessionError, OSError):
            return list(run_hidden(self.session, report(body, self.dialect), limit=ANSWER_LIMIT).records)
        return None

    def _fresh(self, body: str) -> list[bytes]:
        cwd = self.cwd if self.cwd and os.path.isdir(self.cwd) else os.getcwd()
        return asked_aside(self.program, report(body, self.dialect), cwd, time.monotonic() + ANSWER_LIMIT, None)

    # ---- what can be asked

    def variable(self, name: str) -> str | None:
        """A variable's value, as its shell declares it."""
        if self.session is not None and (self.aside or self.session.begun() is not None):
            where = "" if self.aside else f" in session {self.session.name!r}"
            return f"{BOLD}${name}{PLAIN}: not known while a command runs{where}"
        value = self._ask(_VARIABLE[self.dialect].format(name=name, record=RECORD)).get("value", "").rstrip("\n")
        if not value:
            return None
        cut = "…" if len(value) > VALUE_CHARACTERS else ""
        return f"{BOLD}${name}{PLAIN}\n{value[:VALUE_CHARACTERS]}{cut}"

    def argument(self, found: Subject, detail: int) -> str | None:
        """What the manual says about an option, or about a command of a command such as ``git commit``."""
        if found.word == found.command or not self.here:
            return None
        flag = found.word.partition("=")[0] if found.word[:1] == "-" else ""
        own = [f"{found.command}-{word}" for word in (found.second, found.word) if word[:1] not in ("", "-")]
        for name in [*own, *([found.command] if flag else [])]:
            with contextlib.suppress(LookupError):
                page = manual.page(os.path.basename(name))
                if not flag or detail:
                    return _page(page, detail)
                if told := manual.option(page, flag):
                    return f"{BOLD}{name.replace('-', ' ', 1)} {flag}{PLAIN}\n{told}"
        return None

    def command(self, word: str, detail: int) -> str | None:
        """What a command is, with its body, its help or its page."""
        name = word.removeprefix("\\")
        if not NAME.fullmatch(name):
            return None
        told = self._ask(_COMMAND[self.dialect].format(word=quoted(name, self.dialect), record=RECORD))
        kind, text = told.get("kind", "").strip(), told.get("text", "").rstrip("\n")
        parts = [f"{BOLD}{name}{PLAIN}\n{_first(text, detail)}"] if text else []
        if kind != "function" or self.dialect == "fish":  # of which many are given with a page
            parts += [self._help(name, kind, text, told, detail)]
        return "\n\n".join(part for part in parts if part) or None

    def _help(self, name: str, kind: str, text: str, told: Mapping[str, str], detail: int) -> str:
        if "help" in told:
            return _headed(_first(told["help"].rstrip("\n"), detail))
        if not self.here or not text:
            return ""
        if kind in ("builtin", "reserved") and self.dialect == "zsh" and (help := _zsh_help(name)):
            return _first(help, detail)
        places = [told["pages"].strip(), ""] if "pages" in told else [""]
        if kind == "alias" and (target := re.search(r"(?:aliased to `|alias for )(?:\\)?([\w.+-]+)", text)):
            name = target[1]
        for folder in places:
            with contextlib.suppress(LookupError):
                return _page(manual.page(os.path.basename(name), folder), detail)
        return ""


def _first(text: str, detail: int) -> str:
    lines = text.split("\n")
    return text if detail or len(lines) <= FIRST_LINES else "\n".join([*lines[:FIRST_LINES], "…"])


def _page(page: str, detail: int) -> str:
    return _headed(page if detail else manual.beginning(page))


def _headed(text: str) -> str:
    """The headings of a page in bold."""
    return re.sub(r"^([A-Z][A-Z ]+)$", rf"{BOLD}\1{PLAIN}", text, flags=re.M)


def _zsh_help(name: str) -> str:
    """The help text of a zsh builtin that ``run-help`` shows, where the texts are installed."""
    roots = [os.environ.get("HELPDIR", ""), "/usr/share/zsh", "/usr/local/share/zsh", "/opt/homebrew/share/zsh"]
    for root in filter(None, roots):
        for folder in (Path(root), Path(root, "help"), *Path(root).glob("*/help")):
            with contextlib.suppress(OSError):
                return (folder / name).read_text("utf-8", "replace").rstrip("\n")
    return ""


# ------------------------------------------------------------------ the queries

_COMMAND: Mapping[str, str] = {
    "bash": r"""
__sm_k=$(\builtin type -t -- {word})
\builtin printf '{record}kind\t%s\0' "$__sm_k"
\builtin printf '{record}text\t%s\0' "$(\builtin type -a -- {word})"
case $__sm_k in builtin | keyword) \builtin printf '{record}help\t%s\0' "$(\builtin help -m -- {word})" ;; esac""",
    "zsh": r"""
__sm_k=${{"$(\builtin \whence \-w \-- {word})"##*: }}
\builtin \printf '{record}kind\t%s\0' "$__sm_k"
[[ "$__sm_k" = 'none' ]] || \builtin \printf '{record}text\t%s\0' "$(\builtin \whence \-va \-- {word}
[[ "$__sm_k" != 'function' ]] || \builtin \whence \-f \-- {word})" """,
    "sh": r"""
! \command -v {word} >/dev/null 2>&1 || \command printf '{record}text\t%s\0' "$(\command -V {word})" """,
    "fish": r"""
builtin printf '{record}kind\t%s\0' (builtin type -t -- {word} 2>/dev/null)[1]
builtin printf '{record}text\t%s\0' (builtin type -a -- {word} 2>/dev/null | builtin string collect)
builtin printf '{record}pages\t%s\0' "$__fish_data_dir/man" """,
}
_VARIABLE: Mapping[str, str] = {
    "bash": r"""\builtin printf '{record}value\t%s\0' "$(\builtin declare -p {name} 2>/dev/null)" """,
    "zsh": r"""\builtin \printf '{record}value\t%s\0' "$(\builtin \typeset \-p \{name} 2>/dev/null)" """,
    "sh": r"""\command test -z "${{{name}+x}}" || \command printf '{record}value\t%s\0' "{name}='${{{name}-}}'" """,
    "fish": r"""builtin printf '{record}value\t%s\0' (builtin set -S {name} 2>/dev/null | builtin string collect)""",
}
