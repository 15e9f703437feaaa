"""The verbs as a terminal shows them."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from session_magics.cli.follow import Follower
from session_magics.cli.words import PROGRAM
from session_magics.endings import over
from session_magics.engines import EngineSession
from session_magics.errors import UsageMistake
from session_magics.listing import Listing
from session_magics.model import describe
from session_magics.outlook import outlook
from session_magics.registry import Registry
from session_magics.session import Session
from session_magics.text.fit import fit
from session_magics.verbs.actions import Verbs
from session_magics.verbs.envelope import success
from session_magics.verbs.progress import on_terminal

if TYPE_CHECKING:
    from session_magics.kernel.specs import KernelSpec
    from session_magics.recording.formats import Cast
    from session_magics.recording.playing import Settings

HIDDEN = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)), "�")
"""Control characters in names of programs and directories: a terminal would obey them."""


class Desk(Verbs):
    """The common verbs, and those of the command line, over the user's registry."""

    _most_played = None

    def __init__(self) -> None:
        self._follows_json = False
        registry = Registry()
        shows = sys.stdin.isatty() and sys.stdout.isatty()
        line = on_terminal(sys.stderr) if sys.stderr.isatty() else None
        live, player = (self._live, self._played) if shows else (None, None)
        super().__init__(registry, self._print, live, line, player=player)

    def carry_out(self, words: Namespace) -> int:
        """Do it and print what it gives; the exit status."""
        self._follows_json = words.json
        if words.verb == "start":
            for news in filter(None, (self._registry.store.relocated, outlook())):
                print(f"{PROGRAM}: {news}", file=sys.stderr)
        value = self.value(words)
        status = value if isinstance(value, int) and not (words.verb == "wait" and words.port is not None) else None
        if words.json:
            if not (words.verb == "tail" and words.follow):
                print(success(value))
        elif status is None and (text := _text(value)) is not None:
            print(text)
        return 0 if status is None else status if status >= 0 else 128 - status

    @staticmethod
    def _print(text: str) -> None:
        print(text, end="", flush=True)

    def _start(self, words: Namespace) -> Session:
        if words.lifetime == "kernel":
            raise UsageMistake("--lifetime kernel: a command line is over at once, and so would be the session")
        return super()._start(words)

    def _follow(self, session: Session | EngineSession, lines: int) -> None:
        """As long as it lasts: there is no page that would suffer."""
        end = session.info().log_bytes
        write = self._print_json if self._follows_json else self._print
        if shown := session.tail(lines, end=end):
            write(shown + "\n")
        follower = Follower(live=sys.stdout.isatty() and not self._follows_json)
        for data in session.follow(end):
            if piece := follower.feed(data):
                write(piece)
        if rest := follower.finish():
            write(rest)

    @staticmethod
    def _print_json(text: str) -> None:
        print(success(text), flush=True)

    def _attach(self, words: Namespace) -> int:
        from session_magics.cli.attach import attach

        return attach(self._registry.get(words.name), read_only=words.read_only, detach_key=words.detach_key)

    def _live(self, session: Session, *, read_only: bool, rows: int | None) -> int | str:
        from session_magics.cli.attach import attach

        if over(session.state()):
            return session.snapshot()
        return attach(session, read_only=read_only)

    @staticmethod
    def _played(cast: Cast, _title: str, settings: Settings) -> int:
        from session_magics.cli.playing import play

        return play(cast, settings)

    def _doctor(self, words: Namespace) -> str:
        return super()._doctor(words).replace("%session ", f"{PROGRAM} ")

    @staticmethod
    def _completion(words: Namespace) -> str:
        from session_magics.cli.completion import script

        return script(words.shell)

    @staticmethod
    def _kernel(words: Namespace) -> list[KernelSpec]:
        from session_magics.kernel import specs  # slow to import, and seldom wanted

        if words.action == "list":
            return specs.installed()
        place = specs.directory(sys.prefix if words.sys_prefix else words.prefix)
        if words.action == "remove":
            return specs.remove(place, words.names)
        return specs.install(place, words.names, words.called)


def _text(value: object) -> str | None:
    """What to print of a value; None: nothing."""
    match value:
        case Session() | EngineSession():
            info = value.info()
            shown = f"{info.name} {describe(info.state)}" + (f", pid {info.pid}" if info.pid else "")
        case Listing() if sys.stdout.isatty():
            width = os.get_terminal_size(sys.stdout.fileno()).columns
            shown = "\n".join(fit(line.translate(HIDDEN), width) for line in str(value).split("\n"))
        case [] if type(value) is list:  # others know how to show themselves
            return None
        case list() if type(value) is list:
            shown = "\n".join(filter(None, map(_text, value)))
        case None:
            return None
        case _:
            shown = str(value)
    return shown.translate(HIDDEN)
