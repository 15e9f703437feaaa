"""What each shell has to be told so that the end and the status of a cell are known without guessing.

The method is one for all (SHELL-PROTOCOL of the design): the shell is interactive and on a terminal, but reads its
commands from a private pipe; a cell is one line on it. Around the cell's text the line writes *records* into a
FIFO and a *mark*, a control string with a nonce of that one command, to the terminal:

    record B, mark NB · the user's text, its standard input the terminal · records T, V, E, mark NE

A second line, written once B has come, repeats the end: if the shell gives the first line up (Ctrl-C, a syntax
error), the second says so; otherwise it does nothing. fish is asked by keys instead of lines (see there).
"""

from __future__ import annotations

from session_magics.holder.dialects.posix import Cell, Posix, mark

TYPE_CHECKING = False
if TYPE_CHECKING:
    from session_magics.holder.dialects.posix import Dialect


def dialect(name: str, program: bytes, directory: bytes, *, rc: bool) -> Dialect:
    """The dialect of that name (bash, zsh, fish, sh) for this program, its files in that directory."""
    kind: type[Dialect] = Posix
    if name == "bash":  # each is imported where it is needed, as a session pays for what it loads
        from session_magics.holder.dialects.bash import Bash as kind
    elif name == "zsh":
        from session_magics.holder.dialects.zsh import Zsh as kind
    elif name == "fish":
        from session_magics.holder.dialects.fish import Fish as kind
    return kind(program, directory, rc=rc)


__all__ = ["Cell", "dialect", "mark"]
