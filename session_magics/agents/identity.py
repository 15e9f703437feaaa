"""Which program a terminal's keys go to: the names of its foreground process group.

Linux answers from /proc, macOS through ``ps``. A screen can show anything; this is what says who has drawn it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence

from session_magics.holder import processes
from session_magics.holder.processes import ProcessEntry

INTERPRETERS = re.compile(r"(?:node|nodejs|bun|deno|ruby|pypy3?|python)(?:[0-9.]*)")
"""Programs that are known by the script they run."""
LAUNCHERS = re.compile(r"(?:ba|z|da|k|fi)?sh|env|npx?|pnpm|uvx?|pipx|script|timeout|nice|nohup")
"""Programs that start another one and only wait for it; a group that they lead is known by what is below them."""
SCRIPT_SUFFIX = re.compile(r"\.(?:py|pyz|js|mjs|cjs|ts)$")
TAKES_VALUE = frozenset({"-W", "-X", "-r", "--require", "--import", "--loader"})
"""Switches of interpreters of which the next word is no script."""
RUNS_TEXT = frozenset({"-c", "-e", "-p", "--eval", "--print", "-"})
"""Switches behind which comes a program's text, or nothing; what follows is no script's name."""


def foreground(pid: int) -> tuple[str, ...] | None:
    """The names of the programs that have the terminal of the process; None if that cannot be told.

    They are those of the group's leader. Where that is a launcher (``sh -c``, ``npx``), its children's in the group
    count instead, or all of the group's if it has ended.
    """
    one = processes.entry(pid)
    if one is None or one.gone or one.tpgid <= 0:
        return None
    everyone = processes.table()
    group = {entry.pid: entry for entry in everyone.values() if entry.pgid == one.tpgid and not entry.gone}
    found = [name for member in speakers(group, one.tpgid, names) for name in names(member)]
    return tuple(dict.fromkeys(found)) or None


def speakers(group: dict[int, ProcessEntry], leader: int, named: Callable[[int], Sequence[str]]) -> list[int]:
    """Those of a process group that count as its programs: the leader, or what it has launched."""
    if leader not in group:
        return list(group)
    todo, found = [leader], []
    while todo:
        pid = todo.pop(0)
        below = [entry.pid for entry in group.values() if entry.ppid == pid and entry.pid != pid]
        if below and any(LAUNCHERS.fullmatch(name) for name in named(pid)):
            todo += below
        else:
            found.append(pid)
    return found


def names(pid: int) -> tuple[str, ...]:
    """The names by which a process may be known; empty if it is gone or may not be looked at."""
    if sys.platform != "linux":
        words = processes.ps("-ww", "-p", str(pid), "-o", "command=").decode("utf-8", "replace").split()
        return names_of("", words)
    try:
        raw = processes.read_file(f"/proc/{pid}/cmdline")
        image = os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    except OSError:
        return ()
    return names_of(image, raw.decode("utf-8", "replace").removesuffix("\0").split("\0"))


def names_of(image: str, argv: Sequence[str]) -> tuple[str, ...]:
    """The names that follow from a program's path and its arguments.

    >>> names_of("/usr/bin/node", ["node", "--no-warnings", "/opt/bin/gemini"])
    ('node', 'gemini')
    >>> names_of("/usr/bin/python3.12", ["python", "/opt/agent.py"])
    ('python3.12', 'python', 'agent.py', 'agent')
    """
    own = [os.path.basename(image)]
    if argv and argv[0]:
        first = argv[0].split()[0] if argv[0].strip() else ""  # a title that a program has given itself
        own.append(os.path.basename(first).lstrip("-"))
    found = [name for name in own if name]
    if any(INTERPRETERS.fullmatch(name) for name in found):
        script = os.path.basename(_script(argv[1:]))
        found += [name for name in (script, SCRIPT_SUFFIX.sub("", script)) if name]
    return tuple(dict.fromkeys(found))


def _script(words: Sequence[str]) -> str:
    """The script among an interpreter's arguments, or the module behind ``-m``; empty if it runs none."""
    rest = iter(words)
    for word in rest:
        if word in RUNS_TEXT:
            return ""
        if word in TAKES_VALUE:
            next(rest, "")
        elif not word.startswith("-"):
            return word
    return ""
