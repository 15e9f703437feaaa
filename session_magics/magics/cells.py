"""``%%sh_session``: one cell of shell text, from its options to its outcome."""

from __future__ import annotations

import threading
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from session_magics import text, variables
from session_magics.display.cell import CellOutput, Writer
from session_magics.errors import CellCommandError, SessionError, UsageMistake
from session_magics.magics import notebook
from session_magics.magics.parser import CellOptions
from session_magics.model import CellResult
from session_magics.registry import Registry
from session_magics.run import run_cell, run_hidden
from session_magics.session import Session

OUT_BYTES = 64 * 1024 * 1024
"""Most bytes of output that --out keeps: as many as the log does."""


class CellRunner:
    """Runs shell cells for one IPython. ``defaults``: the traits shell, lifetime, rc, size, limit, timeout."""

    def __init__(self, ip: InteractiveShell, registry: Registry, defaults: Any) -> None:
        self._ip, self._registry, self._defaults = ip, registry, defaults

    def run(self, options: CellOptions, body: str) -> None:
        """Run one cell. Raises CellCommandError, KeyboardInterrupt, SessionError."""
        if "\0" in body:
            raise UsageMistake("a shell cell cannot hold a NUL character: write it as printf '\\0'")
        values = self._values(options)
        session = self._session(options)
        if values:
            self._check(run_hidden(session, variables.assignments(values, self._dialect(session))).result, session)
        writer = notebook.writer(self._ip)
        if options.bg:
            self._in_background(session, body, options, writer)
            return
        self._foreground(session, body, options, writer)

    def _values(self, options: CellOptions) -> dict[str, object]:
        missing = [name for name in options.set if name not in self._ip.user_ns]
        if missing:
            raise UsageMistake(f"--set: Python has no variable {', '.join(missing)}")
        return {name: self._ip.user_ns[name] for name in options.set}

    def _session(self, options: CellOptions) -> Session:
        traits = self._defaults
        size = options.size or (tuple(map(int, traits.size.split("x"))) if traits.size else None)
        return self._registry.shell(
            options.name,
            shell=options.shell or (traits.shell if self._fresh(options.name) else None),
            cwd=options.cwd,
            env=options.env,
            size=size,  # type: ignore[arg-type]
            lifetime=options.lifetime or traits.lifetime,
            rc=options.rc and traits.rc,
        )

    def _fresh(self, name: str) -> bool:
        return self._registry.find(name) is None

    @staticmethod
    def _dialect(session: Session) -> str:
        return session.info().shell or "sh"

    @staticmethod
    def _check(result: CellResult | None, session: Session) -> None:
        if result is None or result.returncode:
            raise SessionError(f"session {session.name!r} refused the variables: a name may be readonly there")

    def _foreground(self, session: Session, body: str, options: CellOptions, writer: Writer) -> None:
        limit = self._defaults.limit if options.limit is None else options.limit
        sink = CellOutput(writer, limit=limit, rows=24)
        timeout = options.timeout if options.timeout is not None else self._defaults.timeout
        error: CellCommandError | None = None
        try:
            result = run_cell(session, body, sink=sink, asker=notebook.asker(self._ip), timeout=timeout)
        except CellCommandError as failure:
            error, result = failure, failure.result  # type: ignore[assignment]
        self._finish(session, options, result, writer)
        if error is not None and options.raise_error:
            raise error

    def _finish(self, session: Session, options: CellOptions, result: CellResult, writer: Writer) -> None:
        namespace = self._ip.user_ns
        namespace["_exit_code"] = result.returncode
        if result.restarted:
            writer.notice(result.restarted)
        if options.out:
            end = result.end
            namespace[options.out] = text.plain(session.output(max(result.begin, end - OUT_BYTES), end))
        if options.result:
            namespace[options.result] = result
        if options.get:
            self._fetch(session, options.get)

    def _fetch(self, session: Session, names: tuple[str, ...]) -> None:
        query = variables.query(names, self._dialect(session), str(session.directory / "records"), 0)
        cell = run_hidden(session, query)
        found = variables.values(cell.records)
        missing = [name for name in names if found.get(name) is None]
        if missing:
            raise UsageMistake(f"--get: the shell has no variable {', '.join(missing)}")
        self._ip.user_ns.update(found)

    def _in_background(self, session: Session, body: str, options: CellOptions, writer: Writer) -> None:
        """Start the command and return; its output goes on appearing under this cell."""
        limit = self._defaults.limit if options.limit is None else options.limit
        cell = session.cell(body)
        follower = Follower(cell, CellOutput(writer, limit=limit), writer, self._ip.user_ns, options.result)
        threading.Thread(target=follower.run, name=f"sh_session {session.name}", daemon=True).start()


class Follower:
    """Shows a background command's output in the cell that started it, from a thread of its own."""

    def __init__(
        self, cell: Any, sink: CellOutput, writer: Writer, namespace: dict[str, Any], result_name: str | None
    ) -> None:
        self._cell, self._sink, self._writer = cell, sink, writer
        self._namespace, self._result_name = namespace, result_name

    def run(self) -> None:
        """Until the command's end."""
        from session_magics.foreground import Foreground
        from session_magics.interrupts import noticed

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
