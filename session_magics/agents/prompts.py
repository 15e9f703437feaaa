"""What the screen of a coding agent asks, by the catalogue of the prompts that each tool is known to show."""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, Literal

from session_magics.agents.menus import (
    Menu,
    Option,
    find_menu,
    is_edge,
    joined,
    last_row,
    may_wrap,
    paragraphs,
    sentence_at,
    unbordered,
    unnested,
    unseen,
)

QUESTION_ROWS = 4
"""Rows that a question may take, wrapped."""
STATUS_ROWS = 16
"""Rows with text, from the bottom, in which a tool says that it works or where to type: its box and hints are below."""
_PLAIN = {"about", "name", "kind", "reader", "prefix", "keys", "boxes"}
"""Names in the catalogue of what is meant literally. Other texts are patterns of whole rows (``text``: of any part)."""
_WIDER = re.compile(
    r"always|all\b|any\b|every|again|session|trust|remember|auto|bypass|future|permanent|never|from now|yolo|rule|mode",
    re.I,
)
"""Words of a label that agrees to more than what is asked now."""
_MASKED = re.compile(r".*\b(password|passphrase|passcode|pin|api[ _-]?key|access token|secret)\b[^:?]*[:?]", re.I)
_ASKS = re.compile(r" *(Would you like|Do you want|Allow )\b")
"""How a row begins that may be a question, of prompts that the catalogue lacks, too."""
_ASKING = re.compile(r".*(\?|[^:]:)|.*[\[(](y/n|yes/no)[\])] *:?", re.I)


@dataclass(frozen=True)
class Choice:
    """One option of a prompt."""

    key: str
    """What to type, control characters included: ``1``, ``y``, ``y\\r``; empty where no key is known to take it."""
    label: str
    kind: Literal["once", "always", "no", "other"]
    selected: bool


@dataclass(frozen=True)
class Prompt:
    """A question that the catalogue knows."""

    name: str
    kind: Literal["command", "edit", "read", "fetch", "other"]
    question: str
    subject: str | None
    """The command, path or URL, whole; None: it could not be read whole."""
    choices: tuple[Choice, ...] = ()
    masked: bool = False
    text: str = ""
    """The rows of its box above the options, without borders."""

    @property
    def once(self) -> Choice | None:
        """The choice that approves this once and widens no rule; None if there is none, or more than one."""
        if self.kind == "other" or self.masked or self.subject is None:
            return None
        found = [choice for choice in self.choices if choice.kind == "once"]
        return found[0] if len(found) == 1 and found[0].key else None

    @property
    def digest(self) -> str:
        """The same for the same prompt, whichever of its options is selected."""
        parts = [self.name, self.text, self.question, *(f"{choice.key}{choice.label}" for choice in self.choices)]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]


@dataclass(frozen=True)
class Doing:
    """What a program is at, by its screen alone."""

    state: Literal["working", "waiting", "idle"]
    prompt: Prompt | None = None
    question: str = ""
    """What it waits for, in one line; also for prompts that are not in the catalogue."""


@dataclass(frozen=True)
class Signs:
    """How a tool's screens are to be read."""

    busy: tuple[re.Pattern[str], ...]
    idle: tuple[re.Pattern[str], ...]
    footers: tuple[re.Pattern[str], ...]
    waiting: tuple[re.Pattern[str], ...]
    elided: tuple[re.Pattern[str], ...]
    options: Mapping[str, tuple[re.Pattern[str], ...]]
    prompts: tuple[Mapping[str, Any], ...]
    others: tuple[Mapping[str, Any], ...]


def read_screen(lines: Sequence[str], row: int, prompts: str, version: str | None = None) -> Doing:
    """Return what a program is doing, by its rendered screen.

    Args:
        lines: the screen, plain text, top to bottom.
        row: the cursor's.
        prompts: whose screen it is, a key of the catalogue; others are read as of an unknown program.
        version: of the program; without it the prompts of all versions count.
    """
    lines = [re.sub(r"^(\W*[>❯›])\xa0", r"\1 ", line) for line in lines]  # elsewhere it is part of a shell's word
    signs = _catalogue().get(prompts) or _catalogue()["shell"]
    menu = find_menu(lines, row, lambda text: _any(signs.footers, text))
    prompt = _known(menu, signs, version) if menu else None
    if prompt is not None and not (menu and _busy_above(lines, menu, signs)):
        return Doing("waiting", prompt, prompt.question)
    status = [text for line in lines if (text := unbordered(line))][-STATUS_ROWS:]
    if any(_any(signs.busy, text) for text in status):
        return Doing("working")
    if menu:
        question = menu.asked.strip() or _question_above(menu, lines)
        return Doing("waiting", _other(signs, question, menu), question)
    return _without_menu(lines, row, signs)


def _without_menu(lines: Sequence[str], row: int, signs: Signs) -> Doing:
    end = last_row(lines)
    text = unbordered(lines[end]) if end >= 0 else ""
    if row == end and _MASKED.fullmatch(text):
        return Doing("waiting", Prompt("masked", "other", text, None, masked=True), text)
    for at in range(end, max(-1, end - STATUS_ROWS), -1):
        line = unbordered(lines[at])
        if _any(signs.idle, lines[at].strip()):
            return Doing("idle")
        if _any(signs.waiting, line):
            above = [text for row in reversed(lines[:at]) if (text := unbordered(row))]
            return Doing("waiting", None, next((text for text in above if text.endswith("?")), (*above, line)[0]))
        if lines[at].startswith(line[:1] or "\n") and not _any(signs.footers, line) and not is_edge(line):
            break  # a line of text, not indented: what stands above it is not what is asked now
    asks = row == end and _ASKING.fullmatch(text)
    return Doing("waiting", _other(signs, text, None), text) if asks else Doing("idle")


def _any(patterns: Iterable[re.Pattern[str]], text: str) -> bool:
    return any(pattern.fullmatch(text) for pattern in patterns)


def _busy_above(lines: Sequence[str], menu: Menu, signs: Signs) -> bool:
    """Whether the tool says right above the box that it works, which it does not while it asks."""
    rows = map(unbordered, reversed(lines[: menu.box.top + 1] if menu.box else ()))
    return _any(signs.busy, next((text for text in rows if text and not is_edge(text)), ""))


def _question_above(menu: Menu, lines: Sequence[str]) -> str:
    """The last question above the options, else the paragraph there, in one line."""
    is_open = menu.box and menu.box.kind == "open"
    rows = [*lines[: menu.box.top + 1], *menu.above] if menu.box and is_open else menu.above
    found = [joined(paragraph[-QUESTION_ROWS:]) for paragraph in paragraphs(rows)]
    return next((text for text in reversed(found) if text.endswith("?")), found[-1] if found else "")


def _other(signs: Signs, question: str, menu: Menu | None) -> Prompt | None:
    """The prompt that no one but the user may answer, if it is a known one."""
    options = menu.options if menu else ()
    rows = [question, *(menu.above[-STATUS_ROWS:] if menu else ()), *(option.label for option in options)]
    for entry in signs.others:
        if entry["text"].search("\n".join(rows)):
            choices = [Choice(_key(option, entry), option.label, "other", option.selected) for option in options]
            return Prompt(entry["name"], "other", question, None, tuple(choices))
    return None


def _known(menu: Menu, signs: Signs, version: str | None) -> Prompt | None:
    """The prompt of the catalogue that the menu belongs to: its box, title, question and options all fit."""
    fits = []
    for entry in signs.prompts:
        if not _of_version(entry, version) or (menu.box.kind if menu.box else "none") not in entry["boxes"]:
            continue
        choices = _choices(menu, signs, entry)
        found = _parts(menu, entry)
        twins = any(choice.kind == "other" and not choice.label.isascii() for choice in choices)
        if found and not twins and any(choice.kind in ("once", "no") for choice in choices):
            question, body = found
            subject = _subject(body, question, menu, entry, signs)
            text = "\n".join(menu.above) if menu.box else subject or ""
            fits.append(Prompt(entry["name"], entry["kind"], question, subject, choices, text=text))
    return next((prompt for prompt in fits if prompt.subject is not None), fits[0] if fits else None)


def _of_version(entry: Mapping[str, Any], version: str | None) -> bool:
    found = re.search(r"\d+(\.\d+)*", version or "")
    if not found:
        return True
    number = tuple(map(int, found[0].split(".")))
    low, high = entry["versions"]
    return (low is None or number >= tuple(low)) and (high is None or number < tuple(high))


def _choices(menu: Menu, signs: Signs, entry: Mapping[str, Any]) -> tuple[Choice, ...]:
    return tuple(
        Choice(_key(option, entry), option.label, _kind(option.label, signs), option.selected)
        for option in menu.options
    )


def _key(option: Option, entry: Mapping[str, Any]) -> str:
    """What takes an option: by how the tool reads keys, the letter that the label shows, or Enter, or its own key."""
    if entry.get("keys") == "letter" and (found := re.search(r"\(([A-Za-z])\)", option.label)):
        return found[1].lower()
    if entry.get("keys") == "enter":
        return "\r" * option.selected
    return option.key


def _kind(label: str, signs: Signs) -> Literal["once", "always", "no", "other"]:
    label = label.replace("’", "'")
    if _any(signs.options.get("no", ()), label):
        return "no"
    if _WIDER.search(label):
        return "always"
    return "once" if _any(signs.options.get("once", ()), label) else "other"


def _parts(menu: Menu, entry: Mapping[str, Any]) -> tuple[str, list[str]] | None:
    """The question and the rows that tell what it is about, if the menu's box is as the entry says."""
    rows = list(menu.above)
    if menu.asked:
        return (menu.asked, rows) if entry["question"].fullmatch(menu.asked) else None
    if entry.get("question_first"):
        return _first_question(rows, entry)
    while rows and not rows[-1].strip():
        rows.pop()
    for count in range(1, min(QUESTION_ROWS, len(rows)) + 1):
        if is_edge(rows[-count]) or not rows[-count].strip():
            break
        question = joined(rows[-count:])
        if entry["question"].fullmatch(question):
            body = rows[:-count]
            while body and not body[0].strip():
                body.pop(0)
            if "title" not in entry:
                return question, body
            return (question, body[1:]) if body and entry["title"].fullmatch(body[0].strip()) else None
    return None


def _first_question(rows: list[str], entry: Mapping[str, Any]) -> tuple[str, list[str]] | None:
    """The parts where the question stands above what it is about; only if no other row may be the question."""
    found: list[tuple[int, int | None]] = []
    for at, row in enumerate(rows):
        ends = range(at + 1, min(at + QUESTION_ROWS, len(rows)) + 1)
        end = next((end for end in ends if entry["question"].fullmatch(joined(rows[at:end]))), None)
        if end or _ASKS.match(row):
            found.append((at, end))
    if len(found) != 1 or found[0][1] is None:
        return None
    at, end = found[0]
    return joined(rows[at:end]), rows[end:]


def _subject(body: list[str], question: str, menu: Menu, entry: Mapping[str, Any], signs: Signs) -> str | None:
    """What the question is about; None unless every character of it is on the screen."""
    how = entry.get("subject", {"reader": "none"})
    if how["reader"] == "adjacent":
        return _adjacent(body, signs)
    parts = list(paragraphs(unnested(body)))
    prefix = how.get("prefix", "")
    while parts and _any(how.get("before", ()), joined(parts[0])):
        if any(prefix and row.lstrip().startswith(prefix) for row in parts.pop(0)):
            return None
    while parts and _any(how.get("after", ()), joined(parts[-1])):
        parts.pop()
    if not parts or how["reader"] == "none" or menu.box is None:
        return None
    named = entry["question"].fullmatch(question)
    name = next((group for group in named.groups() if group), None) if named else None
    if how["reader"] == "command":
        return _command(parts, menu.box.width, how, signs) if name is None or name in joined(parts[0]) else None
    last = how["reader"] == "last"
    rows = [row for row in parts[-1] if not _any(how["skipped"], row.strip())] if last else parts[0]
    found = how["pattern"].fullmatch(rows[0].strip()) if rows else None
    alone = len(rows) == 1 or not (last or may_wrap(rows[0], rows[1], menu.box.width))
    only = "only" not in how or len(how["only"].findall(joined(body))) == 1
    if not found or not alone or not only or "..." in found[1] or _elided(found[1], signs):
        return None
    return str(found[1]) if name is None or f"/{found[1]}".endswith(f"/{name}") else None


def _elided(row: str, signs: Signs) -> bool:
    return unseen(row) or any(pattern.search(row) for pattern in signs.elided)


def _adjacent(body: list[str], signs: Signs) -> str | None:
    """The one row right above a question that has no box; what is further up is output of all kinds."""
    if len(body) < 2 or body[-1][:1] in ("", " ") or body[-2].strip():
        return None
    subject = body[-1].rstrip()
    return None if subject.startswith("#") or is_edge(subject) or _elided(subject, signs) else subject


def _command(parts: list[list[str]], width: int, how: Mapping[str, Any], signs: Signs) -> str | None:
    """The command in the only paragraph, lines joined as they are; None if a line may be wrapped, or is cut off."""
    if len(parts) != 1 or any(_elided(row, signs) for row in parts[0]):
        return None
    end = sentence_at(parts[0], width) if how.get("described") and len(parts[0]) > 1 else len(parts[0])
    if end is None:
        return None
    rows = parts[0][:end]
    indent = len(rows[0]) - len(rows[0].lstrip(" "))
    if any(row[:indent].strip() for row in rows):
        return None
    for row, after in pairwise(parts[0][: end + 1]):
        if may_wrap(row, after, width) or row.endswith("\\"):  # a blank at its end would be lost, and change it
            return None
    lines = [row[indent:] for row in rows]
    prefix = how.get("prefix", "")
    return "\n".join([lines[0][len(prefix) :], *lines[1:]]) if lines[0].startswith(prefix) else None


@cache
def _catalogue() -> Mapping[str, Signs]:
    text = importlib.resources.files("session_magics.agents").joinpath("prompts.json").read_text("utf-8")
    data = json.loads(text, object_hook=_compiled)
    return {name: _signs(tool, data["common"]) for name, tool in data.items() if name not in ("about", "common")}


def _compiled(data: dict[str, Any]) -> dict[str, Any]:
    """An object of the catalogue with its patterns ready for use."""
    for name in data.keys() - _PLAIN:
        if isinstance(data[name], str):
            data[name] = re.compile(data[name], re.I if name == "text" else 0)
        elif isinstance(data[name], list) and all(isinstance(value, str) for value in data[name]):
            data[name] = tuple(map(re.compile, data[name]))
    return data


def _signs(tool: Mapping[str, Any], common: Mapping[str, Any]) -> Signs:
    names = ("busy", "idle", "footers", "waiting", "elided", "others")
    lists = {name: (*tool.get(name, ()), *common.get(name, ())) for name in names}
    return Signs(**lists, options=tool.get("options", {}), prompts=tuple(tool.get("prompts", ())))
