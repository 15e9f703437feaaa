"""Reading what the shell reports through the FIFO."""

from __future__ import annotations

KINDS = b"BTVEXGRS"
HEADS = tuple(b"\001%c\t" % kind for kind in KINDS)


class Records:
    """Cuts the FIFO's bytes into (kind, body).

    A record is ``\\001 kind TAB number TAB body \\0``. The number is 0 where the shell does not know it yet. A shell
    that was interrupted while it wrote one leaves a torn piece before the next record, so the last beginning inside
    a piece counts.
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes, current: int) -> list[tuple[bytes, bytes]]:
        """The records of command ``current`` that are whole now; those of earlier ones are dropped."""
        *pieces, self._rest = (self._rest + data).split(b"\0")
        found = []
        for piece in pieces:
            at = piece.rfind(b"\001")
            if at > 0 or not piece.startswith(HEADS):
                at = max(piece.rfind(b"\001%c\t%d\t" % (kind, number)) for kind in KINDS for number in (0, current))
            if at >= 0:
                number, _, body = piece[at + 3 :].partition(b"\t")
                if number in (b"0", b"%d" % current):
                    found.append((piece[at + 1 : at + 2], body))
        return found


def listed_trap(listing: bytes, name: bytes) -> bytes:
    """The command that sets the trap ``name`` again, out of what ``trap`` prints; empty if there is none.

    An entry may span lines: it begins at ``trap -- `` and ends with the line that ends in the signal's name. What a
    DEBUG trap itself printed may stand between.
    """
    for entry in (b"\n" + listing).split(b"\ntrap -- ")[1:]:
        for ending in (b" " + name + b"\n", b" SIG" + name + b"\n"):
            *parts, _ = (entry + b"\n").split(ending)
            for count in range(1, len(parts) + 1):
                action = ending.join(parts[:count])
                if _closed(action):
                    return b"trap -- " + action + ending[:-1]
    return b""


def _closed(words: bytes) -> bool:
    """Whether every quote in shell text that a shell has printed is closed."""
    quote, at = b"", 0
    while at < len(words):
        char = words[at : at + 1]
        if char == b"\\" and quote in (b"", b"$"):
            at += 1
        elif quote:
            quote = b"" if char == quote.replace(b"$", b"'") else quote
        elif char in b"'\"":
            quote = b"$" if char == b"'" and words[:at].endswith(b"$") else char
        at += 1
    return not quote
