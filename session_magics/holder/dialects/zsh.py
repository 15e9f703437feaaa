"""The protocol in zsh."""

from __future__ import annotations

from session_magics.holder.dialects.posix import Cell, Dialect, quoted
from session_magics.holder.records import listed_trap


class Zsh(Dialect):
    """zsh without its line editor (+Z), which would take the terminal even when commands come from a pipe.

    The start-up files of a terminal's zsh are read, .zshenv and .zshrc, but not by zsh itself: they are a cell.
    zsh takes our lines for commands that a person gave. A hook of ours keeps them out of the history, which people
    have in a file that their shells share; it is set again after each cell, as start-up files set their own. The cells'
    texts are put into the history by the first words of each cell; no file is read or written, unless a cell names one.
    DEBUG and ZERR traps are off between cells, as in bash, so that commands of ours never meet them.
    """

    utility = b"\\builtin "
    special = b"\\builtin "
    options = (
        *("-f", "-i", "+Z", "-o", "no_prompt_cr", "-o", "no_prompt_sp"),
        *("-o", "no_bang_hist", "-o", "interactive_comments", "-o", "hist_ignore_space"),
    )
    start_up = (
        b'[[ ! -r ${ZDOTDIR:-$HOME}/.zshenv ]] || . "${ZDOTDIR:-$HOME}/.zshenv"\n'
        b'[[ ! -r ${ZDOTDIR:-$HOME}/.zshrc ]] || . "${ZDOTDIR:-$HOME}/.zshrc"\n'
        b"\\builtin unset HISTFILE 2>/dev/null"
    )
    prepare = (
        b" __sm_h() { return 1; }; zshaddhistory_functions=(__sm_h)\n"
        b"@Ssetopt no_hist_ignore_space; @Utypeset +x PS1 PS2; @Sunset HISTFILE; @Ssetopt no_notify\n"
        b"PROMPT= PROMPT2= RPROMPT= __sm_n=0 __sm_i=0; @Strap '' INT\n"
    )
    functions = (
        b'__sm_a() { @Sset -- "$1" "$__sm_traps"; __sm_traps=; @Seval "$2"; @Sreturn "$1"; }\n'
        b"__sm_k() { [[ -o histignorespace && $__sm_cell = ' '* ]] || @Uprint -sr -- \"${__sm_cell%$'\\n'}\"; }\n"
        + Dialect.functions.replace(b"PS1= PS2=\n", b"PS1= PS2=\n zshaddhistory_functions=(__sm_h)\n")
    )
    ending = Dialect.ending.replace(b"@A$?;", b'@A$?;[ -z "${__sm_traps-}" ]||__sm_a 0;').replace(
        b"__sm_e @N", b"@Strap - ZERR DEBUG;__sm_e @N"
    )
    exit_hook = b"zshexit_functions+=(__sm_x)\n"

    def init(self, tty: bytes) -> bytes:
        """See Dialect; until the hook is there, a space keeps lines out of the history."""
        return b" " + super().init(tty)

    def run(self, cell: Cell, before: bytes, *, traced: bool) -> bytes:
        """See Dialect; a text for the history is in a variable, as is what is run then."""
        traps = b"; ".join(one for one in (listed_trap(cell.traps, name) for name in (b"ZERR", b"DEBUG")) if one)
        prefix = b""
        if traps and not cell.hidden:
            before = b"__sm_traps=" + quoted(traps) + b"; " + before
            prefix = b"{ __sm_a %d; } >/dev/null 2>&1; " % (0 if b"e" in cell.flags else cell.last)
        if not cell.kept:
            cell.text = prefix + cell.text
            return super().run(cell, before, traced=traced)
        before = b"__sm_cell=" + quoted(cell.text) + b"; __sm_k; " + before
        run = b"\\builtin eval " + quoted(prefix) + b'"$__sm_cell" <' + self.tty
        if traced or listed_trap(cell.traps, b"DEBUG"):
            return self.muffled(before + run)
        return b"{ " + before + b"} >/dev/null 2>&1; " + run + b" ;"
