"""The coding agents that sessions know: where their programs are, and how each is started, approved and resumed.

The built-in ones are in ``tools.json``; a file of the user's adds to them or changes them, in the same words.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib.resources
import json
import os
import pwd
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from session_magics.errors import UsageMistake

CONFIG_VARIABLE = "SESSION_MAGICS_TOOLS"
"""Names the user's file of tools; without it, ``tools.json`` in the root of the registry is read."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LOGIN_SHELL = "$SHELL"
_KINDS: dict[object, tuple[type, str]] = {
    str: (str, "text"),
    bool: (bool, "true or false"),
    tuple[str, ...]: (list, "a list of texts"),
}


@dataclass(frozen=True)
class Options:
    """How a tool reads its words, as far as a restart must know. Options are named with their dashes."""

    id: tuple[str, ...] = ()
    """The value names a new conversation."""
    resume: tuple[str, ...] = ()
    """The value, if there is one, names the conversation to reopen."""
    latest: tuple[str, ...] = ()
    """Without a value: reopen the latest conversation."""
    once: tuple[str, ...] = ()
    """Without a value: holds for the start at which it was given only."""
    prompt: tuple[str, ...] = ()
    """The value is the first prompt of a conversation that goes on interactively."""
    plain_prompt: bool = False
    """A word that is no option and no option's value is the first prompt."""
    one_shot: tuple[str, ...] = ()
    """Without a value: answer the prompt and end, so a restart needs the prompt again."""
    switches: tuple[str, ...] = ()
    """Other options without a value; an option that is nowhere named may have one."""
    lists: tuple[str, ...] = ()
    """All words up to the next option are its values."""
    commands: tuple[str, ...] = ()
    """Words that make a start something else than a conversation (``mcp``, ``login``)."""
    reopen_commands: tuple[str, ...] = ()
    """Words that reopen the conversation that the next word names."""
    fork_commands: tuple[str, ...] = ()
    """Words that begin a new conversation from a copy of the one that the next word names."""


@dataclass(frozen=True)
class Tool:
    """One known program. ``{id}`` in arguments stands for the id of a conversation."""

    name: str
    title: str = ""
    programs: tuple[str, ...] = ()
    """The program and its own first arguments; the program is a path, or a name that is looked for on PATH."""
    places: tuple[str, ...] = ()
    """Paths where the program is when PATH lacks it, as that of a notebook's server often does."""
    processes: tuple[str, ...] = ()
    """Names by which its process is known."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Variables that it is started with."""
    version_args: tuple[str, ...] = ("--version",)
    version_pattern: str = r"\d+(?:\.\d+)+(?:[-+][0-9A-Za-z.-]+)?"
    """Finds the version in what ``version_args`` prints: group 1, or all of the match. Without arguments, none."""
    prompts: str = ""
    """Name of its prompts in prompts.json; "": they are not known."""
    approve_args: tuple[str, ...] = ()
    """The tool's own switch for asking nothing."""
    approve_same: tuple[str, ...] = ()
    """Other spellings of it: ``--option`` or ``--option=value``."""
    approve_against: tuple[str, ...] = ()
    """Options that contradict it."""
    id_given: tuple[str, ...] = ()
    """Arguments that give a new conversation its id."""
    id_pattern: str = ""
    """Finds the id in the output, as group 1. It must match at most 256 characters and end in something that cannot
    grow (``{12}``, not ``+``), as output comes in pieces."""
    resume_args: tuple[str, ...] = ()
    """Arguments that reopen a conversation by its id."""
    latest_args: tuple[str, ...] = ()
    """Arguments that reopen the latest conversation."""
    resume_first: bool = False
    """Those arguments go before the user's, not behind."""
    keeps_target: bool = False
    """Where no id is known, the conversation that the user's own arguments name is reopened."""
    options: Options = Options()


def tools(path: Path | None = None) -> Mapping[str, Tool]:
    """The known tools by name: the built-in ones and those of the user's file.

    ``path`` is the root directory of a registry. A file that ``$SESSION_MAGICS_TOOLS`` names must exist.

    Raises:
        UsageMistake: the user's file is not right; the text names file, tool and field.
    """
    known = {name: _built(name, entry, "") for name, entry in _built_in().items()}
    named = os.environ.get(CONFIG_VARIABLE)
    config = Path(named).expanduser() if named else path and path / "tools.json"
    if config and (named or config.exists()):
        for name, entry in _read_config(config).items():
            known[name] = _built(name, _merged(name, entry, str(config)), str(config.absolute().parent))
    return known


def tools_or_built_in(path: Path | None = None) -> Mapping[str, Tool]:
    """The same; the built-in ones alone where the user's file is not right: whoever starts a tool is told of that."""
    try:
        return tools(path)
    except UsageMistake:
        return {name: _built(name, entry, "") for name, entry in _built_in().items()}


def tool_named(name: str, known: Mapping[str, Tool]) -> Tool:
    """The tool of that name; UsageMistake, with the nearest name, where there is none."""
    if name in known:
        return known[name]
    raise UsageMistake(
        f"no tool {name[:40]!r}: {_hint(name, known)}known are {', '.join(known)}; "
        f"%session tools; your own are in tools.json in the root of the registry, or in the file of ${CONFIG_VARIABLE}"
    )


@functools.cache
def _built_in() -> dict[str, dict[str, Any]]:
    text = importlib.resources.files("session_magics.agents").joinpath("tools.json").read_text("utf-8")
    entries: dict[str, dict[str, Any]] = json.loads(text)
    return {name: _over(entries.get(entry.get("like", ""), {}), entry) for name, entry in entries.items()}


def _read_config(config: Path) -> dict[str, Any]:
    try:
        entries = json.loads(config.read_text("utf-8"))
    except OSError as error:
        raise UsageMistake(f"{config}: {error.strerror}; ${CONFIG_VARIABLE} may name another file of tools") from None
    except (ValueError, RecursionError) as error:
        raise UsageMistake(f"{config}: not JSON: {error}") from None
    if not isinstance(entries, dict):
        raise UsageMistake(f'{config}: has to be an object of tools, such as {{"demo": {{"program": ["./agent"]}}}}')
    return entries


def _merged(name: str, entry: object, config: str) -> dict[str, Any]:
    """The user's entry over the built-in one that it is like, or whose name it has."""
    where = f"{config}: tool {name[:40]!r}: "
    if not _NAME.fullmatch(name):
        raise UsageMistake(f"{where}a name is made of letters, digits, '.', '_' and '-', at most 64")
    if not isinstance(entry, dict):
        raise UsageMistake(f'{where}has to be an object, such as {{"like": "claude"}}')
    checked, known = _checked(entry, Tool, where), _built_in()
    base = entry.get("like", name)
    if "like" in entry and base not in known:
        raise UsageMistake(
            f"{where}field 'like' names no built-in tool: {_hint(base, known)}there are {', '.join(known)}"
        )
    if base not in known and "program" not in entry:
        raise UsageMistake(f"{where}no field 'program': give one, or 'like' with the name of a built-in tool")
    own = {"title"} if base != name else set()
    if "program" in entry:  # another program is elsewhere, and its process has another name
        own |= {"places", "processes"}
    return _over({key: value for key, value in known.get(base, {}).items() if key not in own}, checked)


def _over(base: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**base, **entry}
    for key in ("env", "env_default", "options"):
        if key in base and key in entry:
            merged[key] = {**base[key], **entry[key]}
    merged.pop("like", None)
    return merged


def _fields(kind: type) -> dict[str, Any]:
    """The fields of an entry in JSON and their types."""
    hints = get_type_hints(kind)
    if kind is Tool:
        hints.pop("name")
        hints["program"] = hints.pop("programs")
        hints |= {"like": str, "env_default": hints["env"]}
    return hints


def _checked(entry: Mapping[str, Any], kind: type, where: str) -> dict[str, Any]:
    fields, checked = _fields(kind), dict(entry)
    for key, value in entry.items():
        if key not in fields:
            raise UsageMistake(f"{where}no field {key[:40]!r}: {_hint(key, fields)}there are {', '.join(fields)}")
        if fields[key] is Options and isinstance(value, dict):
            checked[key] = _checked(value, Options, f"{where}field {key!r}: ")
            continue
        if key == "program" and isinstance(value, str):
            checked[key] = value = [value]
        if wanted := _unfit(key, fields[key], value):
            raise UsageMistake(f"{where}field {key!r} has to be {wanted}")
        if key == "program" and not "".join(value[:1]):
            raise UsageMistake(f"{where}field {key!r} has to begin with a program")
    return checked


def _unfit(key: str, hint: object, value: object) -> str:
    """What a value of that type has to be, if this one is not."""
    if key.endswith("_pattern") and isinstance(value, str):
        try:
            groups = re.compile(value).groups
        except re.error as error:
            return f"a regular expression: {error}"
        return "a regular expression with the id in parentheses" if key == "id_pattern" and value and not groups else ""
    kind, said = _KINDS.get(hint, (dict, "an object of texts"))
    names = tuple(value) if isinstance(value, dict) else ()
    ones = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    if not isinstance(value, kind) or not all(isinstance(one, str) for one in ones):
        return said
    if any("\0" in one for one in (*names, *ones)):
        return f"{said} without a NUL character"
    return "" if all(name and "=" not in name for name in names) else f"{said}, of which no name is empty or has a '='"


def _built(name: str, entry: Mapping[str, Any], folder: str) -> Tool:
    """Make the value of a checked entry; paths of its program are relative to ``folder``."""
    values = _tuples(entry)
    programs = [_located(word, at, folder) for at, word in enumerate(values.pop("program"))]
    env = {key: os.environ.get(key, value) for key, value in values.pop("env_default", {}).items()}
    env |= values.pop("env", {})
    files = [word for word in programs if os.path.isabs(word)] or programs
    processes = values.pop("processes", ()) or (os.path.basename(files[-1]),)
    values["options"] = Options(**_tuples(values.get("options", {})))
    return Tool(name, values.pop("title", name), tuple(programs), processes=processes, env=env, **values)


def _tuples(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}


def _located(word: str, at: int, folder: str) -> str:
    if word == _LOGIN_SHELL:
        return _login_shell()
    if at == 0:
        word = os.path.expanduser(word)
    beside = os.path.normpath(os.path.join(folder, word))
    return beside if folder and ((at == 0 and "/" in word) or os.path.isfile(beside)) else word


def _login_shell() -> str:
    shell = os.environ.get("SHELL", "")
    if not os.access(shell, os.X_OK):
        with contextlib.suppress(KeyError):  # no entry in the user database, as in many containers
            shell = pwd.getpwuid(os.getuid()).pw_shell
    return shell or "/bin/sh"


def _hint(word: str, known: Mapping[str, object]) -> str:
    near = difflib.get_close_matches(word, known, n=1)
    return f"did you mean {near[0]!r}? " if near else ""


def find(tool: Tool) -> str | None:
    """The path of the tool's program: on PATH, else in one of its known places."""
    for place in (tool.programs[0], *map(os.path.expanduser, tool.places)):
        if found := shutil.which(place, path=tool.env.get("PATH")):
            return found
    return None


def command_line(tool: Tool, arguments: Sequence[str]) -> tuple[str, ...]:
    """The whole argv of a start of the tool.

    Raises:
        UsageMistake: it is not installed; the text says where it was looked for.
    """
    if program := find(tool):
        return (program, *tool.programs[1:], *arguments)
    if "/" in tool.programs[0] and os.path.isfile(tool.programs[0]):
        raise UsageMistake(f"{tool.programs[0]} may not be executed: chmod +x it, or give what runs it as 'program'")
    looked = tool.programs[0] if "/" in tool.programs[0] else f"{tool.programs[0]} on PATH"
    raise UsageMistake(
        f"{tool.title} is not installed, looked for {', '.join((looked, *tool.places))}: install it, or give its path "
        f"as 'program' of {tool.name!r} in tools.json in the root of the registry, or in the file of ${CONFIG_VARIABLE}"
    )
