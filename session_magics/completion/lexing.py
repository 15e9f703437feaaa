"""Where in shell text the cursor stands: which word of which command, inside which quote or expansion.

For bash, zsh and POSIX shells. It reads from the beginning of the cell to the cursor and no further, takes anything
for well-formed that could still become so, and runs nothing.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Literal

from session_magics.completion.words import Word
from session_magics.variables import NAME

PlaceKind = Literal["nothing", "command", "argument", "file", "variable", "user"]

RESERVED = frozenset(
    ("if", "then", "elif", "else", "while", "until", "do", "!", "{", "}", "time", "coproc", "fi", "done")
)
"""Words behind which a command may stand."""
PREFIXES = frozenset(("builtin", "command", "env", "exec", "nice", "nohup", "noglob", "sudo", "xargs"))
"""Commands whose first argument is a command."""
OPERATORS = re.compile(r"\|&|&&|\|\||;;&|;;|;&|[|&;()\n]")
ORDINARY = re.compile(r"[^\\'\"$`~/ \t\r\n;|&()<>]+")
"""Characters of a word that mean themselves, whatever quote is open."""
REDIRECTION = re.compile(r"&>>|&>|<<<|<<-|<<|<>|>>|>\||<&|>&|<|>")


@dataclass(frozen=True)
class Place:
    """What could stand at the cursor.

    ``word`` is the one that the cursor is in or begins (of a variable, its name without ``$``); ``before`` are the
    words of the same simple command before it, assignments in front left out.
    """

    kind: PlaceKind
    word: Word
    before: tuple[Word, ...] = ()


def place(text: str, cursor: int) -> Place:
    """Find the place of the cursor in a cell."""
    lexer = _Lexer(text[:cursor])
    try:
        lexer.commands(0, "")
    except RecursionError:  # nested more deeply than anybody writes
        return Place("nothing", Word(cursor))
    assert lexer.found is not None
    return lexer.found


class _Lexer:
    """``found`` is set once the end of the text is reached; every method returns the position behind what it read."""

    def __init__(self, text: str) -> None:
        self.text, self.end = text, len(text)
        self.found: Place | None = None

    # ---- commands

    def commands(self, at: int, closer: str) -> int:
        """Read commands up to ``closer``, which is taken too."""
        before: list[Word] = []
        documents: list[tuple[str, bool]] = []
        target = ""  # the redirection whose word comes next
        while self.found is None:
            at = self._blanks(at)
            if closer and self.text.startswith(closer, at):
                return at + 1
            if self.text.startswith("#", at):
                at = self._comment(at)
            elif redirection := REDIRECTION.match(self.text, at):
                at, target = redirection.end(), redirection[0]
                if target in ("<", ">") and self.text.startswith("(", at):
                    at, target = self.commands(at + 1, ")"), ""
            elif operator := OPERATORS.match(self.text, at):
                at = operator.end()
                if operator[0] == "(" and before and before[-1].raw.endswith("="):
                    continue  # an array's values
                before, target = [], ""
                if operator[0] == "\n":
                    at, documents = self._documents(at, documents), []
            else:
                at, word = self._word(at, before, target, closer)
                if target in ("<<", "<<-"):
                    documents.append((word.literal or "", target == "<<-"))
                elif (not target and not REDIRECTION.match(self.text, at)) or not word.raw.isdecimal():
                    self._take(word, before, target)
                target = ""
        return self.end

    @staticmethod
    def _take(word: Word, before: list[Word], target: str) -> None:
        if not target and (before or not (word.plain and word.raw in RESERVED)):
            before.append(word)

    def _blanks(self, at: int) -> int:
        while self.text.startswith((" ", "\t", "\r", "\\\n"), at):
            at += 2 if self.text[at] == "\\" else 1
        return at

    def _comment(self, at: int) -> int:
        end = self.text.find("\n", at)
        if end < 0:
            self._reached("nothing", Word(self.end))
            return self.end
        return end

    def _documents(self, at: int, documents: list[tuple[str, bool]]) -> int:
        """Skip the here-documents that begin here."""
        for delimiter, tabs in documents:
            while True:
                end = self.text.find("\n", at)
                if end < 0:
                    self._reached("nothing", Word(self.end))
                    return self.end
                line, at = self.text[at:end], end + 1
                if (line.lstrip("\t") if tabs else line) == delimiter:
                    break
        return at

    def _reached(self, kind: PlaceKind, word: Word, before: tuple[Word, ...] = ()) -> None:
        if self.found is None:
            self.found = Place(kind, word, before)

    # ---- words

    def _word(self, at: int, before: list[Word], target: str, closer: str) -> tuple[int, Word]:
        """Read one word; if the text ends in it, that is the place."""
        word = Word(at)
        while self.found is None:
            char = self.text[at : at + 1]
            if not char:
                self._ends_in(word, before, target)
                break
            if char in " \t\r\n;|&()<>" or (closer == "`" and char == "`"):
                break
            at = self._piece(at, word)
        word.raw = self.text[word.start : at]
        return at, word

    def _piece(self, at: int, word: Word) -> int:
        """Read one piece of a word outside quotes."""
        char = self.text[at]
        if char == "\\":
            if self.text[at + 1 : at + 2] != "\n":
                word.add("text", self.text[at + 1 : at + 2])
            return min(at + 2, self.end)
        if char in "'\"" or self.text.startswith("$'", at):
            return self._quoted(at, word, "$'" if char == "$" else char)
        if char in "$`":
            return self._expansion(at, word)
        if char == "~" and at == word.start:
            end = re.compile(r"~[\w.-]*").match(self.text, at).end()  # type: ignore[union-attr]
            word.add("tilde", self.text[at:end])
            return end
        if run := ORDINARY.match(self.text, at):
            word.add("text", run[0])
            return run.end()
        if char == "/":
            word.slash = at + 1 - word.start
        word.add("text", char)
        return at + 1

    def _quoted(self, at: int, word: Word, quote: str) -> int:
        word.quote, word.quote_start = quote, at - word.start
        at += len(quote)
        while self.found is None and at < self.end:
            if run := ORDINARY.match(self.text, at):
                word.add("text", run[0])
                at = run.end()
                continue
            char = self.text[at]
            if char == quote[-1]:
                word.quote = ""
                word.add("text", "")
                return at + 1
            if quote == '"' and char in "$`":
                at = self._expansion(at, word)
                continue
            if char == "\\" and at + 1 < self.end and (quote == "$'" or self._escapes(quote, at)):
                at += 1
                char = self.text[at]
            if char == "/":
                word.slash = at + 1 - word.start
            word.add("text", char)
            at += 1
        return at

    def _escapes(self, quote: str, at: int) -> bool:
        return quote == '"' and self.text[at + 1] in '"\\$`'

    def _expansion(self, at: int, word: Word) -> int:
        """Read what begins with ``$`` or a backquote; if the text ends in it, that is the place."""
        text, begin = self.text, at
        if text[at] == "`":
            at = self.commands(at + 1, "`")
        elif text.startswith("$((", at):
            at = self._arithmetic(at + 3)
        elif text.startswith("$(", at):
            at = self.commands(at + 2, ")")
        elif text.startswith("${", at):
            return self._braced(at + 2, word)
        else:
            name = NAME.match(text, at + 1)
            end = name.end() if name else min(at + 2, self.end)
            if (name and end == self.end) or at + 1 == self.end:
                self._variable(at + 1)
            if name is None and text[at + 1 : at + 2] in ("", "/", '"', "'", " "):
                word.add("text", "$")
                return at + 1
            word.add("variable" if name else "opaque", text[at + 1 : end])
            return end
        word.add("opaque", text[begin:at])
        return at

    def _braced(self, at: int, word: Word) -> int:
        prefix = re.compile(r"[!#]?").match(self.text, at).end()  # type: ignore[union-attr]
        name = NAME.match(self.text, prefix)
        end = name.end() if name else prefix
        if end == self.end:
            self._variable(prefix)
            return end
        if name and prefix == at and self.text[end] == "}":
            word.add("variable", name[0])
            return end + 1
        depth = 1
        while depth and end < self.end:
            depth += {"{": 1, "}": -1}.get(self.text[end], 0)
            end += 1
        word.add("opaque", self.text[at:end])
        if depth:
            self._reached("nothing", Word(self.end))
        return end

    def _arithmetic(self, at: int) -> int:
        end = self.text.find("))", at)
        if end >= 0:
            return end + 2
        self._variable(re.compile(r".*?([A-Za-z_]\w*)?$", re.S).fullmatch(self.text, at).span(1)[0])  # type: ignore[union-attr]
        return self.end

    def _variable(self, start: int) -> None:
        start = self.end if start < 0 else start
        name = Word(start, self.text[start:])
        name.add("text", name.raw)
        self._reached("variable", name)

    # ---- the end of the text

    def _ends_in(self, word: Word, before: list[Word], target: str) -> None:
        word.raw = self.text[word.start :]
        if target in ("<<", "<<-"):
            self._reached("nothing", word)
        elif target:
            self._reached("file", word)
        elif not word.quote and [part.kind for part in word.parts] == ["tilde"]:
            self._reached("user", word)
        elif word.assigns and all(one.assigns for one in before):
            self._reached("file", _value(word))
        else:
            words = list(itertools.dropwhile(lambda one: one.assigns, before))
            while words and words[0].raw in PREFIXES and (len(words) == 1 or words[1].raw[:1] != "-"):
                words = [one for one in words[1:] if not (words[0].raw == "env" and one.assigns)]
            array = len(before) == 1 and before[0].assigns and before[0].raw.endswith("=")
            kind: PlaceKind = "argument" if words else "file" if array and self._in_array(before[0]) else "command"
            self._reached(kind, word, tuple(words))

    def _in_array(self, assignment: Word) -> bool:
        return self.text.startswith("(", assignment.start + len(assignment.raw))


def _value(word: Word) -> Word:
    """The part of an assignment behind ``=``, or behind the last ``:`` of a path."""
    inner = _Lexer(word.raw)
    begin = word.raw.index("=") + 1
    if not word.quote:
        begin = max(begin, word.raw.rfind(":") + 1)
    value = Word(begin)
    at = begin
    while at < inner.end and inner.found is None:
        at = inner._piece(at, value)
    return Word(word.start + begin, word.raw[begin:], value.pieces, value.quote, value.quote_start, value.slash)
