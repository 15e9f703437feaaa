#!/usr/bin/env python3
"""A coding agent that follows a script: it looks and asks as the real ones do, and needs no model, network or key.

python3 demo_agent.py "plot the data"
python3 demo_agent.py --script fix
python3 demo_agent.py --resume ID

What it says is written down below; what it does is real: it asks first, then writes files and runs commands in the
directory where it was started. Conversations are kept there, in `.demo-agent/`.
"""

from __future__ import annotations

import argparse
import codecs
import contextlib
import dataclasses
import difflib
import getpass
import json
import math
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import termios
import time
import tty
import unicodedata
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

VERSION = "1.0.0 (Demo agent)"
HOME = Path(".demo-agent")
TICK = 0.12  # seconds between two turns of the spinner
WORD = 0.05  # seconds between two words
ESCAPE = 0.05  # seconds until an escape byte is the key and not the begin of one
TWICE = 2.0  # seconds within which a second Ctrl-C leaves
SHOWN = 10  # lines of a file or an output that are shown
TOKENS = 37  # tokens a second, for the spinner
GLYPHS = "·✢✳✶✻✽✻✶✳✢"
ALWAYS_EDIT = "Yes, allow all edits during this session (shift+tab)"
NEVER = "No, and tell Claude what to do differently (esc)"
INTERRUPTED = "Interrupted · What should Demo do instead?"
SHORTCUTS = "esc to interrupt · ctrl+c twice to leave · /exit to leave"
RESET, BOLD, DIM, RED, GREEN, ORANGE, BLUE, CYAN = (f"\x1b[{n}m" for n in ("0", "1", "2", "31", "32", "33", "34", "36"))
KEYS = {"\r": "Enter", "\n": "Enter", "\x7f": "Backspace", "\b": "Backspace", "\x03": "C-c", "\x04": "C-d"}
KEYS |= {"\x1b": "Esc", "\x1b[A": "Up", "\x1bOA": "Up", "\x1b[B": "Down", "\x1bOB": "Down", "\x1b[Z": "S-Tab"}
CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
KEY = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|\x1b(?![\[O])|[^\x1b]")


class Stopped(Exception):
    """The person refused or interrupted what was being done."""


class Failed(Exception):
    """A step of the task went wrong."""


# ---- text on the screen


def width(text: str) -> int:
    """Columns that a text takes, colours left out."""
    return sum(1 + (unicodedata.east_asian_width(char) in "WF") for char in re.sub(r"\x1b\[[0-9;]*m", "", text))


def wrap(text: str, columns: int) -> list[str]:
    """The lines of a text, broken at a blank where they are too long."""
    lines = []
    for line in text.expandtabs(4).split("\n"):
        while width(line) > columns:
            end = max(1, next(n for n in range(len(line), -1, -1) if width(line[:n]) <= columns))
            cut = line.rfind(" ", 1, end + 1)
            cut = cut if line[:cut].strip() else -1
            lines.append(line[: cut if cut > 0 else end])
            line = line[cut + 1 if cut > 0 else end :]
        lines.append(line.rstrip())
    return lines


def boxed(lines: Sequence[str], columns: int, colour: str = "") -> list[str]:
    """Lines in a frame of this width."""
    edge, inner = f"{colour}│{RESET}", columns - 4
    rows = [f"{edge} {line}{' ' * (inner - width(line))} {edge}" for line in lines]
    return [f"{colour}╭{'─' * (inner + 2)}╮{RESET}", *rows, f"{colour}╰{'─' * (inner + 2)}╯{RESET}"]


def render(kind: str, text: str, columns: int) -> list[str]:
    """The lines of one entry of the conversation."""
    first, rest, colour = {
        "you": ("> ", "  ", DIM),
        "say": ("● ", "  ", ""),
        "tool": (f"{GREEN}●{RESET} ", "  ", BOLD),
        "result": ("  └  ", "     ", ""),
        "error": ("  └  ", "     ", RED),
        "diff": ("     ", "     ", ""),
        "plain": ("", "", ""),
    }[kind]
    lines = wrap(text, columns - width(first))
    if kind == "diff":
        lines = [f"{ {'+': GREEN, '-': RED}.get(line[5:6], '') }{line}{RESET}" for line in lines]
    if kind == "say":
        lines = [re.sub("`([^`]+)`", rf"{CYAN}\1{RESET}", line) for line in lines]
    rows = [f"{rest if n else first}{colour}{line}{RESET if colour else ''}" for n, line in enumerate(lines)]
    return rows if kind in ("result", "error", "diff") else ["", *rows]


def diff(old: str, new: str) -> list[str]:
    """Numbered lines of what changes, with a line before and after."""
    lines, number = [], 0
    for line in list(difflib.unified_diff(old.splitlines(), new.splitlines(), n=1, lineterm=""))[2:]:
        if line.startswith("@@"):
            number = int(re.findall(r"\+(\d+)", line)[0]) - 1
            continue
        number += line[0] != "-"
        lines.append(f"{number + (line[0] == '-'):>4} {line}")
    return lines


def shortened(lines: Sequence[str]) -> str:
    """The first lines, and how many more there are."""
    more = [f"… +{len(lines) - SHOWN} lines"] if len(lines) > SHOWN + 1 else lines[SHOWN:]
    return "\n".join([*lines[:SHOWN], *more])


class Screen:
    """The terminal: raw keys in, whole frames out. The last lines are drawn anew with each frame."""

    def __init__(self) -> None:
        self.modes = termios.tcgetattr(0)
        self.above = 0  # lines of the drawn region that are above the cursor
        self.text, self.decoder = "", codecs.getincrementaldecoder("utf-8")("replace")
        self.ready: deque[str] = deque()
        self.wake, wake_in = os.pipe()
        os.set_blocking(wake_in, False)
        signal.set_wakeup_fd(wake_in)
        for number in (signal.SIGWINCH, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._end)

    @staticmethod
    def _end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    def __enter__(self) -> Screen:
        tty.setraw(0)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError, termios.error):  # the terminal may be gone
            self.frame([], [])
            self.write("\x1b[?25h")
            termios.tcsetattr(0, termios.TCSANOW, self.modes)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows, as many at least as a frame needs."""
        columns, rows = os.get_terminal_size(1)
        return max(columns, 24), max(rows, 4)

    def write(self, text: str) -> None:
        data = text.encode()
        while data:
            data = data[os.write(1, data) :]

    def frame(self, fixed: Sequence[str], live: Sequence[str], cursor: tuple[int, int] | None = None) -> None:
        """Add lines that stay, and draw those below them anew; the cursor is shown if it has a place in them."""
        cut = max(0, len(live) - self.size[1])  # what is above the screen could not be drawn anew
        live, row = live[cut:], (cursor[0] if cursor else len(live) - 1) - cut
        up = f"\x1b[{self.above}A" if self.above else ""
        place = f"\x1b[{len(live) - 1 - row}A" if len(live) - 1 > row else ""
        place += f"\r\x1b[{cursor[1]}C\x1b[?25h" if cursor else ""
        text = "".join(f"{line}\r\n" for line in fixed) + "\r\n".join(live)
        self.write(f"\x1b[?25l\r{up}\x1b[J{text}{place}")
        self.above = max(row, 0)

    def clear(self) -> None:
        """Forget what is on the screen and above it."""
        self.write("\x1b[2J\x1b[3J\x1b[H")
        self.above = 0

    def key(self, seconds: float | None, fd: int | None = None) -> str:
        """The next key, "resize", "readable" for ``fd``, or "" when the time is over."""
        if self.ready:
            return self.ready.popleft()
        found = select.select([0, self.wake, *([] if fd is None else [fd])], [], [], seconds)[0]
        if self.wake in found:
            numbers = os.read(self.wake, 64)
            names = {int(signal.SIGWINCH): "resize", int(signal.SIGINT): "C-c"}
            self.ready += [names.get(number, "") for number in numbers]
        elif 0 in found:
            self._read()
        elif fd in found:
            return "readable"
        return self.ready.popleft() if self.ready else ""

    def _read(self) -> None:
        try:
            data = os.read(0, 4096)
        except OSError:  # the terminal was closed
            data = b""
        if not data:
            raise SystemExit(128 + signal.SIGHUP)
        self.text += self.decoder.decode(data)
        if re.search(r"\x1b([\[O][0-9;]*)?$", self.text) and select.select([0], [], [], ESCAPE)[0]:
            return  # the rest of the key's sequence is here; it is read with the next call
        keys, self.text = self.text, ""
        self.ready += [KEYS.get(key, key) for key in KEY.findall(keys) if key in KEYS or key.isprintable()]

    def secret(self, prompt: str) -> None:
        """Ask for a password as sudo does, without echo; what is typed is dropped."""
        self.frame([], [])
        termios.tcsetattr(0, termios.TCSANOW, self.modes)
        before, wake_in = signal.signal(signal.SIGINT, signal.default_int_handler), signal.set_wakeup_fd(-1)
        self.write("\x1b[?25h")
        try:
            getpass.getpass(prompt)
        except (KeyboardInterrupt, EOFError):
            raise Stopped from None
        finally:
            signal.signal(signal.SIGINT, before)
            signal.set_wakeup_fd(wake_in)
            tty.setraw(0)


# ---- the conversation and who holds it


@dataclass
class Conversation:
    """What was said, and how far the task is; kept as JSON after each step."""

    id: str
    script: str = ""
    step: int = 0
    stopped: bool = False
    allowed: list[str] = field(default_factory=list)
    entries: list[list[str]] = field(default_factory=list)

    def save(self) -> None:
        HOME.mkdir(exist_ok=True)
        path = HOME / f"{self.id}.json"
        path.with_suffix(".new").write_text(json.dumps(dataclasses.asdict(self)))
        path.with_suffix(".new").replace(path)

    @staticmethod
    def load(path: Path) -> Conversation:
        return Conversation(**json.loads(path.read_text()))


@dataclass
class Question:
    """An approval box: what would be done, and the answers to it."""

    title: str
    body: Callable[[int], list[str]]
    text: str
    always: str
    selected: int = 1

    def lines(self, columns: int) -> list[str]:
        inner = columns - 4
        options = [
            f"{BLUE if n == self.selected else ''}{'❯' if n == self.selected else ' '} {n}. {line}{RESET}"
            for n, text in enumerate(("Yes", self.always, NEVER), 1)
            for line in [text if width(text) <= inner - 5 else text[: inner - 6] + "…"]
        ]
        body = [f"{BOLD}{self.title}{RESET}", *self.body(inner), *wrap(self.text, inner), *options]
        return boxed(body, columns, BLUE)


class Agent:
    """Draws, listens, and carries out the steps of a script."""

    def __init__(self, screen: Screen, conversation: Conversation, options: argparse.Namespace) -> None:
        self.screen, self.talk = screen, conversation
        self.speed, self.seconds, self.trusted = options.speed, options.seconds, options.trusted
        self.typed, self.queue = "", deque[str]()
        self.question: Question | None = None
        self.header = self.streamed = self.doing = self.hint = ""
        self.shown = 0  # lines of what is streamed that are above the drawn region
        self.since = self.last_interrupt = -math.inf

    # ---- drawing

    def draw(self, fixed: Sequence[str] = ()) -> None:
        columns = self.screen.size[0]
        fixed, live = list(fixed), []
        if self.streamed:
            lines = render("say", self.streamed, columns)
            fixed += lines[self.shown : -1]
            self.shown = len(lines) - 1
            live += lines[-1:]
        if self.header:
            live += [*render("tool", self.header, columns), f"  └  {'Waiting…' if self.question else 'Running…'}"]
        if self.question:
            self.screen.frame(fixed, [*live, "", *self.question.lines(columns)])
            return
        if self.doing:
            spent = time.monotonic() - self.since
            tokens = f"{spent * TOKENS / 1000:.1f}k" if spent * TOKENS >= 1000 else f"{spent * TOKENS:.0f}"
            glyph = GLYPHS[int(spent / TICK) % len(GLYPHS)]
            text = f"({spent:.0f}s · ↑ {tokens} tokens · esc to interrupt)"
            live += ["", f"{ORANGE}{glyph} {self.doing}…{RESET} {DIM}{text}{RESET}"]
        tail = self.typed
        while width(tail) > columns - 7:
            tail = tail[1:]
        live += ["", *boxed([f"> {tail}"], columns, DIM), f"  {DIM}{self.hint or '? for shortcuts'}{RESET}"]
        self.screen.frame(fixed, live, (len(live) - 3, 4 + width(tail)))

    def add(self, kind: str, text: str) -> None:
        """Put an entry into the conversation and on the screen."""
        self.talk.entries.append([kind, text])
        lines = render(kind, text, self.screen.size[0])[self.shown if kind == "say" else 0 :]
        self.streamed, self.shown = "", 0
        self.draw(lines)

    def stream(self, text: str, pace: Callable[[float], object]) -> None:
        """Say a text word by word."""
        words = re.findall(r"\s*\S+", text)
        for count in range(1, len(words) + 1):
            self.streamed = "".join(words[:count])
            pace(WORD)
        self.add("say", text.rstrip())

    def redraw(self) -> None:
        """Draw all that was said, for a new size."""
        columns = self.screen.size[0]
        welcome = [f"{ORANGE}✻{RESET} Welcome to {BOLD}Demo agent{RESET}!", "", f"  {DIM}It follows a script.{RESET}"]
        welcome += [f"  {DIM}{line}{RESET}" for line in wrap(f"cwd: {Path.cwd()}", columns - 6)]
        lines = boxed(welcome, columns, ORANGE)
        for kind, text in self.talk.entries:
            lines += render(kind, text, columns)
        self.screen.clear()
        self.shown = 0
        self.draw(lines)

    # ---- keys

    def edit(self, key: str) -> str:
        """Take a key into the input box; the text that Enter sends, or nothing."""
        sent, self.hint = "", ""
        if key == "resize":
            self.redraw()
        elif key == "Enter":
            sent, self.typed = self.typed.strip(), ""
        elif key == "Backspace":
            self.typed = self.typed[:-1]
        elif key == "C-c":
            if time.monotonic() - self.last_interrupt < TWICE:
                raise SystemExit(0)
            self.typed, self.last_interrupt, self.hint = "", time.monotonic(), "Press Ctrl-C again to exit"
        elif key == "C-d" and not self.typed:
            raise SystemExit(0)
        elif key == "?" and not self.typed:
            self.hint = SHORTCUTS
        elif len(key) == 1:
            self.typed += key
        return sent

    def work(self, seconds: float, fd: int | None = None) -> bool:
        """Be busy for so long, or until ``fd`` is readable: then true. Text that is sent waits for its turn."""
        end = time.monotonic() + seconds
        while True:
            self.draw()
            key = self.screen.key(max(0.0, min(end - time.monotonic(), TICK)), fd)
            if key == "readable":
                return True
            sent = self.edit(key) if key else ""
            if sent == "/exit":
                raise SystemExit(0)
            self.queue += [sent] if sent else []
            if key in ("Esc", "C-c"):
                raise Stopped
            if not key and time.monotonic() >= end:
                return False

    def pause(self, seconds: float) -> None:
        self.work(seconds / self.speed if self.speed else 0)

    def listen(self) -> str:
        """The next message of the person."""
        while not self.queue:
            self.draw()
            sent = self.edit(self.screen.key(None))
            self.queue += [sent] if sent else []
        return self.queue.popleft()

    def ask(self, question: Question, rule: str) -> None:
        """Have the person approve, unless that was done for all of this kind."""
        if rule in self.talk.allowed or self.trusted:
            return
        self.question = question
        try:
            while True:
                self.draw()
                key = self.screen.key(None)
                step = {"Up": -1, "Down": 1}.get(key, 0)
                question.selected = (question.selected + step - 1) % 3 + 1
                answer = {"Enter": question.selected, "Esc": 3, "C-c": 3, "1": 1, "2": 2, "3": 3}.get(key, 0)
                if key == "S-Tab" and question.always == ALWAYS_EDIT:
                    answer = 2
                if key in ("resize", "C-c"):
                    self.edit(key)
                if answer:
                    break
        finally:
            self.question = None
        if answer == 2:
            self.talk.allowed.append(rule)
        if answer == 3:
            raise Stopped

    # ---- the task

    def run(self, prompt: str, script: str) -> None:
        """Talk until the person leaves."""
        self.talk.save()
        self.redraw()
        if prompt or script:
            self.hear(prompt or SCRIPTS[script][0], script)
        while True:
            if self.talk.script and not self.talk.stopped:
                self.perform()
            message = self.listen()
            if message == "/exit":
                return
            self.hear(message)

    def hear(self, message: str, script: str = "") -> None:
        """Take a message of the person as a new task, or as leave to go on without what was refused."""
        self.add("you", message)
        named = script or next((name for name in SCRIPTS if name in message.lower()), "")
        if named:
            self.talk.script, self.talk.step, self.talk.stopped = named, 0, False
        elif self.talk.script:
            self.add("say", "All right, I leave that out and go on.")
            self.talk.step, self.talk.stopped = self.talk.step + 1, False
        else:
            self.add("say", f"I am a demo and only know these tasks: {', '.join(SCRIPTS)}. Name one of them.")
        self.talk.save()

    def perform(self) -> None:
        """Do the steps of the task that are not done yet."""
        talk, (_, *steps) = self.talk, SCRIPTS[self.talk.script]
        self.doing, self.since = "Thinking", time.monotonic()
        try:
            while talk.step < len(steps):
                steps[talk.step](self)
                talk.step += 1
                talk.save()
            talk.script = ""
        except Stopped:
            if self.streamed:
                self.add("say", self.streamed)
            if self.header:
                finish(self, "error", INTERRUPTED)
            else:
                self.add("error", INTERRUPTED)
            talk.stopped = True
        except (Failed, OSError, UnicodeError) as failed:
            talk.script = ""
            self.add("say", f"The task failed: {failed}.")
            raise SystemExit(1) from None
        finally:
            self.doing = self.header = ""
            talk.save()

    def command(self, text: str) -> tuple[int, str]:
        """Run a command in the shell; its status and output."""
        # A group of its own, so that Esc ends all of it.
        pipe = subprocess.PIPE
        with subprocess.Popen(
            text, shell=True, stdin=subprocess.DEVNULL, stdout=pipe, stderr=subprocess.STDOUT, process_group=0
        ) as child:
            assert child.stdout is not None
            output, fd = b"", child.stdout.fileno()
            try:
                while self.work(math.inf, fd) and (data := os.read(fd, 65536)):
                    output += data
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
                raise
        return child.returncode, CONTROL.sub("", output.decode(errors="replace")).rstrip()


# ---- steps of which scripts are made

Step = Callable[[Agent], None]


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
        say("The plot is ready: a bar for each month is in `plot.png`, and `analysis.py` draws it anew."),
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


# ---- the command line


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0], allow_abbrev=False)
    parser.add_argument("prompt", nargs="?", default="", help="what to do")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--session-id", metavar="UUID", type=uuid.UUID, help="begin a conversation with this id")
    which.add_argument("-r", "--resume", metavar="UUID", help="go on with a conversation")
    which.add_argument("-c", "--continue", dest="latest", action="store_true", help="go on with the latest one")
    parser.add_argument("--script", choices=SCRIPTS, default="", help="which task, whatever the prompt says")
    parser.add_argument("--speed", metavar="N", type=float, default=1.0, help="2 is twice as fast, 0 never pauses")
    parser.add_argument("--seconds", metavar="N", type=float, default=20.0, help="how long chatty streams")
    parser.add_argument("--dangerously-skip-permissions", dest="trusted", action="store_true", help="ask nothing")
    parser.add_argument("-v", "--version", action="version", version=VERSION)
    return parser.parse_args()


def conversation(options: argparse.Namespace) -> Conversation:
    """The conversation that the command line names, or a new one."""
    kept = sorted(HOME.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    if options.latest and kept:
        return Conversation.load(kept[-1])
    if options.resume:
        found = [path for path in kept if path.stem == options.resume]
        if not found:
            sys.exit(f"No conversation found with session ID: {options.resume}")
        return Conversation.load(found[0])
    new = str(options.session_id or uuid.uuid4())
    if (HOME / f"{new}.json").exists():
        sys.exit(f"Error: Session ID {new} is already in use.")
    return Conversation(new)


def main() -> int:
    options = arguments()
    if not (os.isatty(0) and os.isatty(1)):
        sys.exit("The demo agent needs a terminal.")
    with contextlib.suppress(OSError):
        Path("/proc/self/comm").write_text(Path(__file__).name)  # the name by which `ps` and others know it
    talk = conversation(options)
    with Screen() as screen:
        Agent(screen, talk, options).run(options.prompt, options.script)
    return 0


if __name__ == "__main__":
    sys.exit(main())
