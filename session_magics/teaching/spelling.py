"""Names that were probably meant."""

from __future__ import annotations

from collections.abc import Iterable

SHORT = 5
"""Letters of a word in which one slip is believed; in longer ones it may be two."""
MOST = 3
"""Names that are offered."""


def distance(one: str, other: str, limit: int) -> int:
    """How many letters to insert, leave out, change or swap with the next; ``limit`` + 1 for anything above it."""
    if abs(len(one) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        oldest, before, row = before, row, [i]
        for j, against in enumerate(other, 1):
            cost = min(before[j] + 1, row[-1] + 1, before[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, oldest[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return min(row[-1], limit + 1)


def nearest(word: str, names: Iterable[str], preferred: frozenset[str] = frozenset()) -> list[str]:
    """Those of the names that differ from the word by a slip or two, the likeliest first; upper case is no slip.

    ``preferred`` names win over others that are as near.
    """
    limit = 1 if len(word) <= SHORT else 2
    ranked = []
    for name in dict.fromkeys(names):
        slips = distance(word.lower(), name.lower(), limit)
        if slips <= limit and slips < len(word) and name != word:
            ranked.append((slips, name not in preferred, sorted(word) != sorted(name), name[:1] != word[:1], name))
    ranked.sort()
    return [rank[-1] for rank in ranked if rank[:2] == ranked[0][:2]][:MOST]
