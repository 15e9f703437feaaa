"""A word of shell text as far as it is written: what it stands for, and which quote is open at its end."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, field
from typing import Literal

PartKind = Literal["text", "variable", "tilde", "opaque"]
UNSAFE = re.compile(r"[^\w@%+=:,./~^-]")
"""Characters that are quoted outside quotes. Letters of every alphabet are safe; so are those that only mean
something at the beginning of a word, where ``escaped`` sees to them."""
CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True)
class Part:
    """A piece of a word: literal text, a variable's name, ``~`` or ``~user``, or what only running it would tell."""

    kind: PartKind
    text: str


@dataclass
class Word:
    """One word, grown by the lexer; ``quote`` is the open one (``'``, ``"``, ``$'``), or empty."""

    start: int
    raw: str = ""
    pieces: list[Part] = field(default_factory=list)
    """As they were read: a text may be in many."""
    quote: str = ""
    quote_start: int = 0
    """Offset in ``raw`` where the open quote begins."""
    slash: int = 0
    """Offset in ``raw`` behind the last slash: where the last component of a path begins."""

    def add(self, kind: PartKind, text: str) -> None:
        """Append a piece."""
        self.pieces.append(Part(kind, text))

    @property
    def parts(self) -> list[Part]:
        """The pieces; neighbouring texts are one."""
        parts: list[Part] = []
        for is_text, group in itertools.groupby(self.pieces, lambda piece: piece.kind == "text"):
            if is_text:
                parts.append(Part("text", "".join(piece.text for piece in group)))
            else:
                parts.extend(group)
        return parts

    @property
    def literal(self) -> str | None:
        """What it stands for, if that is known without a shell."""
        if any(part.kind in ("variable", "opaque") for part in self.pieces):
            return None
        return "".join(part.text for part in self.pieces)

    @property
    def plain(self) -> bool:
        """Whether it is written as it is meant: no quotes, no expansions."""
        return self.literal == self.raw

    @property
    def assigns(self) -> bool:
        """Whether it is ``NAME=…`` or ``NAME+=…``."""
        return re.match(r"[A-Za-z_][A-Za-z0-9_]*(\[[^]]*\])?\+?=", self.raw) is not None

    def path(self) -> tuple[list[Part], str] | None:
        """Its directory, as pieces up to the last slash, and the beginning of the last name; None: not known."""
        if any(part.kind == "opaque" for part in self.pieces):
            return None
        parts = self.parts
        if not parts or parts[-1].kind != "text":
            return (parts, "") if not parts else None
        last = parts.pop().text
        head, slash, name = last.rpartition("/")
        if not slash and parts:
            return None  # such as $NAME, which may hold a part of the name
        return [*parts, Part("text", head + slash)] if slash else [], name


def escaped(text: str, quote: str, *, fish: bool = False) -> str:
    """The text as it is written outside quotes, or to go on inside the open quote."""
    if quote == "'":
        return text.replace("\\", "\\\\").replace("'", "\\'") if fish else text.replace("'", "'\\''")
    if quote == '"':
        return re.sub(r'(["\\$])' if fish else r'(["\\$`])', r"\\\1", text)
    if quote == "$'":
        return CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", re.sub(r"(['\\])", r"\\\1", text))
    if CONTROL.search(text):
        return text if fish else "$'" + escaped(text, "$'") + "'"
    written = UNSAFE.sub(lambda match: "\\" + match[0], text)
    return "\\" + written if written[:1] == "~" else written
