r"""What is there to be checked: the last command of a shell session, and the files where it ran.

Files of a session on this machine are looked at from here, also when its shell has ended. Those of a session elsewhere
are looked at by a hidden command in its shell, which reports records as ``variables.query`` does: for every path
``kind<TAB>x`` and the content (of what is missing: the names that are there instead), in the end the user's home and
the present directory.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from session_magics import text, variables
from session_magics.errors import SessionError
from session_magics.log import Event, EventReader
from session_magics.model import CellResult
from session_magics.run import run_hidden
from session_magics.session import Session
from session_magics.variables import RECORD, ShellValue, quoted

OUTPUT_BYTES = 2_000_000
"""Bytes of the output that are looked at, from its end: as many as a cell shows."""
CONTENT_BYTES = 256 * 1024
"""Bytes of a file that are looked at, from its beginning: exercises write small files."""
MOST_NAMES = 300
"""Names of a directory that are asked for elsewhere, to find one that is nearly the missing one."""


@dataclass(frozen=True)
class Found:
    """What a path leads to."""

    kind: str
    """file, directory, other, or "" for nothing."""
    executable: bool = False
    content: str = ""
    names: tuple[str, ...] = ()
    """Of what is missing: the names in the directory where it should be."""


@dataclass(frozen=True)
class Evidence:
    """The last command of a session, how it ended, and what there is after it."""

    status: int
    output: str
    """Plain text."""
    command: str
    """Its text; the first line alone where another program ran it."""
    cwd: str
    real_cwd: str = ""
    """The same without symbolic links."""
    home: str = ""
    files: Mapping[str, Found] | None = None
    values: Mapping[str, ShellValue] | None = None


class NothingYet(Exception):
    """There is no command whose end could be checked; the text says why, in a clause."""


def collect(session: Session, files: Iterable[str], names: Sequence[str], last: CellResult | None = None) -> Evidence:
    """Read all of it. ``last``: the newest result that this process has of the session, for the command's whole text.

    Raises NothingYet, SessionError.
    """
    begin, end = _last(session)
    info = session.info()
    start, status, cwd = (end.data.get(key) for key in ("begin", "status", "cwd"))
    if not isinstance(start, int) or not isinstance(status, int):
        raise SessionError(f"the index of session {session.name!r} is damaged: run the command again")
    cwd = str(cwd or info.cwd)
    real, home, found = (look_there if info.on else look_here)(session, cwd, tuple(dict.fromkeys(files)))
    values: dict[str, ShellValue] = {}
    if names:
        values = variables.values(run_hidden(session, variables.query(names, info.shell or "sh", 0)).records)
    return Evidence(
        status=status,
        output=text.plain(session.output(max(start, end.at - OUTPUT_BYTES), end.at)),
        command=last.text if last is not None and last.begin == start else begin,
        cwd=cwd,
        real_cwd=real,
        home=home,
        files=found,
        values=values,
    )


def _last(session: Session) -> tuple[str, Event]:
    """The first line of the last command, and the event of its end."""
    steps = EventReader(session.directory).newest(("begin", "end"), 2)
    if not steps:
        raise NothingYet("no command has been run yet")
    if steps[-1].kind == "begin":
        raise NothingYet("a command is still running")
    title = str(steps[-2].data.get("text", "")) if len(steps) > 1 and steps[-2].kind == "begin" else ""
    return title, steps[-1]


def look_here(_session: Session, cwd: str, paths: Sequence[str]) -> tuple[str, str, dict[str, Found]]:
    """The real present directory, the home, and what the paths lead to, seen from ``cwd`` on this machine."""
    found = {path: look(os.path.join(cwd, os.path.expanduser(path))) for path in paths}
    return os.path.realpath(cwd), os.path.expanduser("~"), found


def look(path: str) -> Found:
    """What a path on this machine leads to."""
    executable = os.access(path, os.X_OK)
    if os.path.isdir(path):
        return Found("directory", executable)
    if os.path.isfile(path):
        content = b""
        with contextlib.suppress(OSError), Path(path).open("rb") as file:
            content = file.read(CONTENT_BYTES)
        return Found("file", executable, content.decode("utf-8", "replace"))
    if os.path.lexists(path):
        return Found("other", executable)
    names: list[str] = []
    with contextlib.suppress(OSError):
        names = sorted(os.listdir(os.path.dirname(path.rstrip("/"))))
    return Found("", names=tuple(names))


_LOOK = rf"""
for p; do
q=$p
case $p in "~") q=$HOME ;; "~/"*) q=$HOME/${{p#"~/"}} ;; /*) ;; *) q=./$p ;; esac
k=; x=
if [ -d "$q" ]; then k=directory; elif [ -f "$q" ]; then k=file; elif [ -e "$q" ] || [ -L "$q" ]; then k=other; fi
[ -x "$q" ] && x=x
printf '{RECORD}%s\t%s\0{RECORD}' "$k" "$x"
case $k in
file) head -c {CONTENT_BYTES} "$q" | tr -d '\000\001' ;;
"") q=${{q%/}}; ls -A "${{q%/*}}/" | head -n {MOST_NAMES} ;;
esac
printf '\0'
done
printf '{RECORD}%s\0{RECORD}%s\0' "$HOME" "$(pwd -P)"
"""


def look_there(session: Session, _cwd: str, paths: Sequence[str]) -> tuple[str, str, dict[str, Found]]:
    """The same, seen by the session's shell where it runs."""
    dialect = session.info().shell or "sh"
    words = " ".join(quoted(word, dialect) for word in ("sh", "-c", _LOOK, "sh", *paths))
    records = [
        record.decode("utf-8", "surrogateescape")
        for record in run_hidden(session, variables.report(f"command {words}", dialect)).records
    ]
    if len(records) != 2 * len(paths) + 2:
        raise SessionError(f"session {session.name!r} did not tell what files there are: check again")
    found = {}
    for path, facts, content in zip(paths, records[0::2], records[1::2], strict=False):
        kind, _, executable = facts.partition("\t")
        if kind:
            found[path] = Found(kind, bool(executable), content)
        else:
            found[path] = Found("", names=tuple(content.splitlines()))
    return records[-1], records[-2], found
