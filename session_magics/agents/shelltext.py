"""Shell text as the simple commands that it may run, those inside other commands included.

A recursive-descent reader for what POSIX shells, bash and zsh have in common. It follows text only; whatever it does
not understand to the last character makes the reading incomplete, and an incomplete reading allows nothing.
"""

from __future__ import annotations

import os.path
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from session_magics.agents.nested import NOTHING, Inside, inside
from session_magics.agents.shelldata import program
from session_magics.agents.shellwords import UNKNOWN, NotUnderstood, Variables, Word, WordReader

# Characters of a text that is read: what a screen can show whole is far shorter.
LENGTH_LIMIT = 32768
# Commands in one text: each wrapped command adds one, so that "eval eval eval …" cannot grow as the square.
COMMAND_LIMIT = 4096
# Commands before a pipe that are looked at for what they print.
NEAREST = 4

_KEYWORD = re.compile(r"(?:if|while|until|for|select|case|function|\{|\[\[|!|time)(?=[\s;&|<>()]|$)")
_STRAY = re.compile(r"(?:then|elif|else|fi|do|done|esac|in|\}|\]\])(?=[\s;&|<>()]|$)")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=", re.ASCII)
_REDIRECTION = re.compile(r"(?:\d+|\{\w+\})?(&>>|&>|>>|>\||>&|<>|<<<|<<-|<<|<&|>(?!\()|<(?!\())", re.ASCII)
_FUNCTION = re.compile(r"[ \t]*\([ \t]*\)")
_BLANK = re.compile(r"(?:[ \t]|\\\n)+")
_DELIMITER = re.compile(r"[ \t]*(?:'([^'\n]+)'|\"([^\"\n$`\\]+)\"|\\?([\w.!%+-]+))(?=[\s;&|<>()]|$)")


@dataclass(frozen=True)
class Redirection:
    """``operator`` and where to; for a here-document or here-string the text itself."""

    operator: str
    target: Word


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
        Reader(text.replace(UNKNOWN, ""), reading, Variables(home, cwd), 0).sequence("")
    except NotUnderstood:
        reading.whole = False
    return reading


def _unseen(char: str) -> bool:
    """Whether a character acts without being seen: controls, and what reorders or joins text."""
    return (char > "~" and unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp", "Cs")) or (
        char < " " and char not in "\n\t"
    )


class Reader(WordReader):
    """Reads commands into ``reading``; ``fed`` are those whose output the text's commands read."""

    def __init__(
        self, text: str, reading: Reading, variables: Variables, depth: int, fed: range = range(0), maybe: bool = False
    ) -> None:
        super().__init__(text, variables, depth)
        self.reading, self.fed, self.maybe = reading, fed, maybe
        self.documents: dict[int, int] = {}  # position of a newline -> end of the here-documents after it

    def sequence(self, *ends: str) -> str:
        """Reads commands up to one of ``ends`` ("" is the end of the text) and past it; returns which it was."""
        self.deeper()
        wanted = False
        while True:
            self._newlines()
            end = self._end(ends)
            if end is not None and not wanted:
                self.depth -= 1
                return end
            if end is not None or self.at >= len(self.text):
                raise NotUnderstood("ends where a command should follow")
            self._pipeline()
            wanted = self._separator()

    def _end(self, ends: Sequence[str]) -> str | None:
        for end in ends:
            if end == "":
                if self.at >= len(self.text):
                    return end
            elif self.starts(end) and ((not end[0].isalpha() and end != "}") or self._delimited(len(end))):
                self.at += len(end)
                return end
        return None

    def _delimited(self, length: int) -> bool:
        after = self.text[self.at + length : self.at + length + 1]
        return not after or after in " \t\n;&|<>()"

    def _separator(self) -> bool:
        """Reads what ends a pipeline; returns whether a command must follow."""
        self._blanks()
        if self.starts("&&", "||"):
            self.at += 2
            return True
        if self.starts(";;", ";&"):
            return False
        if self.starts(";", "&"):
            self.at += 1
        elif self.at < len(self.text) and self.here() not in "\n)":
            raise NotUnderstood(f"unexpected {self.here()!r}")
        return False

    def _pipeline(self) -> None:
        first, outer = len(self.reading.commands), self.fed
        while True:
            self._command()
            self._blanks()
            if self.starts("||") or not self.starts("|"):
                break
            self.at += 2 if self.starts("|&") else 1
            self.fed = range(outer.start if outer else first, len(self.reading.commands))
            self._newlines()
        self.fed = outer

    def _command(self) -> None:
        self._blanks()
        found = _KEYWORD.match(self.text, self.at)
        while found and found[0] in ("!", "time"):
            after = self.text[found.end() :].lstrip(" \t")[:1] if found[0] == "time" else ""
            if after == "-":
                break
            self.at = found.end()
            self._blanks()
            found = _KEYWORD.match(self.text, self.at)
        if found and found[0] != "time":
            self.at = found.end()
            self._compound(found[0])
        elif self.starts("("):
            self._group()
        elif _STRAY.match(self.text, self.at):
            raise NotUnderstood("a word of a compound command out of place")
        else:
            return self._simple()
        self._finish([], [], self._redirections())

    def _group(self) -> None:
        if self.starts("(("):
            raise NotUnderstood("arithmetic")
        self.at += 1
        self.sequence(")")

    def _compound(self, keyword: str) -> None:
        if keyword == "{":
            self.sequence("}")
        elif keyword == "if":
            end = "elif"
            while end == "elif":
                self.sequence("then")
                end = self.sequence("elif", "else", "fi")
            if end == "else":
                self.sequence("fi")
        elif keyword in ("while", "until"):
            self.sequence("do")
            self.sequence("done")
        elif keyword in ("for", "select"):
            self._loop()
        elif keyword == "case":
            self._case()
        elif keyword == "[[":
            self._test()
        else:
            self._blanks()
            name = self.words()
            self._blanks()
            if found := _FUNCTION.match(self.text, self.at):
                self.at = found.end()
            self._function(name[0].text)

    def _loop(self) -> None:
        self._blanks()
        name = self.words()
        self._newlines()
        values: list[Word] = []
        if self.starts("in") and self._delimited(2):
            self.at += 2
            values = self._plain_words()
        if len(name) != 1 or not re.fullmatch(r"[A-Za-z_]\w*", name[0].text, re.ASCII):
            raise NotUnderstood("a loop without a variable")
        self._assign(name[0].text, values or [Word(UNKNOWN, sure=False)])
        self._finish([], [(name[0].text, value) for value in values], [])
        self._blanks()
        if self.starts(";"):
            self.at += 1
        self._newlines()
        if self._end(("do", "{")) == "do":
            self.sequence("done")
        else:
            raise NotUnderstood("a loop without do")

    def _plain_words(self) -> list[Word]:
        words: list[Word] = []
        while True:
            self._blanks()
            if self.at >= len(self.text) or self.here() in "\n;&|()":
                return words
            if self.here() in "<>" and not self.starts("<(", ">("):
                raise NotUnderstood("a redirection out of place")
            words += self.words()

    def _case(self) -> None:
        self._blanks()
        self._finish([], [], [Redirection("case", self.value())])
        self._newlines()
        if self._end(("in",)) is None:
            raise NotUnderstood("a case without in")
        while True:
            self._newlines()
            if self._end(("esac",)) is not None:
                return
            if self.starts("("):
                self.at += 1
            while not self.starts(")"):
                self._blanks()
                before = self.at
                self.words()
                self._blanks()
                self.at += self.starts("|")
                if self.at == before:
                    raise NotUnderstood("a pattern")
            self.at += 1
            if self.sequence(";;&", ";;", ";&", "esac") == "esac":
                return

    def _test(self) -> None:
        words = [Word("[[")]
        while True:
            self._newlines()
            if self.starts("]]") and self._delimited(2):
                self.at += 2
                return self._finish([*words, Word("]]")], [], [])
            if self.at >= len(self.text):
                raise NotUnderstood("an open test")
            if self.here() in "&|<>();" and not self.starts("<(", ">("):
                self.at += 1
            else:
                words += self.words()

    def _function(self, name: str) -> None:
        self._newlines()
        self.deeper()
        before, positional = len(self.reading.commands), dict(self.variables.values)
        self.variables.values.update({letter: [Word(UNKNOWN, sure=False)] for letter in "@*123456789"})
        self._command()
        for letter in "@*123456789":
            self.variables.values.pop(letter)
            if letter in positional:
                self.variables.values[letter] = positional[letter]
        self.depth -= 1
        self.reading.functions.append((name, range(before, len(self.reading.commands))))

    def _simple(self) -> None:
        words: list[Word] = []
        assignments: list[tuple[str, Word]] = []
        redirections: list[Redirection] = []
        begin = self.at
        while True:
            self._blanks()
            redirections += self._redirections()
            if self.at >= len(self.text) or self.here() in "\n;&|)":
                break
            if self.here() == "(":
                if len(words) == 1 and not redirections and (found := _FUNCTION.match(self.text, self.at)):
                    self.at = found.end()
                    return self._function(words[0].text)
                raise NotUnderstood("a parenthesis out of place")
            if not words and (found := _ASSIGNMENT.match(self.text, self.at)):
                self.at = found.end()
                assignments.append((found[1], self.value()))
            else:
                words += self.words()
        if self.at == begin:
            raise NotUnderstood("a command is missing")
        if not words:
            for name, value in assignments:
                self._assign(name, [value])
        self._finish(words, assignments, redirections)

    def _assign(self, name: str, values: list[Word]) -> None:
        self.variables.values[name] = values

    def _redirections(self) -> list[Redirection]:
        found: list[Redirection] = []
        while True:
            self._blanks()
            match = _REDIRECTION.match(self.text, self.at)
            if match is None:
                return found
            self.at = match.end()
            if match[1] in ("<<", "<<-"):
                found.append(Redirection("<<", self._document(strip=match[1] == "<<-")))
                continue
            self._blanks()
            before = self.at
            found.append(Redirection(match[1], self.value()))
            if self.at == before:
                raise NotUnderstood("a redirection to nowhere")

    def _document(self, *, strip: bool) -> Word:
        """The here-document whose delimiter is at the cursor; its lines are jumped over when the line ends."""
        delimiter = _DELIMITER.match(self.text, self.at)
        newline = self.text.find("\n", self.at)
        if delimiter is None or newline < 0:
            raise NotUnderstood("a here-document without its text")
        rest = self.text[delimiter.end() : newline]
        if rest.count("'") % 2 or rest.count('"') % 2 or rest.count("`") % 2 or rest.endswith("\\"):
            raise NotUnderstood("a line that goes on below a here-document")
        quoted = delimiter[3] is None or "\\" in delimiter[0]
        end = delimiter[1] or delimiter[2] or delimiter[3]
        begin = at = self.documents.get(newline, newline + 1)
        while True:
            stop = self.text.find("\n", at)
            line = self.text[at : stop if stop >= 0 else len(self.text)]
            if (line.lstrip("\t") if strip else line) == end:
                break
            if stop < 0:
                raise NotUnderstood("an open here-document")
            at = stop + 1
        self.at = delimiter.end()
        self.documents[newline] = len(self.text) if stop < 0 else stop + 1
        body = self.text[begin:at]
        if quoted:
            return Word(body)
        return Reader(body, self.reading, self.variables, self.depth, self.fed, self.maybe).document()

    def _blanks(self) -> None:
        if found := _BLANK.match(self.text, self.at):
            self.at = found.end()
        if self.here() == "#" and (self.at == 0 or self.text[self.at - 1] in " \t\n;&|()"):
            newline = self.text.find("\n", self.at)
            self.at = len(self.text) if newline < 0 else newline

    def _newlines(self) -> None:
        self._blanks()
        while self.here() == "\n":
            self.at = self.documents.get(self.at, self.at + 1)
            self._blanks()

    def substituted(self) -> Word:
        before = len(self.reading.commands)
        self.sequence(")")
        return self._printed(range(before, len(self.reading.commands)))

    def nested(self, text: str) -> Word:
        before = len(self.reading.commands)
        reader = Reader(text, self.reading, self.variables, self.depth, self.fed, self.maybe)
        reader.sequence("")
        return self._printed(range(before, len(self.reading.commands)))

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

    def _finish(
        self, words: Sequence[Word], assignments: Sequence[tuple[str, Word]], redirections: Sequence[Redirection]
    ) -> None:
        """Keeps a command, and reads what it runs besides itself."""
        if not (words or assignments or redirections):
            return
        if len(self.reading.commands) >= COMMAND_LIMIT:
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
                    self._assign(name, [value])
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
            self._finish(words, [], [])
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
        if target is None or UNKNOWN in target.text or target.text == "-" or target.glob:
            self.reading.directories.append(None)
            return
        for base in self.reading.directories[:4]:
            if base is not None:
                self.reading.directories.append(os.path.normpath(os.path.join(base, target.text)))
                break
        if len(command.words) and not target.text.startswith("/"):
            latest = next((base for base in reversed(self.reading.directories[:-1]) if base is not None), "/")
            self.reading.directories.append(os.path.normpath(os.path.join(latest, target.text)))
        if not target.sure:
            self.reading.directories.append(None)
