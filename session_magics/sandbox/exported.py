"""Reading what ``export -p`` of a shell printed, as data: nothing is ever run to understand it.

dash and busybox print ``export NAME='…'`` with ``'"'"'`` for a quote, bash ``declare -x NAME="…"`` with backslashes or
``$'…'`` where a value has control characters, and bash called sh the same after ``export``. Values may hold anything
but NUL, so a line is read quote by quote and never taken for a record because of how it begins.
"""

from __future__ import annotations

import os
import re

RECORD = re.compile(rb"(?:export|declare)(?: -(?P<flags>[A-Za-z]+))? (?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<value>=?)")
ALIAS = re.compile(rb"alias (?:-- )?(?=[^\s'\"\\=]+=)")
PIECE = re.compile(
    rb"""'(?P<single>[^']*)'
    | \$'(?P<control>(?:[^'\\]|\\.)*)'
    | "(?P<double>(?:[^"\\]|\\.)*)"
    | \\(?P<escaped>.)
    | (?P<bare>[^'"\\\n]+)""",
    re.DOTALL | re.VERBOSE,
)
# In double quotes a backslash stands for itself before anything but these.
IN_DOUBLE = re.compile(rb'\\([\\$`"\n])')
IN_CONTROL = re.compile(
    rb"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.))", re.DOTALL
)
CONTROLS = {
    b"a": b"\a",
    b"b": b"\b",
    b"e": b"\x1b",
    b"E": b"\x1b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
}
# Arrays have no place in an environment, whatever their flags say.
ARRAYS = frozenset("aA")


def exported(listing: bytes) -> dict[str, str | None]:
    """The variables of a listing with their values; None: exported, but without a value.

    Raises:
        ValueError: the listing is not one; it says at which byte.
    """
    found: dict[str, str | None] = {}
    at = 0
    while at < len(listing):
        head = RECORD.match(listing, at)
        if head is None:
            raise ValueError(f"no exported variable at byte {at}")
        value, at = _word(listing, head.end())
        if not ARRAYS & set(os.fsdecode(head["flags"] or b"")):
            found[os.fsdecode(head["name"])] = os.fsdecode(value) if head["value"] else None
    return found


def aliases(listing: bytes) -> tuple[str, ...]:
    """The ``NAME=VALUE`` of each line that ``alias -p`` printed.

    Raises:
        ValueError: as ``exported`` does.
    """
    found = []
    at = 0
    while at < len(listing):
        head = ALIAS.match(listing, at)
        if head is None:
            raise ValueError(f"no alias at byte {at}")
        text, at = _word(listing, head.end())
        found.append(os.fsdecode(text))
    return tuple(found)


def _word(text: bytes, at: int) -> tuple[bytes, int]:
    """The word that begins there without its quoting, and where the next line begins."""
    pieces = []
    while text[at : at + 1] != b"\n":
        piece = PIECE.match(text, at)
        if piece is None:
            raise ValueError(f"a quote is left open at byte {at}")
        pieces.append(_plain(piece))
        at = piece.end()
    return b"".join(pieces), at + 1


def _plain(piece: re.Match[bytes]) -> bytes:
    match piece.lastgroup:
        case "double":
            return IN_DOUBLE.sub(lambda found: found[1].replace(b"\n", b""), piece["double"])
        case "control":
            return IN_CONTROL.sub(_control, piece["control"])
        case group:
            return piece[group or 0]


def _control(found: re.Match[bytes]) -> bytes:
    byte, short, long, octal, letter = found.groups()
    if letter is not None:
        return CONTROLS.get(letter, letter)
    if byte is not None or octal is not None:
        return bytes([int(byte, 16) if byte is not None else int(octal, 8) & 0xFF])
    return chr(int(short or long, 16)).encode("utf-8", "surrogateescape")
