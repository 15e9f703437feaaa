"""The two shell scripts of a stateful call, for sh, dash, busybox and bash; what they do says ``capture``.

Nothing of a body or a state is written into them: that comes as arguments, or as lines of a file.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from session_magics.variables import quoted

OUTER: Final = r"""
__sm_d=$1 __sm_t=$2 __sm_want=$3 __sm_left=$4 __sm_run=$5 __sm_in=$6 __sm_u=$7 __sm_load=$8
shift 8
: "${__sm_u:=$(umask)}"
umask 077
[ -z "${BASH_VERSION-}" ] || SHLVL=$((SHLVL - 1))
exec 9>&2 2>/dev/null
__sm_born() {
__sm_b=
read -r __sm_l <"/proc/$1/stat" || return 0
set -f -- ${__sm_l##*") "}
__sm_b=${20-}
}
__sm_lock() {
__sm_tries=0
__sm_born "$$"
set -C
until printf 'session-magics 1 %s %s\n' "$__sm_t" "$$:$__sm_b" >"$__sm_d/next"; do
  __sm_h= __sm_p=
  read -r __sm_l __sm_l __sm_h __sm_p __sm_l <"$__sm_d/next"
  if [ -z "$__sm_p" ]; then
    __sm_tries=$((__sm_tries + 1))
    [ "$__sm_tries" -lt 10 ] || return 1
    [ "$__sm_tries" -lt 5 ] || command -p rm -f -- "$__sm_d/next"
  else
    __sm_born "${__sm_p%%:*}"
    if [ "$__sm_h" = "$__sm_left" ] || ! kill -0 "${__sm_p%%:*}" || [ "$__sm_b" != "${__sm_p#*:}" ]; then
      command -p rm -f -- "$__sm_d/next" "$__sm_d/load.$__sm_h"
      __sm_born "$$"
      continue
    fi
    __sm_born "$$"
  fi
  command -p sleep 0.05 || command -p sleep 1
done
set +C
}
__sm_kind=bare
if { [ -d "$__sm_d" ] || command -p mkdir -p -- "$__sm_d"; } && [ ! -L "$__sm_d" ] &&
  [ -O "$__sm_d" ] && [ -w "$__sm_d" ] && __sm_lock; then
  __sm_h=
  [ -f "$__sm_d/state" ] && [ ! -L "$__sm_d/state" ] && [ -O "$__sm_d/state" ] &&
    read -r __sm_l __sm_l __sm_h __sm_l <"$__sm_d/state"
  case $__sm_want in
  "$__sm_h" | any) __sm_kind=done ;;
  *) __sm_kind=stale; command -p rm -f -- "$__sm_d/next" ;;
  esac
fi
__sm_c=0
if [ "$__sm_kind" != stale ]; then
  "$0" -c "$__sm_run" "$0" "$__sm_in" "$__sm_kind" "$__sm_u" "${__sm_load:+$__sm_d/$__sm_load}" "$@"
  __sm_c=$?
  [ -z "$__sm_load" ] || command -p rm -f -- "$__sm_d/$__sm_load"
  if [ "$__sm_kind" = done ]; then
    printf 'closed\n' >>"$__sm_d/next" && command -p mv -f -- "$__sm_d/next" "$__sm_d/state" || {
      __sm_kind=failed
      command -p rm -f -- "$__sm_d/next"
    }
  fi
fi
{
printf '%s:%s\n' "$__sm_t" "$__sm_kind"
case $__sm_kind in done | stale) command -p cat -- "$__sm_d/state" "$__sm_d/state" ;; esac
printf '%s:end\n' "$__sm_t"
} >&9
exit "$__sm_c"
"""

RUN: Final = 'exec 2>&9 9>&-; eval "$1"; eval "unset -v BASH_EXECUTION_STRING __sm_b __sm_k __sm_l __sm_p __sm_w; set --; $__sm_b"'
"""What the inner shell begins with; one line, so that the lines of a body count from the first. Its error output comes
as descriptor 9, so that the outer shell, whose own leads nowhere, does not tell of a signal that ended the inner."""

_RESTORE: Final = r"""
shift
__sm_k=$1 __sm_l=$3
umask "$2"
shift 3
if [ -n "$__sm_l" ]; then
  while IFS= read -r __sm_w; do
    __sm_w=$(command printf '%bx' "$__sm_w")
    set -- "$@" "${__sm_w%x}"
  done <"$__sm_l"
fi
__sm_b=$1
shift
for __sm_w; do case $__sm_w in f*) eval "${__sm_w#f}" ;; esac; done 2>/dev/null
[ "$__sm_k" != done ] || {
  for __sm_w; do command printf '%s\0' "$__sm_w"; done
  command printf '\0'
} >>@RECORD@
for __sm_w; do case $__sm_w in
=*) command export "${__sm_w#=}" ;;
+*) command export "${__sm_w#+}" ;;
-*) command unset -v "${__sm_w#-}" ;;
@*)
  __sm_l=${__sm_w#*=}
  __sm_w=${__sm_w#@}
  command unset -v "${__sm_w%%=*}"
  eval "${__sm_w%%=*}=\$__sm_l"
  ;;
c*) command cd -- "${__sm_w#c}" ;;
[op]*) OLDPWD=${__sm_w#?} ;;
u*) umask "${__sm_w#u}" ;;
a*) command alias -- "${__sm_w#a}" ;;
esac; done >/dev/null 2>&1
"""

_CAPTURE: Final = r"""
__sm_exports() { @EXPORTS@; }
__sm_options() { case ${BASH_VERSION-} in ?*) @OPTIONS@ ;; esac; }
__sm_functions() { case ${BASH_VERSION-} in ?*) @FUNCTIONS@ ;; esac; }
__sm_aliases() { case ${BASH_VERSION-} in ?*) @ALIASES@ ;; esac; }
__sm_end() {
set -- "$?"
{
command printf '%s\0' "$1"
command umask
command printf '\0'
command pwd
command printf '\0%s\0' "${OLDPWD-}"
__sm_exports
command printf '\0'
__sm_functions
command printf '\0'
__sm_aliases
command printf '\0'
__sm_options
command printf '\0end\0'
} >>@RECORD@
[ "$1" = 0 ] || set +e
return "$1"
}
__sm_main() {
[ "${BASHPID-$$}" = "$$" ] || return
[ -z "${BASHPID-}" ] || return 0
if IFS=' ' read -r __sm_p __sm_w </proc/self/stat; then :; else __sm_p=$(command -p sh -c 'echo $PPID'); fi
[ "$__sm_p" = "$$" ]
}
__sm_trap() {
command trap "$@" || return
case $#:${1-} in
0:* | *:-[lpP]*) return 0 ;;
*:--) shift ;;
esac
case $# in
0) return 0 ;;
1) set -- - "$1" ;;
esac
__sm_a=$1
shift
for __sm_w; do case $__sm_w in
0 | EXIT | exit | SIGEXIT | sigexit)
  __sm_main && case $__sm_a in
  -) command trap '{ __sm_end || :; } >/dev/null 2>&1' EXIT ;;
  *) command trap "{ __sm_end; } >/dev/null 2>&1
$__sm_a
{ __sm_end || :; } >/dev/null 2>&1" EXIT ;;
  esac ;;
esac; done 2>/dev/null
command unset -v __sm_a __sm_w __sm_p
return 0
}
if [ "$__sm_k" = done ]; then
  {
  command printf '%s\0' "${BASH_VERSION-}"
  command umask
  command printf '\0'
  command pwd
  command printf '\0'
  __sm_exports
  command printf '\0'
  __sm_options
  command printf '\0'
  } >>@RECORD@
  case ${BASH_VERSION:+:${SHELLOPTS-}:} in
  "" | *:posix:*) alias trap=__sm_trap ;;
  *) eval 'trap() { __sm_trap "$@"; }' ;;
  esac
  command trap '{ __sm_end || :; } >/dev/null 2>&1' EXIT
fi 2>/dev/null
for __sm_w; do case $__sm_w in
"sset -o "*) command set -o "${__sm_w#sset -o }" ;;
"sset +o "*) command set +o "${__sm_w#sset +o }" ;;
"sshopt -s "*) command shopt -s "${__sm_w#sshopt -s }" ;;
"sshopt -u "*) command shopt -u "${__sm_w#sshopt -u }" ;;
esac || :; done 2>/dev/null
"""

PUT: Final = r"""
umask 077
{ [ -d "$1" ] || mkdir -p -- "$1"; } && [ ! -L "$1" ] && [ -O "$1" ] && set -C && cat >"$1/$2"
"""
"""Writes its input to the new file $2 of the directory $1."""

REMOVE: Final = r"""
[ ! -L "$1" ] && [ -O "$1" ] || exit 0
rm -f -- "$1/state" "$1/next" "$1"/load.*
rmdir -- "$1"
"""
"""Removes the directory $1 with the files that calls made there, and no others."""

PROBE_STATE: Final = r"""[ ! -L "$1" ] && [ -O "$1" ] && cat -- "$1/state" """


def inner(state_dir: str, carry: Iterable[str], big: Iterable[str]) -> str:
    """The inner script; ``big``: the variables that are kept out of the environment for their size."""
    names = " ".join(big)
    parts = {
        "@RECORD@": quoted(f"{state_dir}/next", "sh"),
        "@EXPORTS@": f"(command export {names}; command export -p)" if names else "command export -p",
        "@OPTIONS@": "command set +o; command shopt -p" if "options" in carry else ":",
        "@FUNCTIONS@": "command declare -f" if "functions" in carry else ":",
        "@ALIASES@": "command alias -p" if "aliases" in carry else ":",
    }
    script = _RESTORE + _CAPTURE
    for mark, text in parts.items():
        script = script.replace(mark, text)
    return script
