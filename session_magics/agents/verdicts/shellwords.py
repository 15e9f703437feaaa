"""Words of shell text: quotes removed, expansions followed as far as the text alone tells."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from session_magics.agents.verdicts.braces import TooMany, alternatives
from session_magics.agents.verdicts.shellvalues import UNKNOWN, Variables, Word

# Levels of substitutions, groups and wrapped commands that are followed; honest text needs three or four.
DEPTH_LIMIT = 24

_PLAIN = re.compile(r"[^\s;&|<>()\\'\"$`]+")
_IN_DOUBLE = re.compile(r"[^\\\"$`]+")
_IN_BRACES = re.compile(r"[^\\'\"$`}]+")
_IN_DOCUMENT = re.compile(r"[^\\$`]+")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]", re.ASCII)
_PARAMETER = re.compile(r"([#!]?)([A-Za-z_]\w*|\d+|[@*#?$!-])(\[[^\]$`]*\])?", re.ASCII)
_DEFAULT = re.compile(r":?[-=+?]")
_OPERAND = r"[ \t]*[-+!~]?\$?\w+[ \t]*"
_ARITHMETIC = re.compile(rf"{_OPERAND}(?:(?:[-+*/%^,]|[<>=!&|]{{1,2}}){_OPERAND})*", re.ASCII)
_NUMBERS = re.compile(r"(?:(?<!\w)\d+|[^\w$])*")
_ANSI = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|c(.)|(.))|([^\\']+)", re.S
)
_ANSI_LETTERS = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class NotUnderstood(Exception):
    """The text is cut off, or uses something that the reader does not follow."""


@dataclass
class Pieces:
    """A word while it is read; ``mask`` has a letter for each character: plain, quoted, or from a variable."""

    text: list[str] = field(default_factory=list)
    mask: list[str] = field(default_factory=list)
    sure: bool = True
    quoted: bool = False
    inside: tuple[range, ...] = ()

    def add(self, text: str, kind: str, *, sure: bool = True) -> None:
        self.text.append(text)
        self.mask.append(kind * len(text))
        self.sure = self.sure and sure
        self.quoted = self.quoted or kind == "q"


class WordReader(ABC):
    """A cursor over shell text that reads words; the commands in their substitutions are its heir's to read."""

    def __init__(self, text: str, variables: Variables, depth: int) -> None:
        self.text, self.at, self.variables, self.depth = text, 0, variables, depth

    @abstractmethod
    def substituted(self) -> Word:
        """Reads commands up to the closing parenthesis, and guesses what they print."""

    @abstractmethod
    def nested(self, text: str) -> Word:
        """Reads the text of a substitution in backquotes, and guesses what it prints."""

    @abstractmethod
    def unclear(self) -> None:
        """Notes that the text is not understood whole, although the reading goes on."""

    def starts(self, *prefixes: str) -> bool:
        return self.text.startswith(prefixes, self.at)

    def here(self) -> str:
        return self.text[self.at : self.at + 1]

    def words(self) -> list[Word]:
        """The word at the cursor, as the arguments that it becomes."""
        return self._fields(self._pieces())

    def value(self) -> Word:
        """The value of an assignment or the target of a redirection at the cursor: one word, not split."""
        pieces = self._pieces()
        return self._word("".join(pieces.text), "".join(pieces.mask), pieces.sure, pieces.inside)

    def document(self) -> Word:
        """All the text as the body of a here-document whose delimiter is not quoted."""
        pieces = Pieces()
        while self.at < len(self.text):
            self._quoted_piece(pieces, _IN_DOCUMENT, "$`\\\n")
        return Word("".join(pieces.text), pieces.sure, inside=pieces.inside)

    def _pieces(self) -> Pieces:
        pieces = Pieces()
        while self.at < len(self.text):
            if self.starts("<(", ">("):
                self.at += 2
                inside = self.substituted().inside
                pieces.inside += inside
                pieces.add("/dev/fd/63", "q", sure=any(inside))  # one without commands is nothing to bash
            elif self.here() in " \t\n;&|<>()":
                break
            else:
                self._piece(pieces, _PLAIN)
        return pieces

    def _piece(self, pieces: Pieces, plain: re.Pattern[str]) -> None:
        char = self.here()
        if char == "\\":
            if self.at + 1 >= len(self.text):
                raise NotUnderstood("a backslash at the end")
            if self.text[self.at + 1] != "\n":
                pieces.add(self.text[self.at + 1], "q")
            self.at += 2
        elif char == "'":
            end = self.text.find("'", self.at + 1)
            if end < 0:
                raise NotUnderstood("an open quote")
            pieces.add(self.text[self.at + 1 : end], "q")
            pieces.quoted, self.at = True, end + 1
        elif char == '"':
            self._double(pieces)
        elif char == "$":
            self._dollar(pieces, quoted=False)
        elif char == "`":
            self._backquoted(pieces, quoted=False)
        elif found := plain.match(self.text, self.at):
            pieces.add(found[0], "p")
            self.at = found.end()
        else:
            raise NotUnderstood(f"unexpected {char!r}")

    def _double(self, pieces: Pieces) -> None:
        self.at += 1
        pieces.quoted = True
        while self.here() != '"':
            if self.at >= len(self.text):
                raise NotUnderstood("an open quote")
            self._quoted_piece(pieces, _IN_DOUBLE, '$`"\\\n')
        self.at += 1

    def _quoted_piece(self, pieces: Pieces, plain: re.Pattern[str], escaped: str) -> None:
        char = self.here()
        if char == "\\":
            after = self.text[self.at + 1 : self.at + 2]
            if after != "\n":
                pieces.add(after if after and after in escaped else char + after, "q")
            self.at += 2
        elif char == "$":
            self._dollar(pieces, quoted=True)
        elif char == "`":
            self._backquoted(pieces, quoted=True)
        elif found := plain.match(self.text, self.at):
            pieces.add(found[0], "q")
            self.at = found.end()
        else:
            raise NotUnderstood(f"unexpected {char!r}")

    def _dollar(self, pieces: Pieces, *, quoted: bool) -> None:
        if self.starts("$'") and not quoted:
            self._ansi(pieces)
        elif self.starts('$"') and not quoted:
            self.at += 1
            self._double(pieces)
        elif self.starts("$(("):
            self._arithmetic(pieces)
        elif self.starts("$("):
            self.at += 2
            self._guess(pieces, self.substituted(), quoted)
        elif self.starts("${"):
            self._parameter(pieces, quoted)
        elif self.starts("$["):
            raise NotUnderstood("old arithmetic")
        elif found := _NAME.match(self.text, self.at + 1):
            self.at = found.end()
            self._guess(pieces, self.variables.value(found[0]), quoted, self.variables.several(found[0]))
        else:
            pieces.add("$", "q" if quoted else "p")
            self.at += 1

    def _guess(self, pieces: Pieces, word: Word | None, quoted: bool, several: bool = False) -> None:
        word = word or Word(UNKNOWN, sure=False)
        pieces.inside += word.inside
        quoted = quoted and not several
        pieces.add(word.text, "q" if quoted else "v", sure=word.sure)

    def _ansi(self, pieces: Pieces) -> None:
        self.at += 2
        pieces.quoted = True
        while self.here() != "'":
            found = _ANSI.match(self.text, self.at)
            if found is None:
                raise NotUnderstood("an open quote")
            two, four, eight, octal, control, letter, plain = found.groups()
            if plain or letter:
                pieces.add(plain or _ANSI_LETTERS.get(letter, letter if letter in "\\'\"?" else "\\" + letter), "q")
            elif control:
                raise NotUnderstood("a control character")
            else:
                code = int(octal, 8) & 0xFF if octal else int(two or four or eight, 16)
                if not 0 < code < 0x110000:
                    raise NotUnderstood("a character that does not exist")
                pieces.add(chr(code), "q")
            self.at = found.end()
        self.at += 1

    def _arithmetic(self, pieces: Pieces) -> None:
        """Arithmetic of plain operands; anything else could be commands in a group in a substitution."""
        end = self.text.find("))", self.at)
        if end < 0 or not _ARITHMETIC.fullmatch(self.text, self.at + 3, end):
            raise NotUnderstood("arithmetic with more than numbers and variables")
        if not _NUMBERS.fullmatch(self.text, self.at + 3, end):
            self.unclear()  # the value of a variable is arithmetic too, and may hold commands in a subscript
        pieces.add(UNKNOWN, "v", sure=False)
        self.at = end + 2

    def _backquoted(self, pieces: Pieces, *, quoted: bool) -> None:
        found = re.compile(r"((?:[^\\`]|\\.)*)`", re.S).match(self.text, self.at + 1)
        if found is None:
            raise NotUnderstood("an open quote")
        self.at = found.end()
        self._guess(pieces, self.nested(re.sub(r"\\([\\$`])", r"\1", found[1])), quoted)

    def _parameter(self, pieces: Pieces, quoted: bool) -> None:
        found = _PARAMETER.match(self.text, self.at + 2)
        if found is None:
            raise NotUnderstood("an expansion")
        self.at = found.end()
        known = None if found[1] or found[3] else self.variables.value(found[2])
        if self.here() == "}":
            self.at += 1
            return self._guess(pieces, known, quoted, self.variables.several(found[2]))
        if self.here() == "@":
            raise NotUnderstood("an expansion that evaluates")
        default = _DEFAULT.match(self.text, self.at)
        follows = self.here() in "%#"
        if default:
            self.at = default.end()
        other = self._until_brace()
        if not default:
            known = known if follows else None
        elif known is None or not known.text or "+" in default[0]:
            known = other
        if known is not None:
            known = Word(known.text, sure=False, inside=known.inside + other.inside)
        self._guess(pieces, known, quoted)

    def _until_brace(self) -> Word:
        pieces = Pieces()
        self.deeper()
        while self.here() != "}":
            if self.at >= len(self.text):
                raise NotUnderstood("an open brace")
            if self.starts("<(", ">("):
                raise NotUnderstood("commands in an expansion")
            self._piece(pieces, _IN_BRACES)
        self.at += 1
        self.depth -= 1
        return Word("".join(pieces.text), sure=False, inside=pieces.inside)

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEPTH_LIMIT:
            raise NotUnderstood("too many levels")

    def _fields(self, pieces: Pieces) -> list[Word]:
        sure = pieces.sure
        text, mask = "".join(pieces.text), "".join(pieces.mask)
        try:
            parts = alternatives(text, mask)
        except TooMany:
            parts, sure = [(text, mask)], False
        words: list[Word] = []
        for part, kinds in parts:
            for begin, end in _split(part, kinds):
                words.append(self._word(part[begin:end], kinds[begin:end], sure, pieces.inside))
        if not words and not sure:
            self.unclear()  # a variable that seems to be empty, and may be more than one argument
        if not words and (pieces.quoted or not pieces.text):
            words.append(Word("", sure, inside=pieces.inside))
        return words

    def _word(self, text: str, mask: str, sure: bool, inside: tuple[range, ...]) -> Word:
        if text.startswith("~") and mask[0] == "p":
            prefix, slash, rest = text.partition("/")
            directory = self.variables.tilde(prefix) if "q" not in mask[: len(prefix)] else None
            if directory is not None:
                mask = "q" * len(directory) + mask[len(prefix) :]
                text = directory + slash + rest
            elif "q" not in mask[: len(prefix)]:
                sure = False
        glob = text != "[" and any(char in "*?[" and kind != "q" for char, kind in zip(text, mask, strict=True))
        return Word(text, sure, glob, inside)


def _split(text: str, mask: str) -> list[tuple[int, int]]:
    """Where the fields of a word are, which blanks that came out of a variable part."""
    if "v" not in mask:
        return [(0, len(text))] if text else []
    fields, begin = [], 0
    for at, (char, kind) in enumerate(zip(text, mask, strict=True)):
        if kind == "v" and char in " \t\n":
            if at > begin:
                fields.append((begin, at))
            begin = at + 1
    if len(text) > begin:
        fields.append((begin, len(text)))
    return fields
