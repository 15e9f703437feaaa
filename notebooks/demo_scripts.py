"""What the demo agent does: scripts, and the steps of which they are made."""

from __future__ import annotations

import getpass
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from demo_screen import DIM, RESET, Question, boxed, diff, shortened, wrap

if TYPE_CHECKING:
    from demo_agent import Agent

ALWAYS_EDIT = "Yes, allow all edits during this session (shift+tab)"


class Failed(Exception):
    """A step of the task went wrong."""


Step = Callable[["Agent"], None]


def think(seconds: float) -> Step:
    return lambda agent: agent.pause(seconds)


def say(text: str) -> Step:
    return lambda agent: agent.stream(text, agent.pause)


def chatter(agent: Agent) -> None:
    """Stream for as long as the command line says, whatever the speed."""
    end = time.monotonic() + agent.seconds
    while time.monotonic() < end:
        agent.stream("I compare the `rows` one by one, and write down what differs between them. " * 2, agent.work)


def quote(path: str) -> Step:
    """Print a file as it stands."""
    return lambda agent: agent.add("plain", Path(path).read_text().rstrip())


def given(path: str, text: str) -> Step:
    """Have a file there that the person would have had."""

    def step(_: Agent) -> None:
        if not Path(path).exists():
            Path(path).write_text(text)

    return step


def bash(command: str, why: str, *, ask: bool = True, real: bool = True, secret: bool = False) -> Step:
    def step(agent: Agent) -> None:
        program = shlex.split(command)[0]
        agent.header = f"Bash({command})"

        def body(columns: int) -> list[str]:
            return ["", *(f"  {line}" for line in wrap(command, columns - 2)), f"  {DIM}{why}{RESET}", ""]

        always = f"Yes, and don't ask again for {program} commands in {Path.cwd()}"
        if ask:
            agent.ask(Question("Bash command", body, "Do you want to proceed?", always), program)
        if secret:
            agent.screen.secret(f"[sudo] password for {getpass.getuser()}: ")
        status, output = agent.command(command) if real else (0, "Not run: this demo only asks.")
        agent.pause(0.5)
        finish(agent, "error" if status else "result", shortened(output.split("\n")) or "(No content)")
        if status:
            raise Failed(f"`{command}` exited {status}")

    return step


def read(path: str) -> Step:
    def step(agent: Agent) -> None:
        agent.header = f"Read({path})"
        agent.pause(0.5)
        finish(agent, "result", f"Read {len(Path(path).read_text().splitlines())} lines")

    return step


def write(path: str, text: str) -> Step:
    def step(agent: Agent) -> None:
        lines = [f"{n:>4} {line}" for n, line in enumerate(text.splitlines(), 1)]
        change(agent, "Write", path, text, lines, f"Wrote {len(lines)} lines to {path}")

    return step


def replace(path: str, old: str, new: str) -> Step:
    def step(agent: Agent) -> None:
        before = Path(path).read_text()
        if old not in before:
            raise Failed(f"`{path}` has changed")
        after = before.replace(old, new, 1)
        change(agent, "Update", path, after, diff(before, after), f"Updated {path}")

    return step


def change(agent: Agent, tool: str, path: str, text: str, lines: list[str], done: str) -> None:
    """Write a file after the person saw how it will be."""
    agent.header = f"{tool}({path})"
    new = not Path(path).exists()

    def body(columns: int) -> list[str]:
        return boxed([path, "", *wrap("\n".join(lines), columns - 4)], columns, DIM)

    asked = f"Do you want to {'create' if new else 'make this edit to'} {path}?"
    agent.ask(Question("Create file" if new else "Edit file", body, asked, ALWAYS_EDIT), "edit")
    Path(path).write_text(text)
    finish(agent, "result", done)
    agent.add("diff", shortened(lines))


def finish(agent: Agent, kind: str, text: str) -> None:
    """Tell what came of a tool."""
    header, agent.header = agent.header, ""
    agent.add("tool", header)
    agent.add(kind, text)


# Both are short enough that a terminal of 24x80 shows the whole of them in a question.
DATA = "day,sales\nMon,80\nTue,95\nWed,120\nThu,110\nFri,160\nSat,185\nSun,60\n"
ANALYSIS = r"""import struct, zlib
sales = [int(row[4:]) for row in open("data.csv").readlines()[1:]]
def line(y, blue=b"\x1f\x77\xb4", white=b"\xff\xff\xff"):
    bars = [(blue if y < n else white) * 44 for n in sales]
    return b"\0" + b"".join(bar + white * 16 for bar in bars)
def box(kind, data):
    check = struct.pack(">I", zlib.crc32(kind + data))
    return struct.pack(">I", len(data)) + kind + data + check
size = struct.pack(">IIBBBBB", 60 * len(sales), 200, 8, 2, 0, 0, 0)
rows = zlib.compress(b"".join(map(line, range(200, 0, -1))))
png = box(b"IHDR", size) + box(b"IDAT", rows) + box(b"IEND", b"")
open("plot.png", "wb").write(b"\x89PNG\r\n\x1a\n" + png)
print(f"mean {sum(sales) / len(sales):.1f}; saved ./plot.png")
"""
STATS = """def mean(values):
    total = 0
    for value in values:
        total += value
    return total / (len(values) - 1)


print(mean([2, 4, 6]))
"""
README = """# How the agent asks

╭──────────────────────────────────────────────────────────────╮
│ Bash command                                                 │
│                                                              │
│   make all                                                   │
│   Build it                                                   │
│                                                              │
│ Do you want to proceed?                                      │
│ ❯ 1. Yes                                                     │
│   2. Yes, and don't ask again for make commands in /project  │
│   3. No, and tell Claude what to do differently (esc)        │
╰──────────────────────────────────────────────────────────────╯

End of the README.
"""
SCRIPTS: dict[str, tuple[str, *tuple[Step, ...]]] = {
    "plot": (
        "Plot the data.",
        think(2),
        say("I look at what is here first."),
        bash("ls -a", "List the directory", ask=False),
        say("There are no data yet, so I begin with some, and then write the program that draws them."),
        write("data.csv", DATA),
        write("analysis.py", ANALYSIS),
        think(1),
        bash("python3 analysis.py", "Draw the plot"),
        say("The plot is ready: a bar for each day is in `plot.png`, and `analysis.py` draws it anew."),
    ),
    "fix": (
        "Fix the mean in stats.py.",
        given("stats.py", STATS),
        think(2),
        read("stats.py"),
        say("The sum is divided by one value too few. I change `mean`, and run it."),
        replace("stats.py", "(len(values) - 1)", "len(values)"),
        bash("python3 stats.py", "Run the mean of 2, 4, 6"),
        say("The mean is right now: it is `4.0`."),
    ),
    "danger": (
        "Make room on the danger zone of the disk.",
        think(1),
        say("The disk is nearly full. I remove what takes most of it."),
        bash("rm -rf ~/*", "Free disk space", real=False),
        say("That was the `danger` script: nothing was removed."),
    ),
    "password": (
        "Install gnuplot; use the password.",
        think(1),
        bash("sudo apt-get install gnuplot", "Install gnuplot", real=False, secret=True),
        say("That was the `password` script: nothing was installed."),
    ),
    "chatty": ("Be chatty.", chatter, say("That is all there is to say.")),
    "quote": (
        "Quote the README.",
        given("README.md", README),
        read("README.md"),
        quote("README.md"),
        think(4),
        say("The box above is a quotation: nobody asked anything."),
    ),
}
