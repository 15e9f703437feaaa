"""Values in shell text: words as a command gets them, and what the text itself says about variables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

# Stands in a word for what only running would tell. Shell text cannot hold it.
UNKNOWN = "\0"
# Characters that variables and texts inside others may add to one text: a few lines can otherwise double without end.
EXPANSION_LIMIT = 16384


@dataclass(frozen=True)
class Word:
    """One argument.

    ``sure``: the text alone gives the value; without it ``text`` is the best guess.
    ``inside``: the commands, by index, whose output is or may be part of the word.
    """

    text: str
    sure: bool = True
    glob: bool = False
    inside: tuple[range, ...] = ()


@dataclass
class Variables:
    """What the text itself says about variables; ``home`` and ``directory`` are known from outside."""

    home: str
    directory: str
    values: dict[str, Sequence[Word]] = field(default_factory=dict)
    left: int = EXPANSION_LIMIT
    moved: bool = False

    def value(self, name: str) -> Word | None:
        """The value as a guess; only HOME and PWD, while the text leaves them alone, are sure."""
        if name in self.values:
            words = self.values[name]
            text = " ".join(word.text for word in words)
            self.left -= len(text)
            return Word(text if self.left > 0 else UNKNOWN, sure=False, inside=sum((word.inside for word in words), ()))
        if name == "HOME":
            return Word(self.home)
        if name == "PWD":
            return Word(self.directory, sure=not self.moved)
        if name == "IFS":
            return Word(" ", sure=False)
        if name in "@*123456789":  # a text that is run as it stands has no positional parameters
            return Word("", sure=False)
        return Word("$0", sure=False) if name == "0" else None

    def several(self, name: str) -> bool:
        """Whether the variable takes several values in turn; each counts, so even quotes do not join them."""
        return len(self.values.get(name, ())) > 1

    def tilde(self, prefix: str) -> str | None:
        """The directory that ``~`` or ``~name`` stands for."""
        if prefix == "~":
            return self.home
        if prefix in ("~+", "~root"):
            return self.directory if prefix == "~+" else "/root"
        if re.fullmatch(r"~[A-Za-z_][\w.-]*", prefix):
            return self.home.rpartition("/")[0] + "/" + prefix[1:]
        return None
