"""``%session``: one method a verb. Each returns a value for Python and leaves showing it to the caller."""

from __future__ import annotations

import contextlib
import shlex
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

from session_magics.cleaning import clean
from session_magics.errors import SessionError, SessionExists
from session_magics.history import History, history
from session_magics.importing.report import Report
from session_magics.listing import AgentWatch, Listing, Observer
from session_magics.model import BackingOff, Command, Lost, Running, SessionInfo, describe
from session_magics.registry import Registry
from session_magics.session import GRACE, Session
from session_magics.text import strip_styles
from session_magics.text.amounts import short_time
from session_magics.text.html import to_html
from session_magics.together import all_at_once, stop_each
from session_magics.verbs.agents import AgentVerbs
from session_magics.verbs.copying import CopyVerb
from session_magics.verbs.doctor import examine
from session_magics.verbs.envelope import success
from session_magics.verbs.keys import key_bytes
from session_magics.verbs.progress import Progress, Show, bar
from session_magics.verbs.recording import RecordingVerbs
from session_magics.verbs.teaching import Cells, TeachingVerbs
from session_magics.verbs.waiting import WaitingHere
from session_magics.verbs.words import reaches_engines

if TYPE_CHECKING:
    from session_magics.engines import EngineSession
    from session_magics.recording.formats import Cast
    from session_magics.recording.playing import Settings
    from session_magics.recording.recorder import Recordings

FOLLOW_CHARACTERS = 2_000_000
"""Most that one ``tail -f`` shows: as much as a cell does, and a page stays usable with."""
LONGEST_NAMES = 60
"""Characters of names in a line that tells how far a verb is."""


@dataclass(frozen=True)
class Details(SessionInfo):
    """What ``info`` returns: a SessionInfo with what else is known, that shows itself as lines."""

    doing: str = ""
    """What a coding agent does; "" for other programs."""
    parent_name: str = ""
    children: tuple[str, ...] = ()
    """Names of the sessions that end with it."""

    @classmethod
    def of(cls, info: SessionInfo, **more: Any) -> Details:
        """The same values, and some more."""
        return cls(**{one.name: getattr(info, one.name) for one in fields(info)}, **more)

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(str(self))

    def __str__(self) -> str:
        created = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.created)) if self.created else "unknown"
        rows = [
            ("name", self.name),
            ("state", describe(self.state)),
            ("pid", self.pid),
            ("program", shlex.join(self.argv)),
            ("tool", self.tool and self.command_line),
            ("on", self.on),
            ("directory", self.cwd),
            ("started", f"{created}, generation {self.generation}"),
            ("doing", self.doing),
            ("parent", self.parent_name),
            ("children", " ".join(self.children)),
            ("labels", ", ".join(f"{key}={value}" for key, value in self.labels.items())),
            ("shell", self.shell),
            ("size", "{}x{}".format(*self.size)),
            ("lifetime", self.lifetime),
            ("restart", f"{self.restart}, at most {self.max_restarts}" if self.max_restarts else self.restart),
            ("backend", self.backend),
            ("attach", self._attach()),
            ("log", f"{self.log_bytes:,} bytes"),
            ("record", f"{self.directory} (id {self.id})"),
        ]
        return "\n".join(f"{what:<10} {value}" for what, value in rows if value not in (None, ""))

    def _attach(self) -> str:
        """What to type in a terminal to be there, where tmux holds the session."""
        if self.backend != "tmux" or not (self.running or isinstance(self.state, Lost)):
            return ""
        return f"tmux -S {shlex.quote(f'{self.directory}/tmux')} attach"


class Picture(str):
    """What ``snapshot --html`` returns: HTML, which shows itself as such in a page and as plain text elsewhere."""

    def __new__(cls, styled: str) -> Picture:
        picture = super().__new__(cls, to_html(styled))
        picture._text = strip_styles(styled)
        return picture

    _text: str

    def _repr_html_(self) -> str:
        return str(self)

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(self._text)


class Verbs(AgentVerbs, CopyVerb, RecordingVerbs, TeachingVerbs):
    """The verbs over one registry. ``write`` puts text before the person while a verb still runs.

    ``terminal`` makes what shows a session live; None where nothing can: then its screen is shown as text. ``line``
    shows how far a long verb is, in place of the line before; None where nobody looks. ``backend`` holds programs that
    are started without ``--backend``. ``cells``: what runs the cells of this process.
    ``recordings`` and ``player``: see RecordingVerbs.
    """

    def __init__(
        self,
        registry: Registry,
        write: Callable[[str], None],
        terminal: Callable[..., object] | None = None,
        line: Show | None = None,
        backend: str = "auto",
        cells: Cells | None = None,
        recordings: Callable[[], Recordings] | None = None,
        player: Callable[[Cast, str, Settings], object] | None = None,
    ) -> None:
        self._recordings, self._player = recordings, player
        self._registry, self._write, self._terminal, self._line = registry, write, terminal, line
        self._backend, self._waiting, self._cells = backend, WaitingHere(line), cells

    def call(self, words: Namespace) -> object:
        """Carry out what the parser has read; with ``--json``, what that gave as JSON."""
        value = self.value(words)
        return success(value) if words.json else value

    def value(self, words: Namespace) -> object:
        """What the verb gives."""
        if reaches_engines(words):
            from session_magics.verbs.engines import EngineVerbs  # most calls name no engine

            return EngineVerbs(self._here, done_there, self._follow, self._line).value(words)
        return self._here(words)

    def _here(self, words: Namespace) -> object:
        return getattr(self, f"_{words.verb}")(words)

    def _start(self, words: Namespace) -> Session:
        options: dict[str, Any] = {"labels": dict(words.labels), "lifetime": words.lifetime}
        if words.on:
            options["on"] = words.on
        if words.size:
            options["size"] = words.size
        if words.argv or words.tool:
            command = Command(tuple(words.argv), words.cwd, dict(words.env))
            backend = words.backend or self._backend
            policy = {"restart": words.restart, "max_restarts": words.max_restarts}
            agent = {"tool": words.tool, "approve_all": words.approve_all, "parent": words.parent}
            session = self._registry.start(words.name, command, backend=backend, **policy, **agent, **options)
        else:
            there = self._registry.find(words.name)
            state = None if there is None else there.state()
            if isinstance(state, Running | BackingOff):
                raise SessionExists(words.name, describe(state))
            session = self._registry.shell(words.name, shell=words.shell, cwd=words.cwd, env=dict(words.env), **options)
        self._waiting.ready(session, words)
        return session

    def _list(self, words: Namespace) -> Listing:
        return Listing(Observer().rows(self._registry.infos(dict(words.labels))), dict(words.labels))

    def _info(self, words: Namespace) -> SessionInfo:
        registry = self._registry
        info = registry.get(words.name).info()
        above = [one.name for one in registry.infos() if one.id == info.parent] if info.parent else []
        children = tuple(child.name for child in registry.children(info.id))
        return Details.of(info, doing=AgentWatch().doing(info), parent_name="".join(above), children=children)

    def _tail(self, words: Namespace) -> str | None:
        session = self._registry.get(words.name)
        if not words.follow:
            return session.tail(words.lines)
        with contextlib.suppress(KeyboardInterrupt):
            self._follow(session, words.lines)
        return None

    def _history(self, words: Namespace) -> History:
        return history(self._registry.get(words.name), last=words.last, failed=words.failed)

    def _follow(self, session: Session | EngineSession, lines: int) -> None:
        """Show what comes until the program's end, or until so much was shown that the page would suffer."""
        from session_magics.text import Append, LineModel

        end = session.info().log_bytes
        if shown := session.tail(lines, end=end):
            self._write(shown + "\n")
        model, room = LineModel(), FOLLOW_CHARACTERS
        for data in session.follow(end):
            model.feed(data)
            change = model.take()
            if change is None:
                continue
            piece = change.text if isinstance(change, Append) else "\r\x1b[K" + change.text.rpartition("\n")[2]
            self._write(piece[:room])
            room -= len(piece)
            if room <= 0:
                self._write(
                    f"\n[{FOLLOW_CHARACTERS:,} characters were shown: %session tail {session.name} -f goes on]\n"
                )
                return

    def _show(self, words: Namespace) -> object:
        session = self._registry.get(words.name)
        if self._terminal is None or words.json:
            return session.snapshot()
        return self._terminal(session, read_only=words.read_only, rows=words.rows)

    def _snapshot(self, words: Namespace) -> str:
        session = self._registry.get(words.name)
        return Picture(session.snapshot(styled=True)) if words.html else session.snapshot()

    def _send(self, words: Namespace) -> None:
        data = (words.text or "").encode()
        data += b"".join(key_bytes(key) for key in words.keys)
        if words.enter:
            data += b"\r"
        self._registry.get(words.name).send(data)

    def _interrupt(self, words: Namespace) -> None:
        self._registry.get(words.name).interrupt()

    def _wait(self, words: Namespace) -> int | str | None:
        session = self._registry.get(words.name)
        return self._waiting.until(
            session, words.timeout, pattern=words.pattern, port=words.port, silence=words.silence
        )

    def _group(self, labels: Mapping[str, str]) -> dict[str, SessionInfo]:
        """The sessions that carry the labels, by name, oldest first; those of other kernels are theirs."""
        group = {info.name: info for info in self._registry.infos(labels) if info.id and "@" not in info.name}
        if not group:
            raise SessionError(f"no session carries {' and '.join(f'{key}={value}' for key, value in labels.items())}")
        return group

    def _stop(self, words: Namespace) -> list[str]:
        grace = GRACE if words.grace is None else words.grace
        count = _Countdown("stopped")
        if words.labels:
            self._group(words.labels)
        if words.all or words.labels:
            with Progress(self._line, count.text):
                return self._registry.stop_all(words.labels, grace=grace, now=words.now, left=count.take)
        sessions = [self._registry.get(name) for name in dict.fromkeys(words.names)]  # all names before any stop
        with Progress(self._line, count.text):
            stop_each(self._registry.family(sessions), grace=grace, now=words.now, left=count.take)
        return [session.name for session in sessions]

    def _restart(self, words: Namespace) -> Session | list[Session]:
        again = partial(self._registry.restart, env=words.env or None)
        if not words.labels:
            with Progress(self._line, lambda seconds, over: f"restart of {words.name} · {short_time(seconds)}"):
                return again(words.name)
        count = _Countdown("restarted")
        group = self._group(words.labels)
        names = {info.id: name for name, info in group.items()}
        after = {name: names[info.parent] for name, info in group.items() if info.parent in names}
        with Progress(self._line, count.text):
            return all_at_once({name: partial(again, name) for name in group}, left=count.take, after=after)

    def _remove(self, words: Namespace) -> list[str]:
        names = list(self._group(words.labels) if words.labels else dict.fromkeys(words.names))
        ids = {name: self._registry.removable(name, force=words.force)[1] for name in names}  # before any is removed
        for name in sorted(names, key=ids.__getitem__, reverse=True):  # a parent, which is older, takes children along
            for left in self._registry.remove(name, force=words.force, keep_log=words.keep_log):
                self._write(f"removed, but {left}\n")
        return names

    def _clean(self, words: Namespace) -> list[str]:
        limits = {"older": words.older, "keep": words.keep, "total": words.total}
        return clean(self._registry, labels=words.labels, dry_run=words.dry_run, **limits)

    def _resize(self, words: Namespace) -> None:
        self._registry.get(words.name).resize(*words.size)

    def _import(self, words: Namespace) -> Report:
        from session_magics.importing.importer import import_file  # needed once in a lifetime

        return import_file(self._registry.store, words.file, dry_run=words.dry_run)

    def _doctor(self, _words: Namespace) -> str:
        return "\n".join(f"{what:<10} {found}" for what, found in examine(self._registry))


def done_there(words: Namespace) -> object:
    """Carry out a call on an engine, for whoever sent it there; of a session, what is known about it."""
    value = Verbs(Registry(), lambda text: None)._here(words)
    return value.info() if isinstance(value, Session) else value


class _Countdown:
    """With how many of several sessions it is ``done``, such as "stopped"."""

    def __init__(self, done: str) -> None:
        self._done = done
        self._all: Sequence[str] = ()
        self._left: Sequence[str] = ()

    def take(self, left: Sequence[str]) -> None:
        """These are not over yet; the first ones are all."""
        self._all, self._left = self._all or left, left

    def text(self, seconds: float, over: bool) -> str:
        """The line to show."""
        total, done = len(self._all), len(self._all) - len(self._left)
        if over:
            return f"{self._done} {done} of {total} in {short_time(seconds)}"
        names = ", ".join(self._left)[:LONGEST_NAMES]
        return f"{self._done} {done} of {total} {bar(done, total)} {short_time(seconds)} · not yet: {names}"
