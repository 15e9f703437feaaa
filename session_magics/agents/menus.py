"""The menu of options at the bottom of a rendered screen, and the box that it stands in."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

FOOTER_ROWS = 8
"""Rows below the options that may hold footers and status lines; a menu further up is not what is asked now."""
CURSOR_BELOW = 3
"""Rows below the last text where the cursor may be: after its line end, and the blank rows that some tools leave."""
LABEL_ROWS = 4
"""Rows that one option's label may take, wrapped."""
BOX_INDENT = 2
"""Columns that a tool leaves free at the left of a box. What it quotes is further in."""
BOX_ROWS = 400
"""Rows that are looked at above the options for the top of their box: more than any terminal has."""
WRAP_SLACK = 6
"""Cells between a text's own right margin and the border of its box: a row that ends closer to it than its next word
is long may have been wrapped there."""
RULE_CELLS = 20
"""Length from which a line of dashes across the screen is the top of a box: the narrowest terminals in use have 40."""

_SIDES = "│┃▌║|"
_TOP, _BOTTOM = re.compile(r"[╭┌┏╔][─━═]+[╮┐┓╗]|\+[-=]+\+"), re.compile(r"[╰└┗╚][─━═]+[╯┘┛╝]|\+[-=]+\+")
_RULE = re.compile(rf"[─━═▔]{{{RULE_CELLS},}}")
_EDGE = re.compile(r"[─━═╌┄▔▀▁╭╮╰╯┌┐└┘┏┓┗┛╔╗╚╝╹╻┃│]{3,}|\+[-=]{2,}\+|[╹╻╵╷]")
_POINTERS = "❯›▶▸➤●→>"
_NUMBERED = re.compile(rf"( *(?:[{_POINTERS}○] +)?)([1-9])[.)] +(\S.*)")
_LETTERED = re.compile(rf"( *(?:[{_POINTERS}○] +)?)\(([a-z])\) +(\S.*)")
_BARE = re.compile(r"( *(?:[❯›▶▸➤●○] +)?)()(\S.*)")
_ANSWER = re.compile(
    r"(yes|no|ok|y|n|allow|accept|approve|reject|deny|cancel|continue|proceed|skip|always|exit|quit)\b", re.I
)
_INLINE = re.compile(r"(.*\S) +(\(\w\)[\w' ]+(?:/\(\w\)[\w' ]+)+)(?: *\[(\w+)\])?:? *")
_YES_NO = re.compile(r"(.*\S) *[\[(](?:y/n|yes/no)[\])] *:? *", re.I)
_SENTENCE = re.compile(r"[A-Z][a-z]+( [A-Za-z0-9,.'’:/_+()-]+)+")
_HINT = re.compile(r"(ctrl|enter|esc|tab|shift)\b.*|[⇆↑↓←→].*")
_UNSEEN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}
"""Categories of characters that show nothing, turn the order of what is shown, or are of a width not known here."""


@dataclass(frozen=True)
class Option:
    key: str
    """What to type for it, control characters included; empty where it cannot be told."""
    label: str
    selected: bool


@dataclass(frozen=True)
class Box:
    """What surrounds a menu. A text inside it cannot draw its top, for it is indented or has a border at its side."""

    kind: Literal["box", "bar", "rule", "open"]
    """Closed all round; a bar at the left side; below a line across the screen; below text that is not indented."""
    top: int
    """The lowest row that is known to be outside of the text."""
    width: int
    """Cells up to the right border, or the least that the screen may have."""


@dataclass(frozen=True)
class Menu:
    options: tuple[Option, ...]
    style: Literal["numbered", "lettered", "bare", "inline", "row"]
    above: tuple[str, ...]
    """The rows of the box above the options, without borders; without a box, those of the screen."""
    box: Box | None
    asked: str
    """The question in the row of the options itself, with its indentation; empty if it stands above."""


def cells(text: str) -> int:
    """Return how many columns text takes."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def is_edge(text: str) -> bool:
    """Whether a row is nothing but a line or a corner."""
    return _EDGE.fullmatch(text.strip()) is not None


def unseen(text: str) -> bool:
    """Whether text has characters that do not show, so that it may not be what it looks like."""
    return any(unicodedata.category(char) in _UNSEEN for char in text)


def unbordered(line: str) -> str:
    """Return a row without the borders at its sides, and without blanks at both ends."""
    return line.strip(f" \xa0{_SIDES}")


def paragraphs(rows: Iterable[str]) -> Iterator[list[str]]:
    """The runs of rows between blank ones and lines."""
    rows, gathered = list(rows), list[str]()
    for row in [*rows, ""]:
        if row.strip() and not is_edge(row):
            gathered.append(row)
        elif gathered:
            yield gathered
            gathered = []


def unnested(rows: list[str]) -> list[str]:
    """Rows without the borders of a box that begins with the first of them."""
    if not rows or not is_edge(rows[0]):
        return rows
    return [row if is_edge(row) else re.sub(r"^( *)│(.*)│$", r"\1 \2", row).rstrip() for row in rows]


def may_wrap(row: str, following: str, width: int) -> bool:
    """Whether the next row may go on with the same line, for its first word had no room in this one."""
    return cells(row) + 1 + cells(following.strip(" ").split(" ")[0]) > width - WRAP_SLACK


def sentence_at(rows: list[str], width: int) -> int | None:
    """Return the row where the sentence begins that ends rows; None if it is no sentence, or begins the first."""
    for at in range(len(rows) - 1, 0, -1):
        if _SENTENCE.fullmatch(joined(rows[at:])):
            return at
        if not may_wrap(rows[at - 1], rows[at], width):
            return None
    return None


def joined(rows: Iterable[str]) -> str:
    """Return rows as one line."""
    return " ".join(row.strip() for row in rows)


def last_row(lines: Sequence[str]) -> int:
    """Return the lowest row that shows anything; -1 if none does."""
    return next((at for at in reversed(range(len(lines))) if lines[at].strip()), -1)


def find_menu(lines: Sequence[str], row: int, is_footer: Callable[[str], bool]) -> Menu | None:
    """Return the menu that ends the screen; None where there is none, or where it is not sure which it is.

    Args:
        lines: the screen, plain, top to bottom.
        row: the cursor's. Programs that draw menus leave it in them or right below.
        is_footer: tells of a row without borders whether it may stand below a menu.
    """
    end = last_row(lines)
    if end < 0 or row > end + CURSOR_BELOW:
        return None
    if row == end and (menu := _inline(lines, end)):
        return menu
    last = end
    while last >= 0 and end - last <= FOOTER_ROWS:
        text = unbordered(lines[last])
        if text and not is_edge(lines[last]) and not is_footer(text):
            break
        last -= 1
    if last < 0 or end - last > FOOTER_ROWS:
        return None
    return _listed(lines, last, row) or _in_a_row(lines, last)


def _inside(lines: Sequence[str], at: int) -> tuple[str, int] | None:
    """The border at the side of a row and its column, if it has one."""
    found = re.match(rf" {{0,{BOX_INDENT}}}([{_SIDES}])", lines[at])
    return (found[1], found.end() - 1) if found else None


def _content(line: str, side: tuple[str, int] | None) -> str:
    if side is None:
        return line.rstrip()
    text = line.rstrip()[side[1] + 1 :]
    return text.removesuffix(side[0]).rstrip()


def _listed(lines: Sequence[str], last: int, row: int) -> Menu | None:
    """The menu whose options stand below each other and end in the row last."""
    side = _inside(lines, last)
    rows = [_content(line, side) if _inside(lines, at) == side else "" for at, line in enumerate(lines[: last + 1])]
    for style, pattern in (("numbered", _NUMBERED), ("lettered", _LETTERED), ("bare", _BARE)):
        found = _bare_options(rows) if style == "bare" else _options(rows, pattern)
        if found:
            first, options = found
            box = _box(lines, first, last, side)
            above = tuple(rows[box.top + 1 if box else 0 : first])
            if any(map(unseen, [*above, *rows[first:]])):
                return None
            if not first <= row <= last and not any(option.selected for option in options):
                options = tuple(Option("", option.label, False) for option in options)
            return Menu(options, style, above, box, "")  # type: ignore[arg-type]
    return None


def _options(rows: Sequence[str], pattern: re.Pattern[str]) -> tuple[int, tuple[Option, ...]] | None:
    """The first row and the options that end with the last of rows: numbers from 1 without a gap, or letters."""
    numbered = pattern is _NUMBERED
    options: list[Option] = []
    wrapped: list[str] = []
    column = 0
    for at in reversed(range(len(rows))):
        found = pattern.fullmatch(rows[at])
        if not found:
            if options and not wrapped and not numbered:
                return _checked(at + 1, rows, options, pattern)
            wrapped.insert(0, rows[at])
            if not rows[at].strip() or is_edge(rows[at]) or len(wrapped) >= LABEL_ROWS:
                return None
            continue
        if any(_indent(text) < found.start(3) for text in wrapped) or (options and found.start(2) != column):
            return None
        column = found.start(2)
        label = " ".join(joined([found[3], *wrapped]).split())
        options.insert(0, Option(found[2], label, any(char in _POINTERS for char in found[1])))
        wrapped = []
        if numbered and found[2] == "1":
            return _checked(at, rows, options, pattern)
    return None


def _checked(
    first: int, rows: Sequence[str], options: list[Option], pattern: re.Pattern[str]
) -> tuple[int, tuple[Option, ...]] | None:
    keys = [option.key for option in options]
    in_order = keys == [str(number) for number in range(1, len(keys) + 1)] or pattern is _LETTERED
    selected = sum(option.selected for option in options)
    unique = len(set(keys)) == len(keys) >= 2 and (selected == 1 or (not selected and _answers(options)))
    more = first > 0 and re.match(r"\W*\d+[.)] ", rows[first - 1])  # part of a longer list
    return (first, tuple(options)) if in_order and unique and not more else None


def _bare_options(rows: Sequence[str]) -> tuple[int, tuple[Option, ...]] | None:
    """Options without a number, of which a pointer or a filled circle marks one: only that can be typed, by Enter."""
    options: list[Option] = []
    first, column = len(rows), None
    while first > 0 and (found := _BARE.fullmatch(rows[first - 1])):
        if column not in (None, found.start(3)):
            break
        column = found.start(3)
        selected = any(char in _POINTERS for char in found[1])
        options.insert(0, Option("\r" * selected, found[3].strip(), selected))
        first -= 1
    one = sum(option.selected for option in options) == 1
    return (first, tuple(options)) if len(options) > 1 and one and _answers(options) else None


def _answers(options: Sequence[Option]) -> bool:
    return any(_ANSWER.match(option.label) for option in options)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


def _box(lines: Sequence[str], first: int, last: int, side: tuple[str, int] | None) -> Box | None:
    """What surrounds the options between two rows; None if it is broken, or cut off by the top of the screen."""
    rows = range(first - 1, max(-1, first - BOX_ROWS), -1)
    widest = max(cells(line) for line in lines)
    if side is None:
        for at in rows:
            if _RULE.fullmatch(lines[at].rstrip()):
                return Box("rule", at, cells(lines[at].rstrip()))
            if lines[at].strip() and lines[at][0] != " " and not is_edge(lines[at]):
                return Box("open", at, widest)
        return None
    if not all(_inside(lines, at) == side for at in range(first, last + 1)):
        return None
    right = cells(lines[last].rstrip())
    if side[0] in "│║|" and len(lines[last].strip()) > 1 and lines[last].rstrip().endswith(side[0]):
        return _closed(lines, first, last, side, right)
    top = next((at for at in rows if _inside(lines, at) != side), None)
    return Box("bar", top, widest) if top is not None else None


def _closed(lines: Sequence[str], first: int, last: int, side: tuple[str, int], right: int) -> Box | None:
    """The box with borders all round, none of which is missing."""

    def ends(at: int, corner: re.Pattern[str]) -> bool:
        text = lines[at].rstrip()
        return cells(text) == right and _indent(text) == side[1] and corner.fullmatch(text.strip()) is not None

    def within(at: int) -> bool:
        text = lines[at].rstrip()
        return cells(text) == right and _inside(lines, at) == side and text.endswith(side[0]) and len(text.strip()) > 1

    top, bottom = first - 1, first
    while top >= 0 and within(top):
        top -= 1
    while bottom < len(lines) and within(bottom):
        bottom += 1
    whole = top >= 0 and bottom < len(lines) and ends(top, _TOP) and ends(bottom, _BOTTOM)
    return Box("box", top, right) if whole else None


def _inline(lines: Sequence[str], end: int) -> Menu | None:
    """A question with its keys in its own row, where the cursor is: ``(Y)es/(N)o [Yes]:`` or ``[y/n]``."""
    for count in range(1, min(3, end + 1) + 1):
        rows = lines[end - count + 1 : end + 1]
        for text in dict.fromkeys(joint.join(row.rstrip() for row in rows) for joint in ("", " ")):
            above = tuple(line.rstrip() for line in lines[: end - count + 1])
            if found := _INLINE.fullmatch(text):
                parts = [part.strip() for part in found[2].split("/")]
                options = [Option(f"{part[1].lower()}\r", part[1] + part[3:], False) for part in parts]
                labels = [option.label.lower() for option in options]
                if (
                    len({option.key for option in options}) == len(options)
                    and (found[3] or labels[0]).lower() in labels
                ):
                    return Menu(tuple(options), "inline", above, None, found[1])
            if found := _YES_NO.fullmatch(text):
                options = [Option("y\r", "Yes", False), Option("n\r", "No", False)]
                return Menu(tuple(options), "inline", above, None, found[1])
    return None


def _in_a_row(lines: Sequence[str], last: int) -> Menu | None:
    """Options beside each other: buttons. Which one is selected shows by its colour alone, unless a pointer does."""
    side = _inside(lines, last)
    parts = [part for part in re.split(r" {2,}", _content(lines[last], side).strip()) if not _HINT.fullmatch(part)]
    options = []
    for part in parts:
        label = part.lstrip(f"{_POINTERS} ")
        options.append(Option("\r" if label != part else "", label, label != part))
    if not 2 <= len(options) <= 5 or not all(_ANSWER.match(option.label) for option in options):
        return None
    if sum(option.selected for option in options) > 1:
        return None
    box = _box(lines, last, last, side)
    rows = [_content(line, side) if _inside(lines, at) == side else "" for at, line in enumerate(lines[:last])]
    above = tuple(rows[box.top + 1 if box else 0 :])
    if any(map(unseen, [*above, lines[last]])):
        return None
    return Menu(tuple(options), "row", above, box, "")
