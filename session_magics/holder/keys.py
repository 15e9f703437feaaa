"""Pressing keys in a shell that takes its commands from its line editor only."""

from __future__ import annotations

import termios

TYPE_CHECKING = False
if TYPE_CHECKING:
    from session_magics.holder.child import Terminal


def press(terminal: Terminal, key: bytes) -> None:
    """Type a key that the terminal does not show; what was typed before and not read is dropped.

    The editor may not have switched the echo off yet, as it does so only after the command before.
    """
    modes = termios.tcgetattr(terminal.tty_fd)
    modes[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(terminal.tty_fd, termios.TCSANOW, modes)
    termios.tcflush(terminal.tty_fd, termios.TCIFLUSH)
    terminal.write(key)


def at_editor(terminal: Terminal) -> bool:
    """Whether the shell itself reads keys now: it is in the foreground and takes them one by one."""
    by_line = termios.tcgetattr(terminal.tty_fd)[3] & termios.ICANON
    return not by_line and terminal.foreground() == terminal.pid
