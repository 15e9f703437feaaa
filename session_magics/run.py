"""Running one cell of shell text from Python."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from session_magics import text
from session_magics.errors import CellCommandError, SessionError
from session_magics.foreground import Asker, Foreground, Sink
from session_magics.interrupts import noticed
from session_magics.model import CellResult
from session_magics.shell import Attachment, Cell

if TYPE_CHECKING:
    from session_magics.session import Session

HIDDEN_LIMIT = 10.0
"""Seconds for a command of ours, such as reading variables."""


class CellInterrupted(KeyboardInterrupt):
    """The person interrupted the cell; its command has ended."""

    def _render_traceback_(self) -> list[str]:
        return [f"\x1b[31mKeyboardInterrupt\x1b[0m: {self}"]


class Silent:
    """A sink that shows nothing; the output is in the log."""

    def due(self, now: float) -> float:
        """See Sink."""
        return now

    def advance(self, cell: Cell, upto: int) -> None:
        """See Sink."""

    def finish(self, cell: Cell, end: int) -> None:
        """See Sink."""

    def notice(self, line: str) -> None:
        """See Sink."""


def run_cell(
    session: Session | Attachment,
    cell_text: str,
    *,
    sink: Sink | None = None,
    asker: Asker | None = None,
    timeout: float | None = None,
    check: bool = True,
) -> CellResult:
    """Run shell text in a shell session and wait for its end.

    Args:
        session: a shell session, from ``Registry.shell``, or an attachment to one, which saves connecting.
        cell_text: any shell text; handed over as it is.
        sink: where output goes while the command runs; default nowhere.
        asker: who answers prompts; without one a command that waits for input is told end-of-file.
        timeout: seconds after which the command is interrupted, harder every 1.5 s until it ends.
        check: raise for a status other than 0.

    Raises:
        CellCommandError: the status was not 0, the time was over, or the outcome is unknown.
        KeyboardInterrupt: Ctrl-C came (main thread only) and the command has ended.
        SessionBusy: another command runs in the session.
    """
    with noticed():  # a Ctrl-C between the start of the command and its being waited for would leave it running
        return complete(session.cell(cell_text), sink=sink, asker=asker, timeout=timeout, check=check)


def complete(
    cell: Cell,
    *,
    sink: Sink | None,
    asker: Asker | None,
    timeout: float | None,
    check: bool = True,
    at_hand: Callable[[bool], bool] = lambda asks: False,
) -> CellResult:
    """Wait for the end of a command that was started, as ``run_cell`` does; closes the cell.

    ``at_hand`` says whether the person can type into the program itself; see Foreground.
    """
    try:
        with noticed() as interrupts:
            drive = Foreground(cell, sink or Silent(), interrupts, asker=asker, timeout=timeout, at_hand=at_hand)
            result = drive.run()
        if drive.interrupted:
            raise CellInterrupted(f"the command in session {cell.session!r} was interrupted{_because(result)}")
        why = _why(drive, result, timeout)
        if check and (result.returncode != 0 or drive.timed_out or result.state == "lost"):
            output = text.plain(cell.output()[-text.STEP :])
            raise CellCommandError(cell.session, result.returncode, result.text, why=why, output=output, result=result)
        return result
    finally:
        cell.close()


def _because(result: CellResult) -> str:
    return f"; {result.restarted}" if result.restarted else ""


def _why(drive: Foreground, result: CellResult, timeout: float | None) -> str:
    reasons = []
    if drive.timed_out:
        reasons.append(f"timed out after {timeout:g} s")
    if drive.wanted_input:
        reasons.append("it asked for input, which nobody can give here")
    if result.state == "lost":
        reasons.append("the session's holder is gone, the outcome is unknown")
    elif result.returncode < 0:
        reasons.append(f"the shell was killed by {_signal_name(-result.returncode)}")
    return "; ".join(reasons)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def run_hidden(session: Session | Attachment, cell_text: str, *, limit: float = HIDDEN_LIMIT) -> Cell:
    """Run a command of ours, which leaves no trace in ``$?`` and the index; the finished Cell, closed.

    Raises SessionError if it does not come to its end within ``limit`` seconds.
    """
    cell = session.cell(cell_text, hidden=True)
    try:
        deadline = time.monotonic() + limit
        while cell.result is None:
            if not cell.receive(deadline - time.monotonic()) and time.monotonic() >= deadline:
                cell.interrupt()
                raise SessionError(f"session {session.name!r} did not run a command of ours in {limit:g} s")
        return cell
    finally:
        cell.close()
