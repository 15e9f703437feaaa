"""``%%sh_session``: one cell of shell text, from its options to its outcome."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from IPython.core.interactiveshell import InteractiveShell

from session_magics import text, variables
from session_magics.display.cell import CellOutput, Writer
from session_magics.display.live import Curtain, LiveOutput, Screen
from session_magics.errors import CellCommandError, SessionError, SessionNotRunning, UsageMistake
from session_magics.foreground import Foreground, Sink
from session_magics.interrupts import noticed
from session_magics.magics import notebook
from session_magics.magics.options import size as size_of
from session_magics.magics.parser import CellOptions
from session_magics.model import CellResult
from session_magics.run import run_cell, run_hidden
from session_magics.shell import Attachment, Cell

if TYPE_CHECKING:
    from session_magics.display.theatre import Theatre
    from session_magics.registry import Registry
    from session_magics.session import Session

OUT_BYTES = 64 * 1024 * 1024
"""Most bytes of output that --out keeps: as many as the log does."""


class CellRunner:
    """Runs shell cells for one IPython, in its main thread. Keeps one attachment a session.

    ``defaults`` has the traits shell_program, lifetime, rc, size, limit, timeout and display; ``theatre`` gives what
    serves live terminals, at first use.
    """

    def __init__(self, ip: InteractiveShell, registry: Registry, defaults: Any, theatre: Callable[[], Theatre]) -> None:
        self._ip, self._registry, self._defaults, self._theatre = ip, registry, defaults, theatre
        self._attachments: dict[str, Attachment] = {}

    def close(self) -> None:
        """Detach from every session."""
        for attachment in self._attachments.values():
            attachment.close()
        self._attachments.clear()

    def run(self, options: CellOptions, body: str) -> None:
        """Run one cell. Raises CellCommandError, KeyboardInterrupt, SessionError."""
        if "\0" in body:
            raise UsageMistake("a shell cell cannot hold a NUL character: write it as printf '\\0'")
        values = self._values(options)
        try:
            self._run(self._attached(options), options, body, values)
        except SessionNotRunning:  # it ended while we were attached, and took nothing from us: a new one does
            self._detach(options.name)
            self._run(self._attached(options), options, body, values)

    def _run(self, shell: Attachment, options: CellOptions, body: str, values: dict[str, object]) -> None:
        if values:
            result = run_hidden(shell, variables.assignments(values, shell.dialect)).result
            if result is None or result.returncode:
                raise SessionError(f"session {shell.name!r} refused the variables: one may be readonly there")
        limit = self._defaults.limit if options.limit is None else options.limit
        writer = notebook.writer(self._ip)
        if options.bg:
            self._in_background(options, body, writer, CellOutput(writer, limit=limit))
        elif writer.live and writer.clearable and self._defaults.display == "auto" and notebook.shows_widgets(self._ip):
            curtain = Curtain(writer)
            sink = LiveOutput(CellOutput(curtain, limit=limit), curtain, lambda cell: self._screen(options.name, cell))
            self._in_foreground(shell, options, body, curtain, sink, sink.at_hand)
        else:
            self._in_foreground(shell, options, body, writer, CellOutput(writer, limit=limit), lambda asks: False)

    def _screen(self, name: str, cell: Cell) -> Screen | None:
        """The terminal of a cell; None where no page shows one."""
        from session_magics.display.terminal import CellTerminal  # the widget libraries are slow to import

        theatre = self._theatre()
        if theatre.has_page is False or cell.begin is None:
            return None
        return CellTerminal(theatre, self._registry.get(name), cell.begin)

    def _values(self, options: CellOptions) -> dict[str, object]:
        missing = [name for name in options.set if name not in self._ip.user_ns]
        if missing:
            raise UsageMistake(f"--set: Python has no variable {', '.join(missing)}")
        return {name: self._ip.user_ns[name] for name in options.set}

    def _attached(self, options: CellOptions) -> Attachment:
        """The attachment to the session, which is started if need be."""
        kept = self._attachments.get(options.name)
        if kept is not None and options.shell is None and kept.alive():
            return kept
        self._detach(options.name)
        attachment = self._session(options).attach()
        self._attachments[options.name] = attachment
        return attachment

    def _detach(self, name: str) -> None:
        if name in self._attachments:
            self._attachments.pop(name).close()

    def _session(self, options: CellOptions) -> Session:
        traits = self._defaults
        fresh = self._registry.find(options.name) is None
        return self._registry.shell(
            options.name,
            shell=options.shell or (traits.shell_program if fresh else None),
            cwd=options.cwd,
            env=options.env,
            size=options.size or (size_of(traits.size) if traits.size else None),
            lifetime=options.lifetime or traits.lifetime,
            rc=options.rc and traits.rc,
        )

    def _in_foreground(
        self,
        shell: Attachment,
        options: CellOptions,
        body: str,
        writer: Writer,
        sink: Sink,
        at_hand: Callable[[bool], bool],
    ) -> None:
        timeout = self._defaults.timeout if options.timeout is None else options.timeout
        error: CellCommandError | None = None
        try:
            asker = notebook.asker(self._ip)
            result = run_cell(shell, body, sink=sink, asker=asker, timeout=timeout, at_hand=at_hand)
        except CellCommandError as failure:
            if failure.result is None:
                raise
            error, result = failure, failure.result
        self._finish(shell, options, result, writer)
        if error is not None and options.raise_error:
            raise error

    def _finish(self, shell: Attachment, options: CellOptions, result: CellResult, writer: Writer) -> None:
        namespace = self._ip.user_ns
        namespace["_exit_code"] = result.returncode
        if result.restarted:
            writer.notice(result.restarted)
        if options.out:
            namespace[options.out] = text.plain(shell.log.bytes(max(result.begin, result.end - OUT_BYTES), result.end))
        if options.result:
            namespace[options.result] = result
        if options.get:
            self._fetch(shell, options.get)

    def _fetch(self, shell: Attachment, names: tuple[str, ...]) -> None:
        query = variables.query(names, shell.dialect, str(shell.directory / "records"), 0)
        found = variables.values(run_hidden(shell, query).records)
        missing = [name for name in names if found.get(name) is None]
        if missing:
            raise UsageMistake(f"--get: the shell has no variable {', '.join(missing)}")
        self._ip.user_ns.update(found)

    def _in_background(self, options: CellOptions, body: str, writer: Writer, sink: CellOutput) -> None:
        """Start the command and return; its output goes on appearing under this cell."""
        cell = self._registry.get(options.name).cell(body)
        follower = Follower(cell, sink, writer, self._ip.user_ns, options.result)
        threading.Thread(target=follower.run, name=f"sh_session {options.name}", daemon=True).start()


class Follower:
    """Shows a background command's output in the cell that started it, from a thread of its own."""

    def __init__(
        self, cell: Cell, sink: CellOutput, writer: Writer, namespace: dict[str, Any], result_name: str | None
    ) -> None:
        self._cell, self._sink, self._writer = cell, sink, writer
        self._namespace, self._result_name = namespace, result_name

    def run(self) -> None:
        """Until the command's end."""
        try:
            with noticed() as interrupts:
                result = Foreground(self._cell, self._sink, interrupts, asker=None).run()
            self._report(result)
        except SessionError as error:
            self._writer.notice(str(error))
        finally:
            self._cell.close()

    def _report(self, result: CellResult) -> None:
        if self._result_name:
            self._namespace[self._result_name] = result
        if result.returncode:
            self._writer.notice(f"the background command ended with status {result.returncode}")
        if result.restarted:
            self._writer.notice(result.restarted)
