"""Pages of the system's manual as clean text."""

from __future__ import annotations

import functools
import os
import re
import signal
import subprocess

from session_magics.text import plain

TIME_LIMIT = 4.0
"""Seconds for one page: the longest ones take a third of a second, on a slow machine more."""
WIDTH = 80
"""Columns of a page: what a tooltip and the line of a notebook hold."""
SECTIONS = "1:8:6:7:5"
"""Where commands are described; what functions of C do is not what a shell calls."""
PAGES_KEPT = 32
FIRST_LINES = 40
"""Lines of the beginning of a page: what a tooltip shows without being scrolled far."""
FIRST_SECTIONS = ("NAME", "SYNOPSIS", "DESCRIPTION")
PAGE_NAME = re.compile(r"[A-Za-z0-9_:.\[+][A-Za-z0-9_:.+@-]*")


@functools.lru_cache(maxsize=PAGES_KEPT)
def page(name: str, folder: str = "") -> str:
    """A page of the manual, of those in ``folder`` if told; LookupError if there is none, or none in time."""
    if not PAGE_NAME.fullmatch(name):
        raise LookupError(name)
    argv = ["man", *(["-M", folder] if folder else []), "-S", SECTIONS, "--", name]
    usual = {"MANPAGER": "cat", "PAGER": "cat", "MANWIDTH": str(WIDTH), "TERM": "dumb"}
    environment = {key: value for key, value in os.environ.items() if key not in ("MANOPT", "MAN_KEEP_FORMATTING")}
    data = _output(argv, {**environment, **usual})
    text = re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+$", "", plain(data), flags=re.M)).strip("\n")
    if not text:
        raise LookupError(name)
    return text


def _output(argv: list[str], environment: dict[str, str]) -> bytes:
    """What a command prints; nothing where it is missing, fails or takes too long."""
    quiet = subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            argv, stdin=quiet, stdout=subprocess.PIPE, stderr=quiet, env=environment, start_new_session=True
        )
    except OSError:
        return b""
    with process:
        try:
            data, _ = process.communicate(timeout=TIME_LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # man has started a row of programs
            return b""
    return data if process.returncode == 0 else b""


def beginning(text: str) -> str:
    """NAME, SYNOPSIS and the beginning of DESCRIPTION; of a page that has none of them, its first lines."""
    lines = [line for name, lines in _sections(text) if name in FIRST_SECTIONS for line in (name, *lines)]
    lines = lines or text.splitlines()
    return "\n".join([*lines[:FIRST_LINES], *(["       …"] if len(lines) > FIRST_LINES else [])]).rstrip()


def option(text: str, flag: str) -> str:
    """What a page says about an option: the paragraph that begins with it; "" if there is none."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        names = re.split(r"\s{2,}", line.strip())[0]
        if names[:1] == "-" and flag in re.findall(r"(?<![\w-])--?[\w?#@][\w-]*", names):
            depth = len(line) - len(line.lstrip())
            end = at + 1
            while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > depth):
                end += 1
            return "\n".join(lines[at : min(end, at + FIRST_LINES)]).rstrip()
    return ""


def _sections(text: str) -> list[tuple[str, list[str]]]:
    """The parts of a page, each with its heading; what stands before the first one is left out."""
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines()[1:]:
        if line[:1].strip() and line == line.upper():
            found.append((line.strip(), []))
        elif found:
            found[-1][1].append(line)
    return found
