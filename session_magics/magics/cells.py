"""``%%sh_session``: one cell of shell text, from its options to its outcome."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from IPython.core.interactiveshell import InteractiveShell

from session_magics import variables
from session_magics.display.cell import CellOutput, Writer
from session_magics.display.live import PATIENCE, Curtain, LiveOutput, Screen
from session_magics.display.status import show_status
from session_magics.errors import CellCommandError, SessionError, SessionNotRunning, UsageMistake
from session_magics.interrupts import noticed
from session_magics.magics import notebook
from session_magics.magics.following import Follower, keep
from session_magics.magics.teaching import show_explanation
from session_magics.model import BackingOff, CellResult, Running
from session_magics.run import CellInterrupted, complete, run_hidden
from session_magics.shell import Attachment, Cell
from session_magics.verbs.options import size as size_of
from session_magics.verbs.parser import CellOptions

if TYPE_CHECKING:
    from session_magics.display.theatre import Theatre
    from session_magics.magics.oneshots import OneShots
    from session_magics.registry import Registry
    from session_magics.session import Session

BEGIN_WAIT = 1.0
"""Seconds that a cell with --bg waits to see its command begin, so that a refusal is an error of the cell."""
TRAITS = ("status_line", "explain")
"""Options that are traits where they are not given."""

Outcome = TypeVar("Outcome")


class CellRunner:
    """Runs shell cells for one IPython, in its main thread. Keeps one attachment a session.

    ``defaults`` has the traits shell_program, lifetime, rc, size, limit, timeout, display, displays and status_line;
    ``theatre`` gives what serves live terminals, at first use.
    """

    def __init__(self, ip: InteractiveShell, registry: Registry, defaults: Any, theatre: Callable[[], Theatre]) -> None:
        self._ip, self._registry, self._defaults, self._theatre = ip, registry, defaults, theatre
        self._attachments: dict[str, Attachment] = {}
        self._rows: dict[str, int] = {}
        self._given: dict[str, Mapping[str, str]] = {}
        self._places: dict[str, str | None] = {}
        self._once: OneShots | None = None
        self.results: dict[str, CellResult] = {}
        """How the last cell of each session ended."""

    def close(self) -> None:
        """Detach from every session."""
        for attachment in self._attachments.values():
            attachment.close()
        self._attachments.clear()
        if self._once is not None:
            self._once.close()

    def shell(self, name: str) -> Session:
        """The session that a cell of that name would run in, started if need be."""
        return self._session(CellOptions(name=name), notebook.writer(self._ip))

    def run(self, options: CellOptions, body: str, *, notice: str = "") -> None:
        """Run one cell; ``notice`` is a line to show with it.

        Interrupts are collected from the first moment to the last, so that none hits us half-way through a talk with
        a session. Raises CellCommandError, KeyboardInterrupt, SessionError.
        """
        if "\0" in body:
            raise UsageMistake("a shell cell cannot hold a NUL character: write it as printf '\\0'")
        if options.bg and options.get:
            raise UsageMistake(
                "--get reads variables after the command, and --bg does not wait for its end: leave out one"
            )
        traits = {name: getattr(self._defaults, name) for name in TRAITS if getattr(options, name) is None}
        options = replace(options, **traits)
        values = self._values(options)
        writer = notebook.writer(self._ip)
        if notice:
            writer.notice(notice)
        if options.exec:
            self._oneshots(options, body, writer)
            return
        kept = self._attachments.get(options.name)
        if (kept is None or not kept.alive()) and self._place(options) and not self._running(options.name):
            self._session(options, writer)  # to reach a place may take long, and an interrupt ends that
        with noticed() as interrupts:
            if options.bg:
                self._in_background(options, body, values, writer)
            else:
                self._in_foreground(options, body, values, writer)
            if interrupts.take():
                state = "goes on in the background" if options.bg else "had ended already"
                raise CellInterrupted(f"the command in session {options.name!r} {state}")

    def _oneshots(self, options: CellOptions, body: str, writer: Writer) -> None:
        if self._once is None:
            from session_magics.magics.oneshots import OneShots  # most cells run in a shell that lives on

            self._once = OneShots(self._ip, self._registry, self._defaults)
        self._once.run(options, body, writer)

    def _values(self, options: CellOptions) -> dict[str, object]:
        missing = [name for name in options.set if name not in self._ip.user_ns]
        if missing:
            raise UsageMistake(f"--set: Python has no variable {', '.join(missing)}")
        return {name: self._ip.user_ns[name] for name in options.set}

    # ---- the session

    def _on_shell(
        self,
        options: CellOptions,
        values: dict[str, object],
        writer: Writer,
        run: Callable[[Attachment], Outcome],
    ) -> Outcome:
        """Do ``run`` with the session's shell, which has the values then; once more if it ended before it took any."""
        for again in (False, True):
            shell = self._attached(options, writer)
            try:
                if values:
                    _assign(shell, values)
                return run(shell)
            except SessionNotRunning:
                self._detach(options.name)
                if again:
                    raise
        raise AssertionError

    def _attached(self, options: CellOptions, writer: Writer) -> Attachment:
        """The attachment to the session, which is started if need be."""
        kept = self._attachments.get(options.name)
        same_place = options.on in (None, self._places.get(options.name))
        if kept is not None and options.shell is None and same_place and kept.alive():
            self._tell_ignored(options, writer)
            return kept
        self._detach(options.name)
        session = self._session(options, writer)
        attachment = session.attach()
        self._attachments[options.name], self._rows[options.name] = attachment, session.info().size[0]
        self._places[options.name] = options.on
        return attachment

    def _detach(self, name: str) -> None:
        if name in self._attachments:
            self._attachments.pop(name).close()

    def _session(self, options: CellOptions, writer: Writer) -> Session:
        traits = self._defaults
        runs = self._running(options.name)
        if runs:
            self._tell_ignored(options, writer)
        else:
            self._given[options.name] = options.env
        return self._registry.shell(
            options.name,
            shell=options.shell or (None if runs or self._place(options) else traits.shell_program),
            cwd=options.cwd,
            env=options.env,
            on=options.on,
            size=options.size or (size_of(traits.size) if traits.size else None),
            lifetime=options.lifetime or traits.lifetime,
            rc=options.rc and traits.rc,
            displays=traits.displays,
        )

    def _place(self, options: CellOptions) -> str | None:
        """Where the cell's shell is to run: a name stays where it was, though its shell has ended."""
        return options.on or self._registry.last_place(options.name)

    def _running(self, name: str) -> bool:
        session = self._registry.find(name)
        return session is not None and isinstance(session.state(), Running | BackingOff)

    def _tell_ignored(self, options: CellOptions, writer: Writer) -> None:
        """Say which options came too late for a shell that runs."""
        if not (options.cwd or options.env or options.size or options.lifetime):
            return
        info = self._registry.get(options.name).info()
        cwd = options.cwd if info.on or not options.cwd else os.path.abspath(os.path.expanduser(options.cwd))
        env = self._given.get(options.name)
        if env is None and set(self._registry.store.spec(info.id).env_names) == set(options.env):
            env = options.env  # given by another kernel, or before the extension was loaded anew: only names are kept
        late = [
            flag
            for flag, given, has in (
                ("--cwd", cwd, info.cwd),
                ("--env", options.env, env),
                ("--size", options.size, info.size),
                ("--lifetime", options.lifetime, info.lifetime),
            )
            if given and given != has
        ]
        if late:
            writer.notice(f"{', '.join(late)} had no effect: the shell of session {options.name!r} runs already")

    # ---- the command

    def _sink(self, options: CellOptions, writer: Writer) -> CellOutput:
        limit = self._defaults.limit if options.limit is None else options.limit
        return CellOutput(writer, limit=limit, rows=self._rows[options.name])

    def _timeout(self, options: CellOptions) -> float | None:
        timeout: float | None = self._defaults.timeout
        return timeout if options.timeout is None else options.timeout

    def _in_foreground(self, options: CellOptions, body: str, values: dict[str, object], writer: Writer) -> None:
        sinks: list[CellOutput] = []

        def run(shell: Attachment) -> None:
            cell = shell.cell(body)  # first of all: the shell works while we get ready to show
            asker, timeout = notebook.asker(self._ip), self._timeout(options)
            if not self._may_be_live(writer):
                sinks.append(self._sink(options, writer))
                complete(cell, sink=sinks[-1], asker=asker, timeout=timeout)
                return
            curtain = Curtain(writer)
            sinks.append(self._sink(options, curtain))
            patience = 0.0 if self._defaults.display == "terminal" else PATIENCE
            with contextlib.closing(LiveOutput(cell, sinks[-1], curtain, self._screen, patience=patience)) as live:
                complete(cell, sink=live, asker=asker, timeout=timeout, at_hand=live.at_hand)

        try:
            self._on_shell(options, values, writer, run)
        except (CellCommandError, KeyboardInterrupt) as error:
            result = sinks[-1].result if sinks else None
            if result is None:
                raise
            if isinstance(error, KeyboardInterrupt):
                options = replace(options, explain=False, raise_error=True)  # who interrupts knows why it ended
            if options.raise_error:
                with contextlib.suppress(SessionError):  # the command's own error is the one to see
                    self._finish(options, result, writer)
                raise
        result = sinks[-1].result
        assert result is not None
        self._finish(options, result, writer)

    def _may_be_live(self, writer: Writer) -> bool:
        return writer.live and writer.clearable and self._defaults.display != "text" and notebook.has_person(self._ip)

    def _screen(self, cell: Cell) -> Screen | None:
        """The terminal of a cell; None where no page shows one."""
        if cell.begin is None or not notebook.shows_widgets(self._ip):
            return None
        from session_magics.display.terminal import CellTerminal  # the widget libraries are slow to import

        theatre = self._theatre()
        if theatre.has_page is False:
            return None
        with contextlib.suppress(SessionError):  # it ends or is removed just now: the text is enough
            return CellTerminal(theatre, self._registry.get(cell.session), cell.begin)
        return None

    def _finish(self, options: CellOptions, result: CellResult, writer: Writer) -> None:
        namespace, shell = self._ip.user_ns, self._attachments[options.name]
        namespace["_exit_code"] = result.returncode
        self.results[options.name] = result
        if options.explain:
            show_explanation(self._registry.get(options.name), result, writer)
        if options.status_line:
            show_status(result, writer)
        if result.restarted:
            writer.notice(result.restarted)
        keep(options, result, shell.log, namespace)
        if options.get:
            self._fetch(shell, options.get)

    def _fetch(self, shell: Attachment, names: tuple[str, ...]) -> None:
        query = variables.query(names, shell.dialect, 0)
        found = variables.values(run_hidden(shell, query).records)
        missing = [name for name in names if found.get(name) is None]
        self._ip.user_ns.update({name: value for name, value in found.items() if value is not None})
        if missing:
            raise UsageMistake(f"--get: the shell has no variable {', '.join(missing)}")

    def _in_background(self, options: CellOptions, body: str, values: dict[str, object], writer: Writer) -> None:
        """Start the command and return; its output goes on appearing under this cell."""
        cell = self._on_shell(options, values, writer, lambda _shell: self._begun(options.name, body))
        timeout = self._timeout(options)
        follower = Follower(cell, self._sink(options, writer), writer, self._ip.user_ns, options, timeout)
        threading.Thread(target=follower.run, name=f"sh_session {options.name}", daemon=True).start()

    def _begun(self, name: str, body: str) -> Cell:
        """A command on a connection of its own that has begun, or is about to when the start-up file is done."""
        cell = self._registry.get(name).cell(body)
        try:
            deadline = time.monotonic() + BEGIN_WAIT
            while cell.begin is None and time.monotonic() < deadline:
                cell.receive(deadline - time.monotonic())
        except BaseException:
            cell.close()
            raise
        return cell


def _assign(shell: Attachment, values: dict[str, object]) -> None:
    result = run_hidden(shell, variables.assignments(values, shell.dialect)).result
    if result is None or result.returncode:
        raise SessionError(f"session {shell.name!r} refused the variables: one may be readonly there")
