"""Brace expansion: ``{a,b}`` and ``{1..3}`` in a word make several words."""

from __future__ import annotations

import re
from itertools import pairwise

# Words that one word may become, and characters of a word that is looked at: honest text stays far below.
RESULT_LIMIT = 64
LENGTH_LIMIT = 1024

_RANGE = re.compile(r"(-?\d{1,6})\.\.(-?\d{1,6})|([A-Za-z])\.\.([A-Za-z])")


class TooMany(Exception):
    """The word becomes more words than are worth reading."""


def alternatives(text: str, mask: str) -> list[tuple[str, str]]:
    """The words, with their masks; only characters whose mask is ``p`` (plain) count as braces and commas."""
    if "{" not in text:
        return [(text, mask)]
    if len(text) > LENGTH_LIMIT:
        raise TooMany
    group = _first_group(text, mask)
    if group is None:
        return [(text, mask)]
    begin, commas, end = group
    tails = alternatives(text[end + 1 :], mask[end + 1 :])
    if commas:
        cuts = [begin, *commas, end]
        parts = [(text[a + 1 : b], mask[a + 1 : b]) for a, b in pairwise(cuts)]
        heads = [head for part in parts for head in alternatives(*part)]
    else:
        heads = [(value, "p" * len(value)) for value in _range(text[begin + 1 : end])]
    if len(heads) * len(tails) > RESULT_LIMIT:
        raise TooMany
    before, kinds = text[:begin], mask[:begin]
    return [(before + head + tail, kinds + m + n) for head, m in heads for tail, n in tails]


def _first_group(text: str, mask: str) -> tuple[int, list[int], int] | None:
    """The outermost group that begins first: its opening brace, its commas, its closing brace."""
    found: tuple[int, list[int], int] | None = None
    open_groups: list[tuple[int, list[int]]] = []
    for at, char in enumerate(text):
        if mask[at] != "p":
            continue
        if char == "{":
            open_groups.append((at, []))
        elif char == "," and open_groups:
            open_groups[-1][1].append(at)
        elif char == "}" and open_groups:
            begin, commas = open_groups.pop()
            if (commas or _RANGE.fullmatch(text, begin + 1, at)) and (found is None or begin < found[0]):
                found = (begin, commas, at)
    return found


def _range(body: str) -> list[str]:
    found = _RANGE.fullmatch(body)
    assert found is not None
    numbers = found[1] is not None
    first, last = (int(found[1]), int(found[2])) if numbers else (ord(found[3]), ord(found[4]))
    if abs(last - first) >= RESULT_LIMIT:
        raise TooMany
    step = 1 if last >= first else -1
    return [str(code) if numbers else chr(code) for code in range(first, last + step, step)]
