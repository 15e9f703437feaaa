"""Reading another registry's file and making sessions of what it tells.

A row's id here follows from what it says of its start, so that a file that is imported again adds nothing, wherever
it lies by then.
"""

from __future__ import annotations

import binascii
import contextlib
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from session_magics.agents.conversation import remember
from session_magics.agents.tools import tools_or_built_in
from session_magics.durable import write_exclusive
from session_magics.errors import StoreError, UsageMistake
from session_magics.holder.logfile import LOG_CAP
from session_magics.importing import keyed, listed
from session_magics.importing.living import living
from session_magics.importing.past import Left, Past
from session_magics.importing.report import Imported, Report, SetAside, Skipped
from session_magics.log import CHUNK_BYTES
from session_magics.model import Exited, Lost, Spec, describe
from session_magics.store import Store

FILE_LIMIT = 64 * 1024 * 1024
"""Bytes of a registry that is read at most; a row has about 12 KB with its last output."""
NAME_LENGTH = 64
SET_ASIDE = "set-aside"
"""Directory in our root for rows that are broken."""
EXPECTED = "expected a version-1 sessions.json, or a JSON list of sessions"


def import_file(store: Store, file: Path | str, *, dry_run: bool = False) -> Report:
    """Make a finished session of each row of another registry's file, which is only read.

    No session there is adopted and no process of it signalled: what did not end on record is lost, with the reason.
    Broken rows are kept in a file of their own in our root. ``dry_run``: say what would be done, and do nothing.

    Raises:
        StoreError: the file cannot be read or is none that is known; nothing was done.
    """
    source = Path(os.path.realpath(os.path.expanduser(file)))
    rows = list(_rows(_content(source), source))
    broken = [row for row in rows if isinstance(row, Left) and row.broken]
    imported: list[Imported] = []
    skipped = [Skipped(row.was, row.reason) for row in rows if isinstance(row, Left) and not row.broken]
    with store.lock_import():
        unclaimed, taken = set(store.unclaimed()), {key.partition("@")[0] for key in _keys(store)}
        for past in sorted((row for row in rows if isinstance(row, Past)), key=_rank):
            id = _id(past)
            if store.directory(id).exists() and id not in unclaimed:
                skipped.append(Skipped(past.was, "imported before"))
                continue
            if id in unclaimed and not dry_run:  # left by an import that was killed
                store.discard(id)
            imported.append(_take(store, past, id, taken, dry_run=dry_run))
        kept = _set_aside(store, source, broken, dry_run=dry_run)
    return Report(
        tuple(imported), tuple(skipped), tuple(SetAside(row.was, row.reason) for row in broken), kept, dry_run
    )


def _rank(past: Past) -> tuple[bool, float]:
    """What can keep its name comes first, then the older one."""
    return _mapped(past.was) != past.was, past.created


def _keys(store: Store) -> list[str]:
    return [*store.names(), *store.damaged_names()]


def _content(source: Path) -> Any:
    """The JSON in a file; None if the file is empty."""
    try:
        with open(source, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise StoreError(source, f"is no file: {EXPECTED}")
            data = opened.read(FILE_LIMIT + 1)
    except OSError as error:
        raise StoreError(source, f"cannot be read ({error.strerror}): {EXPECTED}") from error
    if len(data) > FILE_LIMIT:
        raise StoreError(source, f"has more than {FILE_LIMIT >> 20} MB: {EXPECTED}")
    try:
        return json.loads(data) if data.strip() else None
    except (ValueError, RecursionError) as error:
        where = f"line {error.lineno} column {error.colno}" if isinstance(error, json.JSONDecodeError) else "no text"
        raise StoreError(source, f"is no JSON ({where}): {EXPECTED}; mend a copy of a damaged one") from None


def _rows(content: Any, source: Path) -> Iterator[Past | Left]:
    if content is None:
        return iter(())
    if isinstance(content, list):
        if listed.is_list_of_sessions(content):
            return listed.rows(content)
    elif isinstance(content, dict) and ("sessions" in content or "version" in content):
        version, sessions = content.get("version", keyed.VERSION), content.get("sessions")
        if type(version) is not int or version != keyed.VERSION:
            raise StoreError(
                source, f"has version {json.dumps(version)[:20]}, and version {keyed.VERSION} alone can be imported"
            )
        if sessions is None or isinstance(sessions, dict):
            return keyed.rows(sessions or {}, source)
    raise StoreError(source, f"is no registry of sessions: {EXPECTED}")


def _id(past: Past) -> str:
    """An id that the same row always gets, and that sorts by the time of the start as ours do."""
    said = json.dumps([past.was, past.created, past.cwd, past.argv]).encode()
    return f"{int(past.created * 1000):013x}{hashlib.sha256(said).hexdigest()[:16]}"


def _take(store: Store, past: Past, id: str, taken: set[str], *, dry_run: bool) -> Imported:
    name = _free(_mapped(past.was), taken)
    lives = living(past)
    notes = [past.note] if past.note else []
    if lives:
        notes.append(f"its {lives} still lives and was left alone: it is none of ours")
    state = describe(Lost(past.lost) if past.code is None else Exited(past.code, None, past.ended))
    if not dry_run:
        spec = Spec(
            id=id, name=name, argv=past.argv, cwd=past.cwd, labels=past.labels, size=past.size, created=past.created
        )
        if past.tool in tools_or_built_in(store.root):
            spec = replace(spec, tool=past.tool, tool_args=past.argv[1:])
        store.record_past(spec, _pieces(past), past.code, past.ended, past.lost)
        try:
            if spec.tool and past.conversation:
                with contextlib.suppress(UsageMistake):  # that is no id: the newest conversation is taken up then
                    remember(store.directory(id), past.conversation)
            name = _claim(store, name, spec.id, taken)
        except BaseException:
            store.discard(id)
            raise
    taken.add(name)
    return Imported(name, past.was, state, "; ".join(notes))


def _claim(store: Store, name: str, id: str, taken: set[str]) -> str:
    while True:
        try:
            store.claim(name, id)
            return name
        except FileExistsError:  # started meanwhile
            taken.add(name)
            name = _free(name, taken)


def _mapped(was: str) -> str:
    """A name that our rules take, as like the old one as can be."""
    name = re.sub(r"[^A-Za-z0-9._-]", "-", was).lstrip("._-")
    return name[:NAME_LENGTH] or "session"


def _free(name: str, taken: set[str]) -> str:
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name[: NAME_LENGTH - len(str(number)) - 1]}-{number}"
    return free


def _pieces(past: Past) -> Iterator[bytes]:
    """The output in pieces, its newest bytes where it is longer than a log; a pipe's as a terminal shows it."""
    if not isinstance(past.output, Path):
        yield past.output or b""
        return
    with open(past.output, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as opened:
        size = os.fstat(opened.fileno()).st_size
        opened.seek(max(0, size - LOG_CAP))
        left, last = min(size, LOG_CAP), b""
        while left > 0 and (piece := opened.read(min(CHUNK_BYTES, left))):
            left -= len(piece)
            yield _as_shown(piece, last) if past.of_pipe else piece
            last = piece[-1:]


def _as_shown(piece: bytes, before: bytes) -> bytes:
    """With the carriage returns that a terminal puts before bare ends of lines; ``before`` is the byte before."""
    head = before if before == b"\r" else b""
    return re.sub(rb"(?<!\r)\n", b"\r\n", head + piece)[len(head) :]


def _set_aside(store: Store, source: Path, broken: Sequence[Left], *, dry_run: bool) -> Path | None:
    """Keep broken rows with the reasons; the same ones are kept once."""
    if not broken or dry_run:
        return None
    rows = [{"name": row.was, "reason": row.reason, "row": row.row} for row in broken]
    data = json.dumps({"source": str(source), "rows": rows}, indent=2).encode()
    path = store.root / SET_ASIDE / f"{_mapped(source.stem)}-{binascii.crc32(data):08x}.json"
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_exclusive(str(path), data)
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreError(path, error.strerror or str(error)) from error
    return path
