"""Reading what the shell reports through the FIFO."""

from __future__ import annotations

KINDS = b"BTVEXGRS"


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
            at = max(piece.rfind(b"\001%c\t%d\t" % (kind, number)) for kind in KINDS for number in (0, current))
            if at >= 0:
                _, _, body = piece[at + 3 :].partition(b"\t")
                found.append((piece[at + 1 : at + 2], body))
        return found


def listed_trap(listing: bytes, name: bytes) -> bytes:
    """The command that sets the trap ``name`` again, out of what ``trap`` prints; empty if there is none.

    An entry may span lines: it begins at ``trap -- `` and ends with the line that ends in the signal's name. What a
    DEBUG trap itself printed may stand between.
    """
    for entry in (b"\n" + listing).split(b"\ntrap -- ")[1:]:
        for ending in (b" " + name + b"\n", b" SIG" + name + b"\n"):
            text, found, _ = (entry + b"\n").partition(ending)
            if found:
                return b"trap -- " + text + ending[:-1]
    return b""
