"""What the demo agent shows on its terminal: text, boxes, a region that is drawn anew, and keys."""

from __future__ import annotations

import codecs
import contextlib
import difflib
import getpass
import os
import re
import select
import signal
import termios
import tty
import unicodedata
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

ESCAPE = 0.05  # seconds until an escape byte is the key and not the begin of one
SHOWN = 10  # lines of a file or an output that are shown
NEVER = "No, and tell Claude what to do differently (esc)"
RESET, BOLD, DIM, RED, GREEN, ORANGE, BLUE, CYAN = (f"\x1b[{n}m" for n in ("0", "1", "2", "31", "32", "33", "34", "36"))
KEYS = {"\r": "Enter", "\n": "Enter", "\x7f": "Backspace", "\b": "Backspace", "\x03": "C-c", "\x04": "C-d"}
KEYS |= {"\x1b": "Esc", "\x1b[A": "Up", "\x1bOA": "Up", "\x1b[B": "Down", "\x1bOB": "Down", "\x1b[Z": "S-Tab"}
CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f]")
KEY = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|\x1b(?![\[O])|[^\x1b]")


class Stopped(Exception):
    """The person refused or interrupted what was being done."""


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
