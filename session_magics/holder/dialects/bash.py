"""The protocol in bash, 3.2 to 5.x."""

from __future__ import annotations

from session_magics.holder.dialects.posix import Cell, Dialect, quoted
from session_magics.holder.records import listed_trap


class Bash(Dialect):
    """bash runs a cell from a *stub*: a sourced file whose only line evaluates the text.

    A plain ``eval`` would do, but for ``set -o vi`` and ``set -o emacs``: in an interactive bash that reads its
    commands from a pipe they make readline the source of input in the middle of the eval, and bash 5.2 crashes.
    While a file is sourced bash is not ``interactive`` in this sense, and they only set the option. Sourcing also
    gives ``return`` a meaning. It suspends a DEBUG trap, and an ERR trap would fire for the failing stub as well, so
    both are off between cells: the end of a cell takes them away, and the first words of what the next one of the
    user's evaluates set them again. So commands of ours never meet them. A RETURN trap does fire at
    the end of the stub.

    The history has the cells' texts, put there by the first words of each cell. That bash keeps the lines it reads,
    which are ours, is off between cells, and on in them if the user wants it. The history is that of the session: no
    file is read or written, unless a cell names one. With ``set -H``, what ``history -p`` makes of a text is run.
    """

    utility = b"\\builtin "
    special = b"\\builtin "
    options = ("--norc", "--noprofile", "--noediting", "-i")
    start_up = b"[ ! -r ~/.bashrc ] || . ~/.bashrc\n\\builtin unset HISTFILE 2>/dev/null"
    prepare = (
        b"@Sset +H +o history; @Uhistory -c; @Sunset HISTFILE PS0 PROMPT_COMMAND; @Ushopt -s execfail\n"
        b"@Uexport -n PS1 PS2; PS1= PS2= __sm_pre= __sm_n=0 __sm_i=0; @Strap '' INT\n"
    )
    functions = (
        b'__sm_w() { @Uprintf "$@" || \\command printf "$@"; }\n'  # the built-in one can be disabled
        b'__sm_a() { @Sset -- "$1" "$__sm_traps"; __sm_traps= __sm_pre=; @Seval "$2"; @Sreturn "$1"; }\n'
        b'__sm_y() { if __sm_l=$(@Uhistory -p -- "$__sm_cell"); then [ "$__sm_l" = "${__sm_cell%$\'\\n\'}" ] || {'
        b' __sm_cell=$__sm_l; __sm_pre=$__sm_pre\'{ __sm_pre=; @Uprintf "%s\\n" "$__sm_cell" >"$__sm_tty"; }\''
        b"' 2>/dev/null; '; }; else"
        b" __sm_cell='@Uprintf \"bash: history expansion failed\\n\" >&2; @Sreturn 1'; return 1; fi; }\n"
        b"__sm_h() { @Uhistory -s -- \"${__sm_cell%$'\\n'}\"; }\n"
        + Dialect.functions.replace(b"@Uprintf", b"__sm_w")
        .replace(b'[ -z "$PS1$PS2" ] || PS1= PS2=', b'[ -z "$PS1$PS2${PS0-}" ] || PS1= PS2= PS0=')
        .replace(b"{ __sm_i=$1;", b'{ __sm_i=$1; [ -z "${__sm_ho-}" ] || { __sm_ho=; @Sset -o history; };')
        .replace(
            b"@Sset +exuv\n",
            b'@Sset +exuv\n [ -z "${__sm_hl-}" ] || { __sm_hl=; __sm_h; }\n'
            b" if [ -o history ]; then __sm_ho=1; @Sset +o history; fi\n",
        )
    )
    ending = Dialect.ending.replace(
        b"@A$?;",
        b'@A$?;[ -z "${__sm_traps-}" ]||__sm_a 0;',  # a syntax error
    ).replace(b"__sm_e @N", b"@Strap - ERR DEBUG;__sm_e @N")

    def init(self, tty: bytes) -> bytes:
        """See Dialect."""
        return b"__sm_stub=" + quoted(self.directory + b"/cell") + b"\n" + super().init(tty)

    def files(self) -> dict[str, bytes]:
        """The stub, and the one for a traced cell: the trace of our own words is thrown away outside the eval."""
        plain = b'\\builtin eval "$__sm_pre$__sm_cell"'
        return {"cell": plain + b"\n", "cell.traced": plain + b" >" + self.tty + b" 2>&1\n"}

    def run(self, cell: Cell, before: bytes, *, traced: bool) -> bytes:
        """See Dialect."""
        before = self._remembered(cell) + before
        traps = b"; ".join(one for one in (listed_trap(cell.traps, name) for name in (b"ERR", b"DEBUG")) if one)
        if traps and not cell.hidden:
            prefix = b"{ __sm_a %d; } >/dev/null 2>&1; " % (0 if b"e" in cell.flags else cell.last)
            before = b"__sm_traps=" + quoted(traps) + b" __sm_pre=" + quoted(prefix) + b"; " + before
        before = b"__sm_cell=" + quoted(cell.text) + b"; " + before
        if traced:
            return b"{ " + before + b'\\builtin . "$__sm_stub".traced <"$__sm_tty"; } >/dev/null 2>&1;'
        return b"{ " + before + b'} >/dev/null 2>&1; \\builtin . "$__sm_stub" <"$__sm_tty" ;'

    def _remembered(self, cell: Cell) -> bytes:
        """What puts the cell into the history: at its begin, as at a prompt, and with ``set -H`` expanded.

        One that asks for earlier commands by ``fc`` or ``history -p`` is put there at its end: bash leaves out the
        last line for them only if it has read that itself.
        """
        if not cell.kept:
            return b""
        expand = b"__sm_y && " if b"H" in cell.flags and (b"!" in cell.text or cell.text[:1] == b"^") else b""
        return expand + (b"__sm_hl=1; " if b"fc" in cell.text or b"history -p" in cell.text else b"__sm_h; ")
