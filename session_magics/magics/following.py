"""The output of a background command, in the cell that started it."""

from __future__ import annotations

from typing import Any

from session_magics import text
from session_magics.display.cell import CellOutput, Writer
from session_magics.display.status import show_status
from session_magics.errors import SessionError
from session_magics.foreground import Foreground
from session_magics.interrupts import noticed
from session_magics.log import LogReader
from session_magics.model import CellResult
from session_magics.shell import Cell
from session_magics.verbs.parser import CellOptions

OUT_BYTES = 64 * 1024 * 1024
"""Most bytes of output that --out keeps: as many as the log does."""


def keep(options: CellOptions, result: CellResult, log: LogReader, namespace: dict[str, Any]) -> None:
    """Give Python what --out and --result ask for."""
    if options.out:
        namespace[options.out] = text.plain(log.bytes(max(result.begin, result.end - OUT_BYTES), result.end))
    if options.result:
        namespace[options.result] = result


class Follower:
    """Shows a background command's output in the cell that started it, from a thread of its own."""

    def __init__(
        self,
        cell: Cell,
        sink: CellOutput,
        writer: Writer,
        namespace: dict[str, Any],
        options: CellOptions,
        timeout: float | None,
    ) -> None:
        self._cell, self._sink, self._writer = cell, sink, writer
        self._namespace, self._options, self._timeout = namespace, options, timeout

    def run(self) -> None:
        """Until the command's end."""
        try:
            with noticed() as interrupts:
                drive = Foreground(self._cell, self._sink, interrupts, asker=None, timeout=self._timeout)
                result = drive.run()
            keep(self._options, result, self._cell.log, self._namespace)
            self._report(drive, result)
        except SessionError as error:
            self._writer.notice(str(error))
        finally:
            self._cell.close()

    def _report(self, drive: Foreground, result: CellResult) -> None:
        because = [f"timed out after {self._timeout:g} s"] if drive.timed_out else []
        because += ["it asked for input, which nobody can give here"] if drive.wanted_input else []
        if result.returncode:
            why = "".join(f"; {one}" for one in because)
            self._writer.notice(f"the background command ended with status {result.returncode}{why}")
        if self._options.status_line:
            show_status(result, self._writer)
        if result.restarted:
            self._writer.notice(result.restarted)
