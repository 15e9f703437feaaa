"""The grammar of shell text: lists, pipelines, compound commands, redirections, here-documents."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from session_magics.agents.verdicts.shellvalues import UNKNOWN, Variables, Word
from session_magics.agents.verdicts.shellwords import NotUnderstood, WordReader

_KEYWORD = re.compile(r"(?:if|while|until|for|select|case|function|\{|\[\[|!|time)(?=[\s;&|<>()]|$)")
_STRAY = re.compile(r"(?:then|elif|else|fi|do|done|esac|in|\}|\]\])(?=[\s;&|<>()]|$)")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=", re.ASCII)
# bash takes blanks and operators up to the closing bracket for part of the word.
_SUBSCRIPT = re.compile(r"[A-Za-z_]\w*\[", re.ASCII)
_REDIRECTION = re.compile(r"(?:\d+|\{\w+\})?(&>>|&>|>>|>\||>&|<>|<<<|<<-|<<|<&|>(?!\()|<(?!\())", re.ASCII)
_FUNCTION = re.compile(r"[ \t]*\([ \t]*\)")
_BLANK = re.compile(r"(?:[ \t]|\\\n)+")
_DELIMITER = re.compile(r"[ \t]*(?:'([^'\n]+)'|\"([^\"\n$`\\]+)\"|\\?([\w.!%+-]+))(?=[\s;&|<>()]|$)")


@dataclass(frozen=True)
class Redirection:
    """``operator`` and where to; for a here-document or here-string the text itself."""

    operator: str
    target: Word


class Grammar(WordReader):
    """A cursor over shell text that reads commands; what becomes of them is its heir's to say.

    ``fed``: the commands, by index, whose output the text's commands read.
    """

    def __init__(self, text: str, variables: Variables, depth: int, fed: range) -> None:
        super().__init__(text, variables, depth)
        self.fed = fed
        self.documents: dict[int, int] = {}  # position of a newline -> end of the here-documents after it

    @abstractmethod
    def position(self) -> int:
        """How many commands have been read."""

    @abstractmethod
    def finish(
        self, words: Sequence[Word], assignments: Sequence[tuple[str, Word]], redirections: Sequence[Redirection]
    ) -> None:
        """Takes a simple command, or the redirections of a compound one."""

    @abstractmethod
    def function(self, name: str, body: range) -> None:
        """Takes a function, the commands of whose body have been read."""

    @abstractmethod
    def another(self, text: str) -> WordReader:
        """A reader of text inside this text."""

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
        first, outer = self.position(), self.fed
        while True:
            self._command()
            self._blanks()
            if self.starts("||") or not self.starts("|"):
                break
            self.at += 2 if self.starts("|&") else 1
            self.fed = range(outer.start if outer else first, self.position())
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
        self.finish([], [], self._redirections())

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
        self.variables.values[name[0].text] = values or [Word(UNKNOWN, sure=False)]
        self.finish([], [(name[0].text, value) for value in values], [])
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
        self.finish([], [], [Redirection("case", self.value())])
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
                return self.finish([*words, Word("]]")], [], [])
            if self.at >= len(self.text):
                raise NotUnderstood("an open test")
            if self.here() in "&|<>();" and not self.starts("<(", ">("):
                self.at += 1
            else:
                words += self.words()

    def _function(self, name: str) -> None:
        self._newlines()
        self.deeper()
        before, positional = self.position(), dict(self.variables.values)
        self.variables.values.update({letter: [Word(UNKNOWN, sure=False)] for letter in "@*123456789"})
        self._command()
        for letter in "@*123456789":
            self.variables.values.pop(letter)
            if letter in positional:
                self.variables.values[letter] = positional[letter]
        self.depth -= 1
        self.function(name, range(before, self.position()))

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
            if not words and _SUBSCRIPT.match(self.text, self.at):
                raise NotUnderstood("an element of an array")
            if not words and (found := _ASSIGNMENT.match(self.text, self.at)):
                self.at = found.end()
                assignments.append((found[1], self.value()))
            else:
                words += self.words()
        if self.at == begin:
            raise NotUnderstood("a command is missing")
        if not words:
            for name, value in assignments:
                self.variables.values[name] = [value]
        self.finish(words, assignments, redirections)

    def _redirections(self) -> list[Redirection]:
        found: list[Redirection] = []
        while True:
            self._blanks()
            match = _REDIRECTION.match(self.text, self.at)
            if match is None:
                return found
            self.at = match.end()
            if match[0].startswith("{"):
                raise NotUnderstood("a redirection that sets a variable")
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
        if sum(line.strip() == end for line in self.text[begin:].split("\n")) > 1:
            # On a screen the right one may look like the others, which have blanks behind, or a tab in front.
            self.unclear()
        self.at = delimiter.end()
        self.documents[newline] = len(self.text) if stop < 0 else stop + 1
        body = self.text[begin:at]
        if quoted:
            return Word(body)
        return self.another(body).document()

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
