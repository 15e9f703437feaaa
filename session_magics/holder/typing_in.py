"""Typing long lines into a terminal that hands over whole lines."""

from __future__ import annotations

PIECE = 4000
"""Bytes of a line after which it is handed over. Linux drops what goes beyond 4095 (macOS: 1023) without a word, and a
line's end has to fit as well."""
LINE_ENDS = b"\n\r"


def canonical_pieces(data: bytes, *, eof: bytes = b"\x04", column: int = 0, piece: int = PIECE) -> tuple[bytes, int]:
    """What to type so that the reader gets ``data`` whole, and the column reached.

    The terminal's end-of-file character ``eof`` hands over what was typed so far and is not delivered itself. It never
    comes at the beginning of a line here, where it would mean the end of the input. ``column`` is how many bytes of
    the line were typed before, the second value of the call before. Only for a terminal in canonical mode.
    """
    typed = bytearray()
    for byte in data:
        if column == piece and byte not in LINE_ENDS and byte != eof[0]:
            typed += eof
            column = 0
        typed.append(byte)
        column = 0 if byte in LINE_ENDS or byte == eof[0] else column + 1
    return bytes(typed), column
