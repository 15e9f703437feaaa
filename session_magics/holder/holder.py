"""One session's life: start, output, input, exit, restart, stop."""

from __future__ import annotations

import _signal
import os
import time

from session_magics.holder import processes, statefiles, trees
from session_magics.holder.child import Terminal
from session_magics.holder.escalation import Escalation
from session_magics.holder.logfile import LOG_CAP, LogWriter
from session_magics.holder.loop import READ, WRITE, Loop
from session_magics.holder.opening import open_away, open_pane, open_pty, open_shell, shell_class
from session_magics.holder.queries import Answerer
from session_magics.holder.requests import Requests
from session_magics.holder.restarts import Restarts
from session_magics.holder.server import Server
from session_magics.holder.stopping import Stopping
from session_magics.holder.typing_in import InputQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from session_magics.holder.cells import Shell
    from session_magics.holder.farstop import FarStopping
    from session_magics.holder.launch import Launch
    from session_magics.holder.loop import Timer

DRAIN_QUIET = 0.2
"""Seconds of silence after the program's end that count as the end of its output, where a child keeps the
terminal open and no end of file comes."""
DRAIN_LIMIT = 1.0
"""Seconds after which the end is recorded although such a child goes on talking."""
DEFAULT_GRACE = 5.0
OWNER_GRACE = 1.0
"""Seconds between asking and forcing when the kernel that owns the session is gone, or its parent has ended."""
LINGER_CHECK = (1.0, 20.0)
"""Seconds between looks for processes that the program left behind; the second figure for a subreaper, which hears
of the end of the last one."""


class Holder:
    """Serves one session in the working directory. Everything runs in the loop's thread."""

    def __init__(self, launch: Launch, umask: int) -> None:
        self.launch, self._umask = launch, umask
        self.loop = Loop()
        self.generation = launch.generation
        self.size = launch.size
        self.log = LogWriter(".", cap=launch.cap or LOG_CAP, timed=True)
        self.server = Server(self.loop, Requests(self).handle)
        self.terminal: Terminal | None = None
        self.shell: Shell | None = None
        if launch.shell:
            self.shell = shell_class(launch)(
                self.loop, self.log, launch.shell, launch.argv[0], rc=launch.rc, changed=self.ring
            )
            self.shell.dialect.given = launch.functions
        self._answerer = Answerer(self.loop)
        self._escalation = Escalation()
        self._input = InputQueue(self.loop, self._watch_terminal)
        self.outcome: tuple[int | None, int | None] | None = None  # code and signal of the program that has ended
        self._drain: tuple[float, float] | None = None  # when the last output came, and when draining began
        self._loss = ""  # why the outcome of the program will never be known
        self._since = self.began = 0.0  # wall clock to be shown, monotonic to be reckoned with
        self._subreaper = False
        self._leaving: Timer | None = None
        self.restarts: Restarts = Restarts(self)
        self._last_words: float | None = None  # until when what others wrote after the program is waited for
        self.stopping: Stopping | FarStopping = Stopping(self)
        if launch.control:
            from session_magics.holder.farrestarts import FarRestarts
            from session_magics.holder.farstop import FarStopping

            self.stopping, self.restarts = FarStopping(self), FarRestarts(self)
        self.over = False
        self.orphaned = False
        """Whether what the session ends with has ended: nothing starts it again here, where nobody would end it."""
        self.failure = ""
        """Why the program could not be started again."""
        self.loop.on_fault = lambda what: self.log.event("fault", what=what)

    # ---- start

    def start(self) -> None:
        """Start the program; raises SpawnError. From here on the session runs."""
        self._subreaper = processes.become_subreaper()
        self.loop.on_signal(_signal.SIGCHLD, self.reap)
        self.loop.on_signal(_signal.SIGTERM, lambda: self.stop(DEFAULT_GRACE))
        for name in ("SIGHUP", "SIGINT", "SIGPIPE"):
            _signal.signal(getattr(_signal, name), _signal.SIG_IGN)
        self.spawn()
        self.loop.on_end(self.launch.owner, self._owner_gone)
        self.loop.on_end(self.launch.parent, self._parent_gone)
        if self.launch.forsaken:
            from session_magics.holder.forsaken import Forsaken  # of sessions that a relay is to come back to

            Forsaken(self.loop, self.server, self.launch.forsaken, self._owner_gone)

    def spawn(self) -> None:
        """Start the program and wait for that; raises SpawnError or OSError."""
        launch = self.launch
        first = self.generation == launch.generation
        if launch.tmux:
            terminal = open_pane(self.loop, launch, self.size, self._umask, self)
        elif launch.control:
            terminal = open_away(self.shell, self.loop, launch, self.size, self)
        elif self.shell is None:
            terminal = open_pty(launch, self.size, self._umask)
        else:
            terminal = open_shell(self.shell, launch, self.size, self._umask, again=not first)
        self.take(terminal, first=first)

    def take(self, terminal: Terminal, *, first: bool = False) -> None:
        """The program runs on this terminal."""
        self.terminal = terminal
        self.outcome, self._drain, self.over, self.failure, self._loss = None, None, False, "", ""
        self._last_words = None
        self._since, self.began = time.time(), time.monotonic()
        self.loop.watch(terminal.pty_fd, self._terminal_event)
        self.write_run(first=first)

    def write_run(self, *, first: bool = False, sync: bool = True) -> None:
        """Record what runs, or what comes after it; see statefiles."""
        pid = self.terminal.pid if self.terminal else 0
        more = self.restarts.record | ({"lost": self._loss} if self._loss else {})
        try:
            statefiles.write_run(pid, self.generation, self._since, self.size, more, sync=sync)
        except OSError:
            if first:
                raise  # a start that cannot be recorded is a failed start; later nothing must end the session

    # ---- output and input

    def _terminal_event(self, events: int) -> None:
        terminal = self.terminal
        if terminal is None:
            return
        if events & WRITE:
            self._input.feed(terminal)
        if not events & ~WRITE:
            return
        data = terminal.read()
        if data is None:
            self.loop.forget(terminal.pty_fd)
            terminal.at_end = True
            self._output_over()
            self.leave()
            return
        if self._drain is not None:
            self._drain = (time.monotonic(), self._drain[1])
        if data:
            if not terminal.answers:
                self._answerer.look(terminal, data, self.size[0])
            if self.shell is not None:
                self.shell.output(data)
            else:
                self.log.append(data)
            self.ring()
        if terminal.at_end:
            self.leave()

    def hear(self) -> None:
        """Log what the program has said by now, without waiting for the loop's turn."""
        if self.terminal is not None and self.terminal.pty_fd >= 0 and not self.terminal.at_end:
            self._terminal_event(READ)

    def ring(self) -> None:
        """Tell the clients that wait for news."""
        end = self.log.end if self.shell is None else self.shell.visible_end
        self.server.ring(end, self.log.index_size)

    def type(self, data: bytes) -> bool:
        """Take input for the program; False, and nothing taken, if too much waits already."""
        return self.terminal is not None and self._input.put(self.terminal, data)

    def _watch_terminal(self, events: int) -> None:
        if self.terminal is not None and self.terminal.pty_fd >= 0 and self.outcome is None:
            self.loop.watch(self.terminal.pty_fd, self._terminal_event, events)

    def interrupt(self) -> None:
        """Interrupt what runs in the foreground; of a shell, only a command of a cell."""
        if self.shell is not None:
            self.shell.interrupt()
        elif self.terminal is not None and self.outcome is None:
            self._escalation.interrupt(self.terminal)

    def resize(self, rows: int, columns: int) -> None:
        """Set the terminal's size for now and for later generations."""
        self.size = (rows, columns)
        if self.terminal is not None:
            self.terminal.resize(rows, columns)
        self.log.event("resize", rows=rows, columns=columns)
        if self.restarts.starting is None:  # else it is written when that has come to an end
            self.write_run(sync=False)

    # ---- exit

    def reap(self) -> None:
        """Take the status of every child that has ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not pid:
                break
            self.restarts.reaped(pid)
            if self.terminal is not None and self.terminal.is_end(pid) and self.outcome is None:
                code = os.waitstatus_to_exitcode(status)
                self.ended(code if code >= 0 else None, -code if code < 0 else None)
        self.stopping.step()
        self.leave()

    def ended(self, code: int | None, signal: int | None) -> None:
        """The program has ended like this; what it has written may not all have come yet."""
        self.outcome = (code, signal)
        if self.terminal is not None:
            self.terminal.release()
        self._drain = (time.monotonic(), time.monotonic())
        self._drained()

    def hear_again(self) -> None:
        """Output comes again after its pipe was closed; what came between is missing from the log, as it tells."""
        if self.terminal is not None:
            self.terminal.at_end = False
            self.loop.watch(self.terminal.pty_fd, self._terminal_event)
            self.log.event("fault", what="tmux had closed the pipe of the output: some is missing here")

    def lose(self, reason: str) -> None:
        """The terminal has gone, and how the program ends will not be known: end what is left, and go."""
        self._loss, self.over = reason, True
        self.write_run()
        self.stop(OWNER_GRACE)

    def _drained(self) -> None:
        """Read what the program still had to say: to the end of file, or until silence."""
        if self._drain is None:
            return
        last, began = self._drain
        rest = min(last + DRAIN_QUIET, began + DRAIN_LIMIT) - time.monotonic()
        if rest > 0 and not (self.terminal is not None and self.terminal.at_end):
            self.loop.later(rest, self._drained)
        else:
            self._output_over()

    def _output_over(self) -> None:
        """Both the status and the last byte are here."""
        if self.outcome is None or self._drain is None:
            return
        self._drain = None
        code, signal = self.outcome
        if self.shell is not None:
            ready = self.shell.ready
            self.shell.died(code, signal, again=not self.stopping.active)
            if not self.stopping.active:
                self.restarts.after_shell(ready)
                return
        self.log.event("exit", code=code, signal=signal)
        if self.stopping.active or not self.restarts.after(code, signal):
            self.conclude()
            self.stopping.step()
        self.ring()

    def conclude(self) -> None:
        """Record the end of the program for good."""
        self.write_end()
        self.over = True
        self.leave()

    def write_end(self) -> None:
        """Record how this generation ended."""
        code, signal = self.outcome or (None, None)
        statefiles.write_exit(self.generation, "signal" if signal else "code", signal or code or 0)

    def leave(self) -> None:
        """Go when nothing is left of the program; until then its children's output is still logged."""
        if not self.over or self.stopping.active:
            return
        self.loop.cancel(self._leaving)
        away = self.launch.tmux or self.launch.control  # of other panes tmux alone hears
        if self.terminal.left_behind() if self.terminal is not None else not away and trees.descendants(os.getpid()):
            hears = self._subreaper and not away
            self._leaving = self.loop.later(LINGER_CHECK[hears], self.leave)
            return
        if self._last_words is None and self.terminal is not None:
            self._last_words = time.monotonic() + DRAIN_QUIET
            self.terminal.mark_end()
        rest = (self._last_words or 0.0) - time.monotonic()
        if rest > 0 and self.terminal is not None and not self.terminal.at_end:
            self._leaving = self.loop.later(rest, self.leave)
        else:
            self.loop.stop()

    # ---- again

    def let_go(self) -> Terminal | None:
        """Give up the terminal, which the caller closes."""
        terminal, self.terminal = self.terminal, None
        if terminal is not None:
            self._input.drop()
            self.loop.forget(terminal.pty_fd)
        return terminal

    # ---- stop

    @property
    def settled(self) -> bool:
        """Whether the end of the program is recorded, so that a stop may report."""
        return self.over or (self.terminal is None and self.restarts.starting is None)

    def leader(self) -> int:
        """Pid of the program, 0 if there is none."""
        return self.terminal.pid if self.terminal and self.outcome is None else 0

    def stop(self, grace: float, then: Callable[[list[int]], None] | None = None, *, hurry: bool = False) -> None:
        """End the whole tree; ``then`` is called with the survivors."""
        self.restarts.cancel()
        self.stopping.begin(grace, then, hurry=hurry)

    def _owner_gone(self) -> None:
        """The kernel that owns the session has ended: leave nothing behind, not even the record."""
        self.orphaned = True
        self.stop(OWNER_GRACE, lambda _survivors: self._vanish())

    def _parent_gone(self) -> None:
        self.orphaned = True
        self.stop(OWNER_GRACE)

    def _vanish(self) -> None:
        self.server.close()
        statefiles.erase(self.launch.directory, self.launch.name_file)
        self.loop.stop()

    def close(self) -> None:
        """Give everything back; the last act of the process."""
        self.server.close()
        self.restarts.close()
        terminal = self.let_go()
        if terminal is not None:
            terminal.close()
        if self.shell is not None:
            self.shell.close()
        self.log.close()
        if self.launch.cleanup:
            from session_magics.holder.control import run_to_its_end

            run_to_its_end(self.launch.cleanup)
