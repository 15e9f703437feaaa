"""Giving a session its terminal, with its program on it: a PTY of our own, that of a shell, or a pane of tmux."""

from __future__ import annotations

import os

from session_magics.holder.child import Terminal, spawn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from session_magics.holder.cells import Shell
    from session_magics.holder.farterminal import Ends as FarEnds
    from session_magics.holder.farterminal import FarTerminal
    from session_magics.holder.launch import Launch
    from session_magics.holder.loop import Loop
    from session_magics.holder.pane import Ends


def open_pty(launch: Launch, size: tuple[int, int], umask: int) -> Terminal:
    """A program on a PTY; raises SpawnError."""
    return spawn(launch.argv, launch.env, launch.cwd, size, umask=umask)


def shell_class(launch: Launch) -> type[Shell]:
    """What speaks to the shell of a session; programs need not pay for it."""
    if launch.control:
        from session_magics.holder.farshell import FarShell

        return FarShell
    from session_magics.holder.cells import Shell

    return Shell


def open_shell(shell: Shell, launch: Launch, size: tuple[int, int], umask: int, *, again: bool) -> Terminal:
    """A shell on a PTY, its commands on a pipe; raises SpawnError. ``again``: its directory may be gone meanwhile."""
    theirs, ours = os.pipe()
    try:
        argv, env = shell.dialect.argv, launch.env
        cwd = launch.cwd if not again or os.path.isdir(launch.cwd) else b"/"
        terminal = spawn(argv, env, cwd, size, stdin=theirs, raw_lines=True, umask=umask)
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    shell.adopt(terminal, ours, cwd=launch.cwd)
    return terminal


def open_away(shell: Shell | None, loop: Loop, launch: Launch, size: tuple[int, int], ends: FarEnds) -> Terminal:
    """A program or a shell in another place that has no Python, waited for here; raises SpawnError."""
    from session_magics.holder import farstart

    argv = launch.argv if shell is None else shell.dialect.argv
    terminal = farstart.open_far(loop, launch, size, ends, argv, shell=shell is not None)
    take_away(shell, terminal, launch)
    return terminal


def take_away(shell: Shell | None, terminal: FarTerminal, launch: Launch) -> None:
    """Give a shell of another place its terminal there."""
    if shell is not None:
        from session_magics.holder.farshell import FarShell

        if isinstance(shell, FarShell):
            shell.adopt_far(terminal, cwd=launch.cwd or b".")


def open_pane(loop: Loop, launch: Launch, size: tuple[int, int], umask: int, ends: Ends) -> Terminal:
    """A program in a pane of a tmux server of its own; raises SpawnError."""
    from session_magics.holder import pane, tmux  # a terminal of our own need not pay for it

    started = tmux.start(launch.tmux, launch.argv, launch.env, launch.cwd, size, name=launch.name, umask=umask)
    return pane.Pane(loop, launch.tmux, started, ends)
