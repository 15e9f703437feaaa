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
import contextlib
import dataclasses
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from demo_screen import (
    BOLD,
    CONTROL,
    DIM,
    ORANGE,
    RESET,
    Question,
    Screen,
    Stopped,
    boxed,
    render,
    width,
    wrap,
)
from demo_scripts import ALWAYS_EDIT, SCRIPTS, Failed, finish

VERSION = "1.0.0 (Demo agent)"
HOME = Path(".demo-agent")
TICK = 0.12  # seconds between two turns of the spinner
WORD = 0.05  # seconds between two words
TWICE = 2.0  # seconds within which a second Ctrl-C leaves
TOKENS = 37  # tokens a second, for the spinner
GLYPHS = "·✢✳✶✻✽✻✶✳✢"
INTERRUPTED = "Interrupted · What should Demo do instead?"
SHORTCUTS = "esc to interrupt · ctrl+c twice to leave · /exit to leave"


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
