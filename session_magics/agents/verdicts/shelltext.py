"""Shell text as the simple commands that it may run, those inside other commands included.

A recursive-descent reader for what POSIX shells, bash and zsh have in common. It follows text only; whatever it does
not understand to the last character makes the reading incomplete, and an incomplete reading allows nothing.
"""

from __future__ import annotations

import os.path
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from session_magics.agents.verdicts.nested import NOTHING, Inside, inside
from session_magics.agents.verdicts.shelldata import program
from session_magics.agents.verdicts.shellgrammar import Grammar, Redirection
from session_magics.agents.verdicts.shellvalues import UNKNOWN, Variables, Word
from session_magics.agents.verdicts.shellwords import NotUnderstood

# Characters of a text that is read: what a screen can show whole is far shorter.
LENGTH_LIMIT = 32768
# Commands in one text: each wrapped command adds one, so that "eval eval eval …" cannot grow as the square.
COMMAND_LIMIT = 4096
# Directories that the text may have changed to: any of them counts for a relative path.
DIRECTORY_LIMIT = 16
# Commands before a pipe that are looked at for what they print.
NEAREST = 4


@dataclass(frozen=True)
class Command:
    """A simple command.

    ``fed``: the commands, by index, whose output it may read. ``holds``: what it runs besides itself, which follows it
    in the reading. ``maybe``: it is found in text that may be run, and may not.
    """

    words: tuple[Word, ...]
    assignments: tuple[tuple[str, Word], ...] = ()
    redirections: tuple[Redirection, ...] = ()
    fed: range = range(0)
    holds: Inside = NOTHING
    maybe: bool = False

    @property
    def name(self) -> str:
        return program(self.words[0]) if self.words else ""

    @property
    def text(self) -> str:
        return " ".join(word.text for word in self.words)


@dataclass
class Reading:
    """What was read. ``directories``: where ``cd`` may have led, None for somewhere unknown."""

    commands: list[Command] = field(default_factory=list)
    functions: list[tuple[str, range]] = field(default_factory=list)
    directories: list[str | None] = field(default_factory=list)
    whole: bool = True


def read(text: str, *, cwd: str, home: str) -> Reading:
    """Reads shell text; never raises."""
    reading = Reading(directories=[cwd])
    if len(text) > LENGTH_LIMIT or "…" in text or any(_unseen(char) for char in text):
        reading.whole = False
        text = text[:LENGTH_LIMIT]
    try:
        Reader(text.replace(UNKNOWN, ""), reading, Variables(home, cwd)).sequence("")
    except NotUnderstood:
        reading.whole = False
    return reading


def _unseen(char: str) -> bool:
    """Whether a character acts without being seen: controls, and what reorders or joins text."""
    return (char > "~" and unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp", "Cs")) or (
        char < " " and char not in "\n\t"
    )


class Reader(Grammar):
    """Reads commands into ``reading``, those inside other commands too."""

    def __init__(
        self,
        text: str,
        reading: Reading,
        variables: Variables,
        depth: int = 0,
        fed: range = range(0),
        maybe: bool = False,
    ) -> None:
        super().__init__(text, variables, depth, fed)
        self.reading, self.maybe = reading, maybe

    def position(self) -> int:
        return len(self.reading.commands)

    def function(self, name: str, body: range) -> None:
        self.reading.functions.append((name, body))

    def unclear(self) -> None:
        self.reading.whole = False

    def another(self, text: str) -> Reader:
        return Reader(text, self.reading, self.variables, self.depth, self.fed, self.maybe)

    def substituted(self) -> Word:
        before = self.position()
        self.sequence(")")
        return self._printed(range(before, self.position()))

    def nested(self, text: str) -> Word:
        before = self.position()
        self.another(text).sequence("")
        return self._printed(range(before, self.position()))

    def _printed(self, span: range) -> Word:
        """What the commands print, as a guess."""
        if len(span) == 1:
            command = self.reading.commands[span.start]
            if command.name in ("echo", "printf"):
                words = [word.text for word in command.words[1:] if word.text not in ("-n", "-e", "-en")]
                return Word(" ".join(words), sure=False, inside=(span,))
            if command.name == "pwd":
                return Word(self.variables.directory, sure=False, inside=(span,))
        return Word(UNKNOWN, sure=False, inside=(span,))

    def finish(
        self, words: Sequence[Word], assignments: Sequence[tuple[str, Word]], redirections: Sequence[Redirection]
    ) -> None:
        """Keeps a command, and reads what it runs besides itself."""
        if not (words or assignments or redirections):
            return
        if self.position() >= COMMAND_LIMIT:
            raise NotUnderstood("too many commands")
        command = Command(tuple(words), tuple(assignments), tuple(redirections), self.fed, maybe=self.maybe)
        if words:
            holds = inside(words)
            command = replace(command, assignments=command.assignments + holds.assignments, holds=holds)
            if command.name in ("cd", "pushd", "popd", "chdir"):
                self._moved(command)
            if command.name in ("read", "mapfile", "readarray", "getopts", "unset"):
                self.variables.values.update({word.text: [Word(UNKNOWN, sure=False)] for word in words[1:]})
            for name, value in holds.assignments:
                if command.name in ("export", "declare", "typeset", "local", "readonly"):
                    self.variables.values[name] = [value]
        self.reading.commands.append(command)
        self._follow(command)

    def _follow(self, command: Command) -> None:
        holds = command.holds
        if not command.words or holds is NOTHING:
            return
        self.deeper()
        for words in holds.commands:
            if command.name in ("xargs", "gxargs", "parallel"):
                words = (*words, *self._arguments_fed(command))
            self.variables.left -= sum(len(word.text) for word in words)
            if self.variables.left < 0:
                self.reading.whole = False
                break
            self.finish(words, [], [])
        for given in holds.texts:
            self._read_inside(given.text, maybe=False)
        for text in holds.maybe:
            self._read_inside(text, maybe=True)
        if holds.listening:
            for text in self._heard(command):
                self._read_inside(text, maybe=False)
        self.depth -= 1

    def _read_inside(self, text: str, *, maybe: bool) -> None:
        self.variables.left -= len(text)
        if self.variables.left < 0:
            self.reading.whole = False
            return
        kept = dict(self.variables.values)
        reader = Reader(text, self.reading, self.variables, self.depth, self.fed, self.maybe or maybe)
        try:
            reader.sequence("")
        except NotUnderstood:
            self.reading.whole = self.reading.whole and maybe
        self.variables.values = kept

    def _heard(self, command: Command) -> Iterator[str]:
        """What a shell that reads its input is seen to be given."""
        before = [self.reading.commands[at] for at in command.fed[-NEAREST:]]
        for source in (*before, command):
            yield from (part.target.text for part in source.redirections if part.operator in ("<<", "<<<"))
            if source.name in ("echo", "printf"):
                yield " ".join(word.text for word in source.words[1:])

    def _arguments_fed(self, command: Command) -> list[Word]:
        """What a command may find in its input as arguments: unknown, and what is seen to be printed."""
        found = [Word(UNKNOWN, sure=False)]
        for at in command.fed[-NEAREST:]:
            source = self.reading.commands[at]
            arguments = [word for word in source.words[1:] if word.text[:1] != "-"]
            if source.name in ("find", "gfind", "fd"):
                found += [Word(f"{word.text.rstrip('/')}/*", False, True, word.inside) for word in arguments[:1]]
            elif source.name in ("echo", "printf", "ls"):
                found += [replace(word, sure=False) for word in arguments]
        return found

    def _moved(self, command: Command) -> None:
        self.variables.moved = True
        target = next((word for word in command.words[1:] if word.text[:1] != "-" or word.text == "-"), None)
        if target is None and command.name in ("cd", "chdir"):
            target = Word(self.variables.home)
        if target is None or not target.sure or target.text == "-" or target.glob:
            self._add_directory(None)
        if target is not None and UNKNOWN not in target.text:
            for base in [base for base in self.reading.directories if base is not None]:
                self._add_directory(os.path.normpath(os.path.join(base, target.text)))

    def _add_directory(self, directory: str | None) -> None:
        if directory not in self.reading.directories:
            if len(self.reading.directories) >= DIRECTORY_LIMIT:
                raise NotUnderstood("too many directories")
            self.reading.directories.append(directory)
