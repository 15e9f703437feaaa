"""Programs that behave as coding agents do at a terminal: boxes that ask, keys that are read one by one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

AGENT = r"""#!{python}
import os, re, select, sys, termios, time, tty

def show(*lines):
    os.write(1, ("\x1b[2J\x1b[H" + "\r\n".join(lines)).encode())

def box(command):
    show("● Bash({{}})".format(command), "", "╭" + "─" * 70 + "╮", *("│ " + line.ljust(68) + " │" for line in (
        "Bash command", "", "  " + command, "  Do what has to be done", "", "Do you want to proceed?",
        "❯ 1. Yes", "  2. Yes, and don't ask again for this", "  3. No, and tell Claude what to do differently (esc)",
    )), "╰" + "─" * 70 + "╯")

def ask(command, taken=True):
    box(command)
    key = os.read(0, 16).decode()
    if taken:
        show("got {{!r}} for {{}}".format(key, command), "")
    return key

def paint(text):
    show(text, "")

def verified(count):
    root, session = os.environ["SESSION_MAGICS_HOME"], os.environ["SESSION_MAGICS_SESSION"]
    path = os.path.join(root, "sessions", session, "approvals.jsonl")
    while not os.path.exists(path) or open(path).read().count('"kind": "outcome"') < count:
        time.sleep(0.01)

tty.setraw(0)
{body}
"""


def write_agent(directory: Path, body: str, name: str = "claude") -> Path:
    """A program of that name; ``body`` has ``ask(command)``, ``box(command)`` and ``show(*lines)``.

    And ``verified(count)``, which waits until the approver has seen what became of so many answers.
    """
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text(AGENT.format(python=sys.executable, body=body))
    os.chmod(path, 0o755)
    return path
