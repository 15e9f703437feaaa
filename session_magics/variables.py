r"""Values that cross between Python and a shell, byte for byte.

Into the shell: ``assignments`` writes shell text of nothing but single-quoted words. Out of it: ``query`` writes
shell text that prints records to a FIFO, and ``values`` reads them back. For every name comes a header record, then
``count`` value records (a map has ``count`` keys, then ``count`` values)::

    \001G<TAB>number<TAB>name<TAB>kind<TAB>count\0       kind: string | array | map | unset
    \001G<TAB>number<TAB>value\0

Shell values hold no NUL, so a record cannot be cut by its content. Nothing here runs a shell: both texts are cells
of their own, run at the shell's top level. Every word of ours is quoted or goes through ``builtin`` or ``command``,
so that aliases and functions of the same name do not get in between.

Text is UTF-8 with ``surrogateescape``: bytes that are no UTF-8 come out as lone surrogates and go back as the same
bytes, if the text of ``assignments`` is encoded likewise.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from numbers import Number

from session_magics.errors import SessionError, UsageMistake

ShellValue = str | list[str] | dict[str, str] | None

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
OWN_PREFIX = "__sm_"
"""Names that begin so belong to this package, in every shell."""
RECORD = r"\001G\t0\t"
"""How a record begins, for a shell's ``printf``, where its number tells nothing; NUL ends it."""

# Names whose assignment fails, is ignored, or changes the shell itself. PATH, IFS, HOME and the like are free.
KEPT_BY_SHELL: Mapping[str, str] = {
    "bash": (
        "_ BASHOPTS BASHPID BASH_ALIASES BASH_ARGC BASH_ARGV BASH_CMDS BASH_COMMAND BASH_LINENO BASH_SOURCE"
        " BASH_SUBSHELL BASH_VERSINFO DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME GROUPS HISTCMD LINENO"
        " PIPESTATUS PPID RANDOM SECONDS SHELLOPTS SRANDOM UID"
    ),
    "zsh": (
        "_ ARGC EGID ERRNO EUID GID HISTCMD LINENO PPID RANDOM SECONDS TTYIDLE UID USERNAME ZSH_EVAL_CONTEXT"
        " ZSH_SUBSHELL aliases argv builtins cdpath commands dirstack fignore fpath funcstack functions galiases"
        " history historywords jobdirs jobstates jobtexts mailpath manpath module_path modules nameddirs options"
        " parameters path pipestatus prompt psvar reswords saliases status termcap terminfo userdirs usergroups"
        " watch widgets"
    ),
    "sh": "_ LINENO PPID",
    "fish": (
        "_ FISH_VERSION PWD SHLVL argv fish_kill_signal fish_killring fish_pid history hostname pipestatus status"
        " status_generation umask version"
    ),
}


def check_variable_names(names: Iterable[str], dialect: str | None = None) -> None:
    """Raise UsageMistake for the first name that no shell has, or that is not free to be set in ``dialect``."""
    for name in names:
        if not NAME.fullmatch(name):
            raise UsageMistake(f"{name[:60]!r} is no shell variable: use letters, digits and '_', no digit first")
        if name.startswith(OWN_PREFIX):
            raise UsageMistake(f"variable {name!r}: names that begin with {OWN_PREFIX!r} are the session's own")
        if dialect is not None and name in KEPT_BY_SHELL[_known(dialect)].split():
            raise UsageMistake(f"variable {name!r} is one of {dialect}'s own: give the value another name")


def assignments(values: Mapping[str, object], dialect: str) -> str:
    """Return shell text that assigns each value; the shell prints nothing and every content arrives exactly.

    str, bytes, paths and numbers become strings (numbers by ``str``: True is "True", 1.0 is "1.0"; NumPy's likewise);
    sequences become arrays (lists in fish), mappings associative arrays (bash ≥ 4, zsh); None unsets the variable.
    A variable that was an array becomes a plain one and the other way round; attributes (export, integer, case)
    of a plain variable stay in force. In fish a variable named ``…PATH`` splits at colons, as fish does by itself.

    Raises:
        UsageMistake: for a value with a NUL, of another kind or of a kind that the dialect lacks, and for a name
            that cannot be set. Nothing is returned for the others then.
    """
    check_variable_names(values, dialect)
    assign = _ASSIGN[_known(dialect)]
    return "\n".join(assign(name, _plain(name, value, dialect)) for name, value in values.items())


def query(names: Sequence[str], dialect: str, number: int, fifo: str | None = None) -> str:
    """Return shell text that writes the variables' records to ``fifo``; its status is not 0 if that failed.

    None: where the shell of a session reports, wherever that shell runs.

    Works under ``set -eux``, any IFS and any globbing option, and leaves no variable behind. In fish a list of
    one element is a string, and a variable named ``…PATH`` is a string joined by colons.
    """
    check_variable_names(names)
    ask = _ASK[_known(dialect)]
    body = "\n".join(ask(name, rf"\001G\t{number}\t{name}", rf"\001G\t{number}\t%s\0") for name in names)
    return report(body, dialect, fifo)


def report(body: str, dialect: str, fifo: str | None = None) -> str:
    """Return shell text that runs ``body`` with its output going to ``fifo``, and leaves no trace in the shell.

    None: where the shell of a session reports, wherever that shell runs.
    """
    place = '"$__sm_fifo"' if fifo is None else quoted(fifo, dialect)
    return _FRAME[_known(dialect)].format(body=body, fifo=place)


def values(records: Iterable[bytes]) -> dict[str, ShellValue]:
    r"""Read the payloads of one query back, in order: each record without ``\001G<TAB>number<TAB>`` and NUL."""
    found: dict[str, ShellValue] = {}
    rest = iter(records)
    for header in rest:
        try:
            name, kind, digits = header.decode("ascii").split("\t")
            count = int(digits)
            words = [word.decode("utf-8", "surrogateescape") for word in islice(rest, count * (1 + (kind == "map")))]
        except ValueError:
            raise SessionError(f"the shell's answer about variables is damaged at {header[:60]!r}: ask again") from None
        match kind:
            case "array" if len(words) == count:
                found[name] = words
            case "map" if len(words) == 2 * count:
                found[name] = dict(zip(words[:count], words[count:], strict=True))
            case "string" if len(words) == 1:
                found[name] = words[0]
            case "unset":
                found[name] = None
            case _:
                raise SessionError(f"the shell's answer about variable {name!r} is incomplete: ask again")
    return found


def quoted(text: str, dialect: str) -> str:
    r"""Return ``text`` as one single-quoted word of the dialect.

    CR LF is parted by an empty word, as a cell's line ends are read as LF.
    """
    if dialect == "fish":
        text = text.replace("\\", "\\\\").replace("'", "\\'")
    else:
        text = text.replace("'", "'\\''")
    return "'" + text.replace("\r\n", "\r'\"\"'\n") + "'"


# ------------------------------------------------------------------ Python values


def _known(dialect: str) -> str:
    if dialect not in KEPT_BY_SHELL:
        raise UsageMistake(f"values cannot be passed to the shell {dialect!r}: known are {', '.join(KEPT_BY_SHELL)}")
    return dialect


def _plain(name: str, value: object, dialect: str) -> ShellValue:
    """Reduce a Python value to what shells have; what they lack is a UsageMistake that names the variable."""
    if not isinstance(value, (Number, str, bytes)) and hasattr(value, "tolist"):  # NumPy and pandas
        value = value.tolist()
    if value is None:
        return None
    if isinstance(value, Mapping):
        if dialect in ("sh", "fish"):
            raise UsageMistake(f"variable {name!r}: {dialect} has no associative arrays: pass the values one by one")
        pairs = {_word(name, key): _word(name, item) for key, item in value.items()}
        if dialect == "bash" and "" in pairs:
            raise UsageMistake(f"variable {name!r}: bash takes no empty key in an associative array")
        return pairs
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray)):
        if dialect == "sh":
            raise UsageMistake(f"variable {name!r}: sh has no arrays: pass one string, or use bash, zsh or fish")
        return [_word(name, item) for item in value]
    return _word(name, value)


def _word(name: str, value: object) -> str:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, bytes):
        text = value.decode("utf-8", "surrogateescape")
    elif isinstance(value, (str, Number)):
        text = str(value)
    else:
        raise UsageMistake(
            f"variable {name!r}: a {type(value).__name__} cannot be passed here: strings, numbers, paths, "
            "and flat lists or dicts of them can"
        )
    if "\0" in text:
        raise UsageMistake(f"variable {name!r}: no shell variable can hold a NUL character: remove it")
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise UsageMistake(f"variable {name!r}: a lone surrogate has no UTF-8 form: remove it") from None
    return text


# ------------------------------------------------------------------ into the shell


def _assign_bash(name: str, value: ShellValue) -> str:
    r"""bash ≥ 3.2. A key goes through a variable: a subscript's own text would be expanded and searched for ``]``."""
    unset = rf"\builtin unset -v {name}"
    if value is None:
        return unset
    if isinstance(value, str):
        # Only arrays have elements to unset: a plain variable fails the first command and keeps its attributes.
        return f"\\builtin unset -v '{name}[1]' 2>/dev/null && {unset}\n{name}={quoted(value, 'bash')}"
    if isinstance(value, list):
        return f"{unset}\n{name}=({' '.join(quoted(word, 'bash') for word in value)})"
    items = [
        f"{OWN_PREFIX}k={quoted(key, 'bash')}\n{name}[${OWN_PREFIX}k]={quoted(item, 'bash')}"
        for key, item in value.items()
    ]
    return "\n".join(
        [unset, rf"\builtin declare -gA {name}", f"{name}=()", *items, rf"\builtin unset -v {OWN_PREFIX}k"]
    )


def _assign_zsh(name: str, value: ShellValue) -> str:
    """Each word is quoted: a global alias (``alias -g``) is put in for any other word, arguments too."""
    unset = rf"\builtin \unset \-v \{name}"
    if value is None:
        return unset
    if isinstance(value, str):
        # ${(t)} reads array… or association… for what must go first; with ksh_arrays a plain value would be element 0.
        is_plain = f'\\builtin \\test "${{${{(t){name}-}}#a[rs]}}" \'=\' "${{(t){name}-}}"'
        return f"{is_plain} || {unset}\n{name}={quoted(value, 'zsh')}"
    if isinstance(value, list):
        return f"{unset}\n{name}=({' '.join(quoted(word, 'zsh') for word in value)})"
    words = (quoted(word, "zsh") for pair in value.items() for word in pair)
    return f"{unset}\n\\builtin \\typeset \\-gA \\{name}\n{name}=({' '.join(words)})"


def _assign_sh(name: str, value: ShellValue) -> str:
    return rf"\unset -v {name}" if value is None else f"{name}={quoted(str(value), 'sh')}"


def _assign_fish(name: str, value: ShellValue) -> str:
    if value is None:
        return f"builtin set -eg {name}; or builtin true"
    words = [value] if isinstance(value, str) else list(value)
    return " ".join(["builtin set -g --", name, *(quoted(word, "fish") for word in words)])


# ---------------------------------------------------------------- out of the shell

# A subshell, so that options, traps and variables of ours end with it. Its output is cut off until traps are gone:
# what a DEBUG trap prints must not reach the FIFO.
_FRAME: Mapping[str, str] = {
    "bash": "( \\builtin set +eux\n\\builtin trap - DEBUG ERR RETURN\n"
    "{{ {body}\n\\builtin true; }} >{fifo} ) >/dev/null 2>&1",
    "zsh": "( \\builtin \\emulate \\-R \\zsh\n\\builtin \\set \\+eux\n\\builtin \\trap \\- \\DEBUG \\ZERR\n"
    "{{ {body}\n\\builtin \\true; }} >{fifo} ) >/dev/null 2>&1",
    "sh": "( \\set +eux\n{{ {body}\n\\command true; }} >{fifo} ) >/dev/null 2>&1",
    "fish": "begin\n{body}\nbuiltin true\nend >{fifo}",
}


def _ask_bash(name: str, header: str, record: str) -> str:
    """``declare -p`` alone tells the kind in every bash; its attributes follow the first dash."""
    kind = f"{OWN_PREFIX}k"
    return rf"""
{kind}=$(\builtin declare -p {name})
{kind}=${{{kind}#declare -}}; {kind}=${{{kind}%%[!a-zA-Z]*}}; {kind}=${{{kind}//[!aA]}}
\builtin test "${kind}" = a && \builtin printf '{header}\tarray\t%s\0' "${{#{name}[@]}}"
\builtin test "${kind}" = A && \builtin printf '{header}\tmap\t%s\0' "${{#{name}[@]}}" &&
 \builtin test "${{#{name}[@]}}" -gt 0 && \builtin printf '{record}' "${{!{name}[@]}}"
\builtin test "${kind}" && \builtin test "${{#{name}[@]}}" -gt 0 && \builtin printf '{record}' "${{{name}[@]}}"
\builtin test -z "${kind}" && \builtin test "${{{name}+x}}" &&
 \builtin printf '{header}\tstring\t1\0{record}' "${name}"
\builtin test "${kind}${{{name}+x}}" || \builtin printf '{header}\tunset\t0\0'"""


def _ask_zsh(name: str, header: str, record: str) -> str:
    kind = f"${{(t){name}}}"
    is_array = f'\\builtin \\test "${{{kind}#array}}" \'!=\' "{kind}"'
    is_map = f'\\builtin \\test "${{{kind}#association}}" \'!=\' "{kind}"'
    is_other = f'\\builtin \\test "${{{kind}#a[rs]}}" \'=\' "{kind}"'
    some = rf'\builtin \test "${{#{name}}}" \-gt \0'
    return rf"""
{is_array} && \builtin \printf '{header}\tarray\t%s\0' "${{#{name}}}" &&
 {some} && \builtin \printf '{record}' "${{(@){name}}}"
{is_map} && \builtin \printf '{header}\tmap\t%s\0' "${{#{name}}}" &&
 {some} && \builtin \printf '{record}' "${{(@k){name}}}" && \builtin \printf '{record}' "${{(@v){name}}}"
{is_other} && \builtin \test "${{+{name}}}" '=' \1 && \builtin \printf '{header}\tstring\t1\0{record}' "${name}"
\builtin \test "${{+{name}}}" '=' \1 || \builtin \printf '{header}\tunset\t0\0'"""


def _ask_sh(name: str, header: str, record: str) -> str:
    return rf"""
\command test "${{{name}+x}}" && \command printf '{header}\tstring\t1\0{record}' "${name}"
\command test "${{{name}+x}}" || \command printf '{header}\tunset\t0\0'"""


def _ask_fish(name: str, header: str, record: str) -> str:
    one = "1" if name.endswith("PATH") else f"(builtin count ${name})"
    return rf"""
if not builtin set -q {name}
builtin printf '{header}\tunset\t0\0'
else if builtin test {one} -eq 1
builtin printf '{header}\tstring\t1\0{record}' "${name}"
else
builtin printf '{header}\tarray\t%s\0' (builtin count ${name})
builtin set -q {name}[1]; and builtin printf '{record}' ${name}
end"""


_ASSIGN: Mapping[str, Callable[[str, ShellValue], str]] = {
    "bash": _assign_bash,
    "zsh": _assign_zsh,
    "sh": _assign_sh,
    "fish": _assign_fish,
}
_ASK: Mapping[str, Callable[[str, str, str], str]] = {
    "bash": _ask_bash,
    "zsh": _ask_zsh,
    "sh": _ask_sh,
    "fish": _ask_fish,
}
