"""The arguments of an agent's first start, and those that reopen its conversation.

What a tool's words mean is said by ``Tool`` and ``Options``; nothing here knows one tool from another.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from session_magics.agents.tools import Tool
from session_magics.errors import UsageMistake


@dataclass(frozen=True)
class Arguments:
    """What to start a tool with, without the program."""

    args: tuple[str, ...]
    conversation: str | None
    """The id of the conversation, where the arguments settle it."""
    kept: tuple[str, ...] = field(default=(), compare=False)
    """Those that the person wanted: without an id that was made for them."""


@dataclass(frozen=True)
class _Item:
    """An option with its value, or a plain word (``name`` is then empty)."""

    words: tuple[str, ...]
    name: str = ""
    value: str | None = None


@dataclass(frozen=True)
class _Line:
    """A user's arguments taken apart; ``rest`` begins with ``--``, behind which no word is an option."""

    items: tuple[_Item, ...]
    rest: tuple[str, ...]

    def value(self, names: Sequence[str]) -> str | None:
        """The value of the last of these options that has one."""
        return next((item.value for item in reversed(self.items) if item.name in names and item.value), None)

    def has(self, names: Sequence[str]) -> bool:
        return any(item.name in names for item in self.items if item.name)

    @property
    def plain(self) -> list[str]:
        return [item.words[0] for item in self.items if not item.name]


def start_arguments(tool: Tool, args: Sequence[str], *, approve: bool) -> Arguments:
    """The arguments of a first start: the user's own, the id of the conversation, and the approval switch if wanted.

    An id that the user gave is respected, and a start that reopens a conversation gets none, as tools refuse both.
    Additions go before a ``--``; a command of the tool's that holds no conversation (``mcp list``) gets none.

    Raises:
        UsageMistake: approval is wanted, and an argument contradicts it.
    """
    line = _taken_apart(tool, args)
    if _is_command(tool, line):
        return Arguments(tuple(args), None, tuple(args))
    switch = _approval(tool, line) if approve else ()
    given, conversation = _identity(tool, line)
    before = args[: len(args) - len(line.rest)]
    wanted = (*before, *switch, *line.rest)
    return Arguments((*before, *switch, *given, *line.rest), conversation, wanted)


def resume_arguments(tool: Tool, args: Sequence[str], conversation: str | None) -> tuple[str, ...]:
    """The arguments that reopen a conversation, or without an id the latest one, made of those of the first start.

    The user's arguments are kept, the approval switch too, except: whatever names, reopens or forks a conversation,
    in every form, and the first prompt, which is in the conversation already and would be sent again. A word is
    taken for that prompt only if it cannot be an option's value; with an option that asks for one answer
    (``claude -p``) it is kept, as nothing would run without. What follows ``--`` is kept as it is. Arguments of a
    tool that cannot resume, and commands that hold no conversation, are unchanged.
    """
    line = _taken_apart(tool, args)
    if not tool.latest_args or _is_command(tool, line):
        return tuple(args)
    known = conversation or (_target(tool, line) if tool.keeps_target else None)
    template = tool.resume_args if known and tool.resume_args else tool.latest_args
    reopening = tuple(word.replace("{id}", known or "") for word in template)
    kept = tuple(word for item in _kept(tool, line) for word in item.words)
    return (*reopening, *kept, *line.rest) if tool.resume_first else (*kept, *reopening, *line.rest)


def _taken_apart(tool: Tool, args: Sequence[str]) -> _Line:
    words = list(args)
    end = words.index("--") if "--" in words else len(words)
    return _Line(tuple(_items(tool, words[:end])), tuple(words[end:]))


def _items(tool: Tool, words: Sequence[str]) -> Iterator[_Item]:
    options = tool.options
    without = {*options.latest, *options.once, *options.one_shot, *options.switches}
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if not _is_option(word):
            yield _Item((word,), value=word)
            continue
        name, value = _joined(tool, word)
        if value is not None or name in without:
            yield _Item((word,), name, value)
        elif letters := _cluster(tool, word):
            yield from (_Item((letter,), letter) for letter in letters)
        else:
            most = len(words) if name in options.lists else at + 1
            begin = at
            while at < min(most, len(words)) and not _is_option(words[at]):
                at += 1
            value = words[begin] if at > begin else None
            yield _Item((word, *words[begin:at]), name, value)


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _joined(tool: Tool, word: str) -> tuple[str, str | None]:
    """Part ``--name=value``, ``-n=value``, and ``-nvalue`` of an option that matters here."""
    name, equals, value = word.partition("=")
    if equals:
        return name, value
    options = tool.options
    short = word[:2]
    if not word.startswith("--") and len(word) > 2 and short in (*options.id, *options.resume, *options.prompt):
        return short, word[2:]
    return word, None


def _cluster(tool: Tool, word: str) -> tuple[str, ...]:
    """The options of a word such as ``-pc``, if all have no value and one of them reopens a conversation."""
    options = tool.options
    letters = tuple(f"-{letter}" for letter in word[1:])
    without = {*options.latest, *options.once, *options.one_shot, *options.switches}
    return letters if without.issuperset(letters) and not {*options.latest, *options.once}.isdisjoint(letters) else ()


def _is_command(tool: Tool, line: _Line) -> bool:
    return bool(line.plain) and line.plain[0] in tool.options.commands


def _is_reopening(tool: Tool, line: _Line) -> bool:
    options = tool.options
    return line.has((*options.resume, *options.latest)) or _reopened(tool, line) != []


def _reopened(tool: Tool, line: _Line) -> list[str]:
    """The plain words that reopen a conversation: the command, and the conversation unless an option names it."""
    plain = line.plain
    if not plain or plain[0] not in (*tool.options.reopen_commands, *tool.options.fork_commands):
        return []
    return plain[:1] if line.has(tool.options.latest) else plain[:2]


def _target(tool: Tool, line: _Line) -> str | None:
    """The conversation that the user's own arguments name."""
    words = _reopened(tool, line)
    if len(words) == 2 and words[0] in tool.options.reopen_commands:
        return words[1]
    return line.value(tool.options.resume) or line.value(tool.options.id)


def _identity(tool: Tool, line: _Line) -> tuple[tuple[str, ...], str | None]:
    """The arguments that give the conversation an id, if any, and the id, if it is known."""
    options = tool.options
    if line.has(options.id):
        return (), line.value(options.id)
    if _is_reopening(tool, line) and not line.has(options.once):
        target = _target(tool, line)
        return (), None if target and target.isdecimal() else target  # a place in a list, which will change
    if not tool.id_given:
        return (), None
    fresh = str(uuid.uuid4())
    return tuple(word.replace("{id}", fresh) for word in tool.id_given), fresh


def _approval(tool: Tool, line: _Line) -> tuple[str, ...]:
    """The approval switch, unless it is there in one of its forms."""
    same = {*tool.approve_same, *tool.approve_args, "=".join(tool.approve_args)}
    for item in line.items:
        if item.name and (item.name in same or f"{item.name}={item.value}" in same):
            return ()
    for item in line.items:
        if item.name in tool.approve_against:
            raise UsageMistake(
                f"{' '.join(item.words)} contradicts {' '.join(tool.approve_args)}, {tool.title}'s switch for asking "
                "nothing: leave one of them out"
            )
    return tool.approve_args


def _kept(tool: Tool, line: _Line) -> Iterator[_Item]:
    options = tool.options
    dropped = {*options.id, *options.resume, *options.latest, *options.once, *options.prompt}
    skipped = len(_reopened(tool, line))
    prompts = options.plain_prompt and not line.has(options.one_shot)
    for item in line.items:
        if item.name:
            if item.name not in dropped:
                yield item
        elif skipped:
            skipped -= 1
        elif not prompts:
            yield item
