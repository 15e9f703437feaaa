"""Lines that fit into a terminal's width."""

from __future__ import annotations


def fit(line: str, width: int) -> str:
    """The line, or its beginning and an ellipsis if it is wider than so many columns. It has no sequences in it."""
    if line.isascii():
        return line if len(line) <= width else line[: max(0, width - 1)] + "…"[:width]
    from wcwidth import wcswidth, wcwidth  # takes 20 ms, and most lines do without

    if wcswidth(line) <= width:
        return line
    room, kept = width - 1, 0
    for char in line:
        room -= max(0, wcwidth(char))
        if room < 0:
            break
        kept += 1
    return line[:kept] + "…"[:width]
