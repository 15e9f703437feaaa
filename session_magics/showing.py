"""Displays from a shell: its functions ``display``, ``displayHTML`` and ``displayJS``, and what they say.

Each takes data on its standard input and may be given an id, by which a later one takes an earlier one's place.
The data goes into a file of the session's directory, and a control string into the terminal, so that its place in the
output is exact. The string has the file's name, which nobody can guess: whoever prints such a string without having
made the file shows nothing.
"""

from __future__ import annotations

import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

FUNCTIONS_FILE = "functions"
"""In the session's directory: what the holder gives the shell at each start."""
SCRIPT_FILE = "show"
DATA_LIMIT = 32 * 1024 * 1024
"""Bytes of one display: as much as a page takes, and a notebook can be saved with."""
WAITING_LIMIT = 256
"""Displays that wait to be shown: where no cell looks, such as between cells, a program may make them for ever."""
WAITING_MINUTES = 1
"""Minutes after which one may go to make room; a cell that runs shows them in less than a second."""
KINDS = {"display": "image", "displayHTML": "html", "displayJS": "javascript"}
_SCRIPT = rf"""# session-magics: spools standard input for a display. Arguments: terminal, function, id.
umask 077
PATH=$PATH:/usr/bin:/bin
tty=$1 name=$2 id=$3 directory=${{0%/*}} file=
tell() {{ printf '%s: %s\n' "$name" "$1" >"$tty"; [ -z "$file" ] || rm -f "$file"; exit 1; }}
[ ! -t 0 ] || tell "the data comes on standard input: $name < FILE"
case $id in *[!A-Za-z0-9_.:-]*) id="=$(printf %s "$id" | od -An -v -tx1 | tr -d ' \n')" ;; esac
[ ${{#id}} -le 200 ] || tell 'the id is longer than 200 characters'
full() {{ set -- "$directory"/{SCRIPT_FILE}.*; [ $# -ge {WAITING_LIMIT} ]; }}
full && find "$directory" -name '{SCRIPT_FILE}.*' -mmin +{WAITING_MINUTES} -exec rm -f {{}} +
full && tell 'not shown, as too many wait for a cell to show them'
trap 'rm -f "$file"; exit 130' INT TERM HUP
file=$(mktemp "$directory/{SCRIPT_FILE}.XXXXXXXXXXXX") && head -c {DATA_LIMIT + 1} >"$file" || tell 'no room'
[ "$(wc -c <"$file")" -le {DATA_LIMIT} ] || tell 'not shown, as it is more than {DATA_LIMIT >> 20} MB'
printf '\033]7788;show;%s;%s;%s\007' "$name" "${{file##*.}}" "$id" >"$tty"
"""
_FAR = "this shell runs in another place, from which only text is shown"
_POSIX = '{name}() {{ {{ {call} "${{1-}}"; }} 2>/dev/null; }}\n'
_FISH = 'function {name}; {call} "$argv[1]" 2>/dev/null; end\n'
TTY = "@TTY@"
"""In the functions, for the path of the terminal, which is only known to the holder."""


def give_functions(directory: Path, dialect: str, *, far: bool) -> None:
    """Have the shell that is started in this session's directory know the functions, now and when it is started anew.

    ``far``: it runs in another place; then they say that they show nothing.
    """
    template = _FISH if dialect == "fish" else _POSIX
    command = "command /bin/sh" if dialect == "fish" else r"\command /bin/sh"
    script = shlex.quote(str(directory / SCRIPT_FILE))
    lines = []
    for name in KINDS:
        refusal = f"{command} -c {shlex.quote(f'echo {name}: {_FAR} >{TTY}; exit 1')}"
        lines.append(template.format(name=name, call=refusal if far else f"{command} {script} {TTY} {name}"))
    if not far:
        _write(directory / SCRIPT_FILE, _SCRIPT)
    _write(directory / FUNCTIONS_FILE, "".join(lines))


def given_functions(directory: Path) -> bytes:
    """What the shell of a session was given; nothing if it was not."""
    try:
        return (directory / FUNCTIONS_FILE).read_bytes()
    except OSError:
        return b""


def _write(path: Path, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(fd, "w", encoding="utf-8") as file:
        file.write(text)


@dataclass(frozen=True)
class Mark:
    """What a function has said: its data waits in ``file``."""

    name: str
    file: str
    id: str


_BEGIN = b"\x1b]7788;show;"
_MARK = re.compile(re.escape(_BEGIN) + rb"([A-Za-z]{1,16});([A-Za-z0-9]{12});([A-Za-z0-9_.:=-]{0,200})\x07")
_LONGEST = len(_BEGIN) + 16 + 12 + 200 + 3


class Marks:
    """Parts output into text and marks, however it is cut into pieces. What is not whole is text."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> list[bytes | Mark]:
        """The text and the marks that are certain now, in order."""
        data = self._held + data
        if b"\x1b" not in data:
            self._held = b""
            return [data]
        parts: list[bytes | Mark] = []
        at = 0
        for found in _MARK.finditer(data):
            name, file, id = (group.decode() for group in found.groups())
            if name in KINDS:
                parts += [data[at : found.start()], Mark(name, file, id)]
                at = found.end()
        keep = self._unfinished(data, at)
        self._held = data[keep:]
        return [*parts, data[at:keep]]

    def copy(self) -> Marks:
        """Another one that goes on from here."""
        other = Marks()
        other._held = self._held
        return other

    def rest(self) -> bytes:
        """What was held back, as nothing comes any more."""
        held, self._held = self._held, b""
        return held

    def _unfinished(self, data: bytes, at: int) -> int:
        """From where on the data may be the beginning of a mark."""
        start = data.rfind(b"\x1b", max(at, len(data) - _LONGEST))
        if start < 0:
            return len(data)
        last = data[start:]
        maybe = _BEGIN.startswith(last) or (last.startswith(_BEGIN) and b"\x07" not in last)
        return start if maybe else len(data)


def fetch(directory: Path, mark: Mark) -> bytes | None:
    """The data of a mark, once: its file is removed. None if there is none, or it is not ours."""
    path = directory / f"{SCRIPT_FILE}.{mark.file}"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            data = file.read(DATA_LIMIT + 1)
        os.unlink(path)
    except OSError:
        return None
    return data if len(data) <= DATA_LIMIT else None
