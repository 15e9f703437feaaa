"""The protocol in bash, 3.2 to 5.x."""

from __future__ import annotations

from session_magics.holder.dialects.posix import Cell, Dialect, quoted


class Bash(Dialect):
    """bash runs a cell from a *stub*: a sourced file whose only line evaluates the text.

    A plain ``eval`` would do, but for ``set -o vi`` and ``set -o emacs``: in an interactive bash that reads its
    commands from a pipe they make readline the source of input in the middle of the eval, and bash 5.2 crashes.
    While a file is sourced bash is not ``interactive`` in this sense, and they only set the option. Sourcing also
    gives ``return`` a meaning. It suspends a DEBUG trap, so with one set the text is evaluated directly.
    """

    utility = b"\\builtin "
    special = b"\\builtin "
    options = ("--norc", "--noprofile", "--noediting", "-i")
    start_up = b"[ ! -r ~/.bashrc ] || . ~/.bashrc"
    prepare = (
        b"@Sset +H +o history; @Uhistory -c; @Sunset HISTFILE PS0 PROMPT_COMMAND; @Ushopt -s execfail\n"
        b"@Uexport -n PS1 PS2; PS1= PS2= __sm_n=0 __sm_i=0; @Strap '' INT\n"
    )
    functions = (
        b'__sm_w() { @Uprintf "$@" || \\command printf "$@"; }\n'  # the built-in one can be disabled
        + Dialect.functions.replace(b"@Uprintf", b"__sm_w").replace(
            b'[ -z "$PS1$PS2" ] || PS1= PS2=;', b'[ -z "$PS1$PS2${PS0-}" ] || PS1= PS2= PS0=;'
        )
    )

    def init(self, tty: bytes) -> bytes:
        """See Dialect."""
        return b"__sm_stub=" + quoted(self.directory + b"/cell") + b"\n" + super().init(tty)

    def files(self) -> dict[str, bytes]:
        """The stub, and the one for a traced cell: the trace of our own words is thrown away outside the eval."""
        plain = b'\\builtin eval "$__sm_cell"'
        return {"cell": plain + b"\n", "cell.traced": plain + b" >" + self.tty + b" 2>&1\n"}

    def run(self, cell: Cell, before: bytes, *, traced: bool) -> bytes:
        """See Dialect."""
        if cell.debug:
            return super().run(cell, before, traced=traced)
        before = b"__sm_cell=" + quoted(cell.text) + b"; " + before
        if traced:
            return b"{ " + before + b'\\builtin . "$__sm_stub".traced <"$__sm_tty"; } >/dev/null 2>&1;'
        return b"{ " + before + b'} >/dev/null 2>&1; \\builtin . "$__sm_stub" <"$__sm_tty" ;'
