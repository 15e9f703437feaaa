"""``%%sh_session --exec``: each cell is a program of its own; directory and exports are carried to the next one."""

from __future__ import annotations

import atexit
import contextlib
import os
import secrets
from typing import TYPE_CHECKING, Any

from IPython.core.interactiveshell import InteractiveShell

from session_magics.display.status import status_line
from session_magics.errors import CellCommandError, SessionError, UsageMistake
from session_magics.model import Command
from session_magics.text import LineModel, plain

if TYPE_CHECKING:
    from session_magics.display.cell import Writer
    from session_magics.registry import Registry
    from session_magics.sandbox import Sandbox
    from session_magics.sandbox.stateful import StatefulResult, StatefulSandbox
    from session_magics.verbs.parser import CellOptions

STATE_PLACE = "/tmp"
"""Where the state is kept at a place: every system has it. The directory has a name that nobody can guess, and is made
for its owner alone."""


class OneShots:
    """Runs cells for one IPython, each name in one place. Its state is gone at ``close``, or when this process ends."""

    def __init__(self, ip: InteractiveShell, registry: Registry, defaults: Any) -> None:
        self._ip, self._registry, self._defaults = ip, registry, defaults
        self._sandboxes: dict[str, tuple[str, Sandbox, StatefulSandbox]] = {}
        atexit.register(self.close)  # a kernel that ends unloads no extension

    def close(self) -> None:
        """Remove what is kept at each place, and give the places up."""
        atexit.unregister(self.close)
        for _, sandbox, stateful in self._sandboxes.values():
            with contextlib.suppress(SessionError):  # a place that is gone has nothing to be removed
                stateful.close()
            sandbox.close()
        self._sandboxes.clear()

    def run(self, options: CellOptions, body: str, writer: Writer) -> None:
        """Run one cell, and show what it has printed. Raises CellCommandError, SandboxError, UsageMistake."""
        _check(options, options.shell or self._defaults.shell_program)
        sandbox, stateful = self._sandbox(options)
        shells = sandbox.probe().shells
        name = options.shell or next((one for one in (self._defaults.shell_program, "bash") if one in shells), "sh")
        timeout = self._defaults.timeout if options.timeout is None else options.timeout
        cwd = options.cwd
        if sandbox.place == "local" and (cwd or not stateful.cwd):
            cwd = os.path.abspath(os.path.expanduser(cwd or ""))
        command = Command((shells.get(name, name), "-c", body), cwd, dict(options.env))
        self._show(options, body, stateful.exec(command, timeout=timeout), writer)

    def _sandbox(self, options: CellOptions) -> tuple[Sandbox, StatefulSandbox]:
        from session_magics.sandbox.places import open_place, read_place
        from session_magics.sandbox.stateful import CARRIED, StatefulSandbox

        place = read_place(options.on or "local", self._registry.store.root)
        if options.name not in self._sandboxes:
            key = f"{self._registry.owner}-{options.name}"
            sandbox = open_place(place, session=key)
            try:
                sandbox.probe()  # the name stays free if the place cannot be had
            except BaseException:
                sandbox.close()
                raise
            state = f"{STATE_PLACE}/session-magics-{key}-{secrets.token_hex(8)}"
            self._sandboxes[options.name] = (str(place), sandbox, StatefulSandbox(sandbox, state, carry=CARRIED))
        kept, sandbox, stateful = self._sandboxes[options.name]
        if options.on is not None and kept != str(place):
            raise UsageMistake(f"{options.name!r} runs its cells on {kept}: take another name for {options.on}")
        return sandbox, stateful

    def _show(self, options: CellOptions, body: str, result: StatefulResult, writer: Writer) -> None:
        for output in filter(None, (result.stdout, result.stderr)):
            lines = LineModel()
            lines.feed(output)
            lines.finish()
            writer.append(lines.text())
        for line in (*result.warnings, *([f"not carried over: {', '.join(result.lost)}"] if result.lost else [])):
            writer.notice(line)
        if result.dropped:
            writer.notice(f"{result.dropped:,} bytes of the output are not kept")
        if options.status_line and writer.live:
            writer.display(status_line(result.cwd, result.code, result.duration))
        namespace = self._ip.user_ns
        namespace["_exit_code"] = result.code
        if options.out:
            namespace[options.out] = plain(result.stdout)
        if options.result:
            namespace[options.result] = result
        if result.code and options.raise_error:
            why = f"timed out after {result.duration:.1f} s" if result.timed_out else ""
            raise CellCommandError(options.name, result.code, body, why=why, output=os.fsdecode(result.stdout))


def _check(options: CellOptions, shell: str) -> None:
    """Refuse what only a shell that lives on can do, and a shell whose state cannot be carried."""
    from session_magics.sandbox.stateful import SHELLS

    given = {
        "--bg": options.bg, "--set": options.set, "--get": options.get, "--size": options.size,
        "--lifetime": options.lifetime, "--limit": options.limit, "--no-rc": not options.rc,
    }  # fmt: skip
    wrong = [flag for flag, value in given.items() if value]
    if wrong:
        raise UsageMistake(f"{', '.join(wrong)} needs a shell that lives on: leave out --exec")
    if os.path.basename(shell) not in SHELLS:
        raise UsageMistake(f"--exec carries nothing over in {shell}: give --shell bash, dash or sh")
