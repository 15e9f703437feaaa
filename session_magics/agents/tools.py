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
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_type_hints

from session_magics.errors import UsageMistake

CONFIG_VARIABLE = "SESSION_MAGICS_TOOLS"
"""Names the user's file of tools; without it, ``tools.json`` in the root of the registry is read."""
PROBE_SECONDS = 5.0
"""For a program to tell its version; node-based ones take up to 2 s when the disk is cold."""
PROBE_BYTES = 16 * 1024
"""Of a program's answer: a version is in its first lines, and a program that ignores the flag may print for ever."""
PROBE_TICK = 0.05
"""Seconds between two looks whether the program has ended while a child of its holds the pipe open."""
PROBES_AT_ONCE = 8
"""A probe waits far more than it computes."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_LOGIN_SHELL = "$SHELL"


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
    """Empty: it is not asked."""
    version_pattern: str = r"\d+(?:\.\d+)+(?:[-+][0-9A-Za-z.-]+)?"
    """Finds the version in what ``version_args`` prints: group 1, or all of the match."""
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


@dataclass(frozen=True)
class Installed:
    """What was found of one tool."""

    name: str
    title: str
    path: str | None
    version: str | None


def tools(path: Path | None = None) -> Mapping[str, Tool]:
    """The known tools by name: the built-in ones and those of the user's file.

    ``path`` is the root directory of a registry. A file that ``$SESSION_MAGICS_TOOLS`` names must exist.

    Raises:
        UsageMistake: the user's file is not right; the text names file, tool and field.
    """
    known = {name: _built(name, entry, "") for name, entry in _built_in().items()}
    named = os.environ.get(CONFIG_VARIABLE)
    if not named and path is None:
        return MappingProxyType(known)
    config = Path(named).expanduser() if named else Path(path or "") / "tools.json"
    if not named and not config.exists():
        return MappingProxyType(known)
    for name, entry in _read_config(config).items():
        known[name] = _built(name, _merged(name, entry, str(config)), str(config.absolute().parent))
    return MappingProxyType(known)


def tool_named(name: str, known: Mapping[str, Tool]) -> Tool:
    """The tool of that name; UsageMistake, with the nearest name, where there is none."""
    if name in known:
        return known[name]
    raise UsageMistake(f"no tool {name[:40]!r}: {_hint(name, known)}known are {', '.join(known)}; %session tools")


@functools.cache
def _built_in() -> dict[str, dict[str, Any]]:
    text = importlib.resources.files("session_magics.agents").joinpath("tools.json").read_text("utf-8")
    entries: dict[str, dict[str, Any]] = json.loads(text)
    return {name: _over(entries.get(entry.get("like", ""), {}), entry) for name, entry in entries.items()}


def _read_config(config: Path) -> dict[str, Any]:
    try:
        if not config.is_file():
            raise UsageMistake(f"{config}: no such file; correct ${CONFIG_VARIABLE}, or unset it")
        entries = json.loads(config.read_text("utf-8"))
    except OSError as error:
        raise UsageMistake(f"{config}: {error.strerror or error}") from None
    except json.JSONDecodeError as error:
        raise UsageMistake(f"{config}: not JSON, line {error.lineno}: {error.msg}") from None
    except (UnicodeDecodeError, RecursionError):
        raise UsageMistake(f"{config}: not JSON: it has to be UTF-8 text of moderate depth") from None
    if not isinstance(entries, dict):
        raise UsageMistake(f'{config}: has to be an object of tools, such as {{"demo": {{"program": ["./agent"]}}}}')
    return entries


def _merged(name: str, entry: object, config: str) -> dict[str, Any]:
    """The user's entry over the built-in one that it is like, or whose name it has."""
    if not _NAME.fullmatch(name):
        raise UsageMistake(f"{config}: tool {name[:40]!r}: a name has letters, digits, '.', '_' and '-', at most 64")
    if not isinstance(entry, dict):
        raise UsageMistake(f'{config}: tool {name!r} has to be an object, such as {{"like": "claude"}}')
    base = entry.get("like", name)
    if "like" in entry and (not isinstance(base, str) or base not in _built_in()):
        hint = _hint(str(base), _built_in())
        raise UsageMistake(
            f"{config}: tool {name!r}: 'like' has to name a built-in tool: {hint}there are {', '.join(_built_in())}"
        )
    inherited = dict(_built_in().get(base, {}))
    if not inherited and not entry.get("program"):
        raise UsageMistake(f"{config}: tool {name!r} has no 'program': give one, or 'like' with a built-in tool")
    if "program" in entry:  # another program is found elsewhere, and its process has another name
        inherited = {key: value for key, value in inherited.items() if key not in ("places", "processes")}
    if "like" in entry and base != name:
        inherited.pop("title", None)
    return _over(inherited, _checked(entry, Tool, f"{config}: tool {name!r}: "))


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
        if key == "program" and isinstance(value, str):
            checked[key] = value = [value]
        if fields[key] is Options and isinstance(value, dict):
            checked[key] = _checked(value, Options, f"{where}{key}: ")
        elif wanted := _unfit(fields[key], value):
            raise UsageMistake(f"{where}field {key!r} has to be {wanted}")
        if key.endswith("_pattern"):
            _check_pattern(key, value, where)
    if checked.get("program") == [] or checked.get("program", [" "])[0] == "":
        raise UsageMistake(f"{where}field 'program' has to begin with a program")
    return checked


def _unfit(hint: object, value: object) -> str:
    """What a value of that type has to be, if this one is not."""
    if hint is str:
        return "" if isinstance(value, str) else "text"
    if hint is bool:
        return "" if isinstance(value, bool) else "true or false"
    sort, said = (list, "a list of texts") if hint == tuple[str, ...] else (dict, "an object of texts")
    ones = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return "" if isinstance(value, sort) and all(isinstance(one, str) for one in ones) else said


def _check_pattern(key: str, value: str, where: str) -> None:
    try:
        groups = re.compile(value).groups
    except re.error as error:
        raise UsageMistake(f"{where}field {key!r} is no regular expression: {error}") from None
    if value and key == "id_pattern" and groups < 1:
        raise UsageMistake(f"{where}field {key!r} has to have the id in parentheses")


def _built(name: str, entry: Mapping[str, Any], folder: str) -> Tool:
    """Make the value of a checked entry; paths in ``program`` are relative to ``folder``."""
    values = _tuples(entry)
    programs = [_located(word, at, folder) for at, word in enumerate(values.pop("program"))]
    default = values.pop("env_default", {})
    env = {key: os.environ.get(key, value) for key, value in default.items()} | values.pop("env", {})
    files = [word for word in programs if os.path.isabs(word)] or programs
    processes = values.pop("processes", ()) or (os.path.basename(files[-1]),)
    options = Options(**_tuples(values.pop("options", {})))
    title = values.pop("title", name)
    return Tool(name, title, tuple(programs), processes=processes, env=env, options=options, **values)


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


def _hint(word: str, known: Sequence[str] | Mapping[str, object]) -> str:
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
    program = find(tool)
    if program is not None:
        return (program, *tool.programs[1:], *arguments)
    looked = "" if "/" in tool.programs[0] else "on PATH"
    places = ", ".join(filter(None, (looked, *tool.places)))
    raise UsageMistake(
        f"{tool.title} is not installed: no program {tool.programs[0]!r}"
        + (f" ({places})" if places else "")
        + f"; install it, or name its path as 'program' of {tool.name!r} in the file of ${CONFIG_VARIABLE}"
    )


def installed(known: Mapping[str, Tool]) -> list[Installed]:
    """Look for all the tools at once, and ask those that are there for their versions."""

    def look(tool: Tool) -> Installed:
        path = find(tool)
        return Installed(tool.name, tool.title, path, version(tool, path) if path else None)

    with ThreadPoolExecutor(PROBES_AT_ONCE) as pool:
        return list(pool.map(look, known.values()))


def version(tool: Tool, program: str) -> str | None:
    """The version that the program tells, or None if it does not within 5 s; nothing of the probe is left running."""
    if not tool.version_args:
        return None
    output = _output([program, *tool.programs[1:], *tool.version_args], {**os.environ, **tool.env})
    match = re.search(tool.version_pattern, output)
    return match[match.lastindex or 0] if match else None


def _output(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """The first of what a command prints; "" if it fails."""
    try:
        process = subprocess.Popen(
            argv,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # away from the terminal, and a group that can be ended as a whole
        )
    except OSError:
        return ""
    assert process.stdout is not None
    with process.stdout as pipe:
        try:
            data = _read(process, pipe.fileno())
            ended = process.poll()
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):  # stuck in the kernel: nothing can be done
                process.wait(PROBE_SECONDS)
    return data.decode("utf-8", "replace") if ended in (0, None) else ""


def _read(process: subprocess.Popen[bytes], fd: int) -> bytes:
    data, deadline = b"", time.monotonic() + PROBE_SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        while len(data) < PROBE_BYTES and (left := deadline - time.monotonic()) > 0:
            over = process.poll() is not None
            if selector.select(0 if over else min(left, PROBE_TICK)):
                if not (piece := os.read(fd, PROBE_BYTES - len(data))):
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(left)
                    break
                data += piece
            elif over:
                break
    return data
