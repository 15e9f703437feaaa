"""The protocol in zsh."""

from __future__ import annotations

from session_magics.holder.dialects.posix import Dialect


class Zsh(Dialect):
    """zsh without its line editor (+Z), which would take the terminal even when commands come from a pipe."""

    utility = b"\\builtin "
    special = b"\\builtin "
    options = (
        *("-f", "-i", "+Z", "-o", "no_prompt_cr", "-o", "no_prompt_sp"),
        *("-o", "no_bang_hist", "-o", "interactive_comments"),
    )
    start_up = b'[[ ! -r ${ZDOTDIR:-$HOME}/.zshrc ]] || . "${ZDOTDIR:-$HOME}/.zshrc"'
    prepare = (
        b"@Utypeset +x PS1 PS2; @Sunset HISTFILE; @Ssetopt no_notify\n"
        b"PROMPT= PROMPT2= RPROMPT= __sm_n=0 __sm_i=0; @Strap '' INT\n"
    )
    exit_hook = b"zshexit_functions+=(__sm_x)\n"
