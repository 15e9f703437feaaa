"""What shells and common programs print when something fails, as data: the wording, and the kind of failure it means.

A pattern is tried on one line of output. ``it`` is what the complaint is about, ``program`` who complains. Wordings are
those of bash, zsh, dash, fish and of GNU, BSD and busybox tools in English: in other languages nothing is recognised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_AT = r"(?:\S*/)?(?:ba|z|da|k|mk|fi)?sh: (?:eval: )?(?:line )?(?:\d+: )?(?:eval: )?"
"""How a shell begins a complaint about what it was given."""
_WHERE = r"\S+: (?:eval: )?(?:line )?(?:\d+: )?(?:eval: )?"
"""The same, or about a line of a script."""
_ZSH = r"\S*zsh:(?:\d+:)? ?"
_PROGRAM = r"(?P<program>[\w.-]+): "
_QUOTED = r"['\"‘`](?P<it>.+?)['\"’]"
_NAME = r"['\"‘`]?(?P<it>.+?)['\"’]?"
_CANNOT = rf"{_PROGRAM}(?:cannot|can't|failed to) [a-z ]+ {_QUOTED}(?: for reading)?: "
_NONE = r"(?:No such file(?: or directory)?|Directory nonexistent)"
_DENIED = r"(?:Permission denied|Operation not permitted)"
_TEST = r".*\[: "

WORDINGS: tuple[tuple[str, str], ...] = (
    # a script that the shell cannot read
    ("script", r"(?P<it>\S+: (?:line )?\d+): (?:syntax error|unexpected EOF|Syntax error).*"),
    ("script", r"(?P<it>\S+:\d+): (?:parse error|unmatched) .*"),
    # programs that are not there
    ("carriage-return", r".*(?:\$'.*?\\r'|\r): command not found"),
    ("bracket", rf"{_WHERE}(?P<it>\[\S+): (?:command )?not found"),
    ("bracket", rf"{_ZSH}(?:command not found|bad pattern): (?P<it>\[\S+)"),
    ("bracket", r"fish: Unknown command: '(?P<it>\[\S+)'"),
    ("no-command", rf"{_WHERE}(?P<it>.+?): command not found"),
    ("no-command", rf"(?:{_ZSH}|\S+:\d+: )command not found: (?P<it>.+)"),
    ("no-command", r"\S*sh: \d+: (?:eval: )?(?P<it>[^:]+): (?:inaccessible or )?not found"),
    ("no-command", r"fish: Unknown command: '?(?P<it>.+?)'?"),
    ("prompt", r"fish: Expected a variable name after this \$\."),
    ("equals", rf"{_ZSH}(?P<it>\S+) not found"),
    ("interpreter", r".*?(?P<it>[^\s:]+): (?:cannot execute: required file not found|bad interpreter: .*)"),
    ("interpreter", r"exec: Failed to execute process '(?P<it>.+?)': .*(?:interpreter|Windows line endings).*"),
    # files that are not there
    ("no-file", _CANNOT + _NONE),
    ("no-file", rf"\S*sh: \d+: (?:eval: )?cannot (?:open|create) (?P<it>.+?): {_NONE}"),
    ("no-file", r"\S*sh: \d+: (?P<program>\.): (?P<it>.+): not found"),
    ("no-file", rf"{_AT}(?P<program>cd|\.|source|pushd): (?P<it>.+?): {_NONE}"),
    ("no-file", rf"{_AT}(?P<it>.+?): {_NONE}"),
    ("no-file", rf"{_PROGRAM}{_NAME}: {_NONE}"),
    ("no-file", r"(?:zsh|(?P<program>cd|\.|source|pushd)):(?:\d+:)? ?no such file or directory: (?P<it>.+)"),
    ("no-file", r"cd: The directory '(?P<it>.+?)' does not exist"),
    ("no-file", r"warning: Path '(?P<it>.+?)' does not exist"),
    ("no-file", r"(?:source|\.): Error encountered while sourcing file '(?P<it>.+?)':"),
    ("no-file", r"\S*python[\d.]*: can't open file '(?P<it>.+?)': .*"),
    ("cannot-cd", r"\S*sh: (?:\d+: )?(?P<program>cd): can't cd to (?P<it>.+)"),
    ("no-match", rf"{_ZSH}no matches found: (?P<it>.+)"),
    ("no-match", r"fish: No matches for wildcard '(?P<it>.+?)'.*"),
    # what may not be done
    ("denied", _CANNOT + _DENIED),
    ("denied", rf"{_AT}(?P<it>.+?): {_DENIED}"),
    ("denied", rf"{_ZSH}permission denied: (?P<it>.+)"),
    ("denied", r"fish: Unknown command\. '(?P<it>.+?)' exists but is not an executable file\."),
    ("denied", rf"{_PROGRAM}{_NAME}: {_DENIED}"),
    # files and directories taken for one another
    ("directory", _CANNOT + "Is a directory"),
    ("directory", rf"{_PROGRAM}(?:-r not specified; )?omitting directory {_NAME}"),
    ("directory", rf"{_AT}(?:cannot create )?(?P<it>.+?): Is a directory"),
    ("directory", rf"{_ZSH}is a directory: (?P<it>.+)"),
    ("directory", rf"{_PROGRAM}(?:error reading |read error: )?{_NAME}: [Ii]s a directory"),
    ("no-directory", rf"{_AT}(?P<program>cd): (?P<it>.+?): Not a directory"),
    ("no-directory", r"(?P<program>cd):(?:\d+:)? ?not a directory: (?P<it>.+)"),
    ("no-directory", r"(?P<program>cd): '(?P<it>.+?)' is not a directory"),
    ("no-directory", _CANNOT + "Not a directory"),
    ("no-directory", rf"{_PROGRAM}{_NAME}: Not a directory"),
    ("exists", _CANNOT + "File exists"),
    ("exists", rf"{_PROGRAM}{_NAME}: File exists"),
    ("not-empty", rf"(?P<program>rmdir): (?:failed to remove )?{_NAME}: Directory not empty"),
    # the shape of a command
    ("quote", rf"{_AT}unexpected EOF while looking for matching [`'](?P<it>[\"'`])'.*"),
    ("quote", rf"{_ZSH}unmatched (?P<it>[\"'`])"),
    ("quote", rf"{_AT}Syntax error: Unterminated quoted string"),
    ("quote", r"fish: Unexpected end of string, quotes are not balanced"),
    ("unclosed", rf"{_AT}unexpected EOF while looking for matching [`'](?P<it>[)}}\]])'.*"),
    ("unclosed", rf"{_AT}Syntax error: end of file unexpected \(expecting \"(?P<it>[)}}])\"\)"),
    ("unclosed", r"fish: Unexpected end of string, expecting '(?P<it>[)}])'"),
    ("unclosed", rf"{_ZSH}parse error near [`'](?P<it>\$\().*"),
    ("syntax", rf"{_AT}syntax error near unexpected token [`'](?P<it>.+)'"),
    ("syntax", rf"{_AT}syntax error: unexpected end of file(?: from .*)?"),
    ("syntax", rf"{_ZSH}parse error near [`'](?P<it>.+)'"),
    ("syntax", rf"{_AT}Syntax error: end of file unexpected.*"),
    ("syntax", rf"{_AT}Syntax error: \"?(?P<it>[^\s\"]+)\"? unexpected.*"),
    ("syntax", r"fish: (?:Missing end to balance this|Expected a \w+, but found) .*"),
    ("syntax", r"fish: Unexpected '(?P<it>.)' for unopened .*"),
    ("cd-words", rf"(?:{_AT})?cd: (?:too many arguments|string not in pwd: .*)"),
    ("cd-words", r"Too many args for cd command"),
    ("test-words", rf"{_TEST}(?:too many arguments|.*(?:unary|binary) operator expected|.*unexpected operator)"),
    ("test-words", rf"{_TEST}(?:.*argument expected|Missing argument at index.*|Expected a combining operator.*)"),
    ("test-words", rf"{_ZSH}(?:parse error: )?condition expected: .*"),
    ("test-end", rf"{_TEST}(?:missing [`']?\]'?|'\]' expected|the last argument must be '\]')"),
    ("test-number", rf"{_TEST}(?:integer expression expected|Illegal number): (?P<it>.*)"),
    ("test-number", rf"{_TEST}(?P<it>.*): integer expression expected"),
    ("test-number", r"Argument is not a number: '(?P<it>.*)'"),
    ("redirection", rf"{_AT}.*: ambiguous redirect"),
    ("redirection", rf"{_ZSH}no such file or directory: ?"),
    ("redirection", rf"{_AT}cannot (?:create|open) : {_NONE}"),
    ("redirection", r"fish: Invalid redirection target: "),
    ("too-long", r".*[Aa]rgument list too long.*"),
    ("too-long", r".*exceeds the OS argument length limit.*"),
    ("unset", rf"(?:{_AT}|{_ZSH})(?P<it>\w+): (?:unbound variable|parameter not set)"),
    # programs that were called in a wrong way
    ("option", rf"{_PROGRAM}(?:unrecognized option|(?:invalid|illegal) option --) ['\"]?(?P<it>[^'\"]+)['\"]?"),
    ("operand", rf"{_PROGRAM}missing (?:destination |file )*operand(?P<it> after .*)?"),
)  # fmt: skip
"""Kinds of failure with their wordings; of those that fit a line, the first one that has advice counts."""

_COMPILED = tuple((kind, re.compile(pattern)) for kind, pattern in WORDINGS)


@dataclass(frozen=True)
class Complaint:
    """One line that says what went wrong."""

    kind: str
    it: str = ""
    program: str = ""


def complaints(tail: str) -> Iterator[Complaint]:
    """Those in the last lines of an output: the last one first, as it is what ended the command."""
    for line in reversed(tail.split("\n")):
        for kind, pattern in _COMPILED:
            if (match := pattern.fullmatch(line)) is not None:
                groups = match.groupdict()
                yield Complaint(kind, groups.get("it") or "", groups.get("program") or "")
