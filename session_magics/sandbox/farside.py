"""The shell scripts of a stateful call, for sh, dash, busybox and bash.

The shell that runs the body restores before it and captures after it, in an EXIT trap. From where the state is
restored on it needs builtins alone: PATH may be gone, the environment too big for any program. Nothing of a body or a
state is written into a script: that comes as arguments, or as lines of a file.

It reports on its error output, from where the near side takes it away: ``TOKEN:KIND``, fields that end in NUL, and
``TOKEN:.``, each on a line. Kinds:

* ``stale``: nothing was run, as the state file is not the one that the near side knows.
* ``bare``: the state directory cannot be used; the body is run, and nothing will be captured.
* ``begin``: bash version, umask, directory, exports, options.
* ``end``: umask, directory, previous directory, exports, functions, aliases, options, ``end``; all of it twice, as a
  job left behind may write in between. Missing if the body led its error output elsewhere, replaced the shell or was
  killed.

An end is in the file ``call.ID`` as well, where the near side looks for one that is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from session_magics.variables import quoted

RUN: Final = (
    'eval "$1"; eval "unset -v BASH_EXECUTION_STRING __sm_b __sm_h __sm_i __sm_k __sm_l __sm_v __sm_w; set --; $__sm_b"'
)
"""What the shell begins with; $1 is the script, the rest its arguments: the state file's token, that of the call, a
file of further arguments or "", the body. The words of the state come in the variable WORDS, as the arguments of a
program are for all to read; or both in the file. One line, so that the lines of a body count from the first."""

WORDS: Final = "SESSION_MAGICS_WORDS"

_RESTORE: Final = r"""
__sm_h=$2 __sm_t=$3 __sm_l=$4
shift 4
if [ -n "$__sm_l" ]; then
  __sm_w=$(command -p cat @DIR@/"$__sm_l")
  command -p rm -f @DIR@/"$__sm_l"
else __sm_w=${SESSION_MAGICS_WORDS-}
fi
command unset -v SESSION_MAGICS_WORDS
if [ -n "$__sm_w" ]; then
  __sm_v=$IFS IFS='
'
  set -f
  for __sm_w in $__sm_w; do
    __sm_w=$(command printf '%bx' "${__sm_w#.}")
    set -- "$@" "${__sm_w%x}"
  done
  IFS=$__sm_v
  set +f
fi
__sm_b=$1 __sm_k=bare
shift
if { [ -d @DIR@ ] || (umask 077; command -p mkdir -p @DIR@); } && [ ! -L @DIR@ ] && [ -O @DIR@ ]; then
  __sm_w=
  if [ -f @DIR@/state ] && [ ! -L @DIR@/state ] && [ -O @DIR@/state ]; then
    IFS=' ' read -r __sm_v __sm_v __sm_w __sm_v <@DIR@/state
    : "${__sm_w:=damaged}"
  elif [ -e @DIR@/state ] || [ -L @DIR@/state ]; then __sm_w=damaged
  fi
  if [ "$__sm_h" != "$__sm_w" ] && [ "$__sm_h" != any ]; then __sm_k=stale
  elif [ -f @RECORD@ ] && [ ! -L @RECORD@ ] && [ -O @RECORD@ ]; then __sm_k=begin
  elif (umask 077; set -C; command printf '' >@RECORD@); then __sm_k=begin
  fi
fi 2>/dev/null
case $__sm_k in
begin) ;;
*) command printf '%s:%s\n%s:.\n' "$__sm_t" "$__sm_k" "$__sm_t" >&2 ;;
esac
[ "$__sm_k" != stale ] || exit 0
for __sm_w; do case ${BASH_VERSION:+$__sm_w} in
f*) eval "${__sm_w#f}" ;;
a*) command alias -- "${__sm_w#a}" ;;
esac; done 2>/dev/null
for __sm_w; do case $__sm_w in
=*) command export "${__sm_w#=}" ;;
+*) command export "${__sm_w#+}" ;;
-*) command unset -v "${__sm_w#-}" ;;
@*)
  __sm_v=${__sm_w#*=}
  __sm_w=${__sm_w#@}
  command unset -v "${__sm_w%%=*}"
  eval "${__sm_w%%=*}=\$__sm_v"
  ;;
c*) command cd -- "${__sm_w#c}" ;;
o*) OLDPWD=${__sm_w#o} ;;
u*) umask "${__sm_w#u}" ;;
esac; done >/dev/null 2>&1
"""

_CAPTURE: Final = r"""
__sm_exports() { @EXPORTS@; }
__sm_options() { case ${BASH_VERSION-} in ?*) @OPTIONS@ ;; esac; }
__sm_identity() {
__sm_i=
while IFS='	' read -r __sm_l __sm_v; do case $__sm_l in
mnt_id:) __sm_i=$__sm_v: ;;
ino:) __sm_i=$__sm_i$__sm_v ;;
esac; done <"/proc/self/fdinfo/$1"
}
__sm_begin() {
command printf '%s\0' "${BASH_VERSION-}"
command umask
command printf '\0'
command pwd
command printf '\0'
__sm_exports
command printf '\0'
__sm_options
command printf '\0'
}
__sm_report() {
command umask
command printf '\0'
command pwd
command printf '\0%s\0' "${OLDPWD-}"
__sm_exports
command printf '\0'
case ${BASH_VERSION-} in ?*) @FUNCTIONS@ ;; esac
command printf '\0'
case ${BASH_VERSION-} in ?*) @ALIASES@ ;; esac
command printf '\0'
__sm_options
command printf '\0end\0'
}
__sm_main() {
case ${BASHPID-} in
'') ;;
*) [ "$BASHPID" = "$$" ]; return ;;
esac
if IFS=' ' read -r __sm_v __sm_l </proc/self/stat; then :; else __sm_v=$(command -p sh -c 'echo $PPID'); fi
[ "$__sm_v" = "$$" ]
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
  -) command trap '{ __sm_end || :; } 9>&2 >/dev/null 2>&1' EXIT ;;
  *) command trap "{ __sm_end; } 9>&2 >/dev/null 2>&1
$__sm_a
{ __sm_end || :; } 9>&2 >/dev/null 2>&1" EXIT ;;
  esac ;;
esac; done 2>/dev/null
command unset -v __sm_a __sm_l __sm_v __sm_w
return 0
}
if [ "$__sm_k" = begin ]; then
  __sm_identity 9 9>&2 2>/dev/null
  eval "__sm_end() {
  set -- \"\$?\"
  { command printf '%s:end\n' $__sm_t; __sm_report; command printf '%s:.\n' $__sm_t; } >>@QUOTED_RECORD@
  __sm_identity 9
  case \$__sm_i in
  ?*:?*) case $__sm_i in
    \"\$__sm_i\")
      command printf '%s:end\n' $__sm_t
      __sm_report
      __sm_report
      command printf '%s:.\n' $__sm_t
    ;; esac ;;
  esac >&9
  [ \"\$1\" = 0 ] || set +e
  return \"\$1\"
  }"
  { command printf '%s:begin\n' "$__sm_t"; __sm_begin; command printf '%s:.\n' "$__sm_t"; } >&2
  command printf '' >@RECORD@ 2>/dev/null
  case ${BASH_VERSION:+:${SHELLOPTS-}:} in
  "" | *:posix:*) alias trap=__sm_trap ;;
  *) eval 'trap() { __sm_trap "$@"; }' ;;
  esac
  command trap '{ __sm_end || :; } 9>&2 >/dev/null 2>&1' EXIT
fi
for __sm_w; do case ${BASH_VERSION:+$__sm_w} in
"sset -o "*) command set -o "${__sm_w#sset -o }" ;;
"sset +o "*) command set +o "${__sm_w#sset +o }" ;;
"sshopt -s "*) command shopt -s "${__sm_w#sshopt -s }" ;;
"sshopt -u "*) command shopt -u "${__sm_w#sshopt -u }" ;;
esac || :; done 2>/dev/null
command unset -v __sm_t
"""

PUT: Final = r"""
umask 077
{ [ -d "$1" ] || mkdir -p -- "$1"; } && [ ! -L "$1" ] && [ -O "$1" ] && set -C && cat >"$1/$2"
"""
"""Writes its input to the new file $2 of the directory $1."""

PUBLISH: Final = r"""
umask 077
[ ! -L "$1" ] && [ -O "$1" ] && [ -w "$1" ] || exit 1
set -C
tries=0
until printf '' >"$1/next"; do
  tries=$((tries + 1))
  [ "$tries" -lt 60 ] || exit 1
  [ "$tries" -ne 40 ] || rm -f -- "$1/next"
  sleep 0.05 || sleep 1
done 2>/dev/null
seen=
if [ -f "$1/state" ] && [ ! -L "$1/state" ] && [ -O "$1/state" ]; then
  IFS=' ' read -r word word seen word <"$1/state"
  : "${seen:=damaged}"
elif [ -e "$1/state" ] || [ -L "$1/state" ]; then seen=damaged
fi
if [ "$2" != "$seen" ] && [ "$2" != any ]; then
  rm -f -- "$1/next"
  exit 3
fi
if [ -d "$1/state" ]; then false; else cat; fi >>"$1/next" &&
  exec mv -f -- "$1/next" "$1/state"
rm -f -- "$1/next"
exit 1
"""
"""Makes its input the state file of the directory $1 if the one there has the token $2 (or that is "any").

Exit status 3: it has another one. The new file is the lock as well; it is held for some milliseconds, so that one that
is there for seconds belongs to nobody.
"""

REMOVE: Final = r"""
[ ! -L "$1" ] && [ -O "$1" ] || exit 0
rm -f -- "$1/state" "$1/next" "$1"/call.* "$1"/load.*
rmdir -- "$1"
"""
"""Removes the directory $1 with the files that calls made there, and no others."""

FETCH: Final = r"""
[ ! -L "$1" ] && [ -O "$1" ] && [ -f "$1/$2" ] && [ ! -L "$1/$2" ] && [ -O "$1/$2" ] && cat -- "$1/$2"
"""
"""Prints the file $2 of the directory $1."""


def script(state_dir: str, record: str, carry: Iterable[str], big: Iterable[str]) -> str:
    """The script of a call; ``big``: the variables that are kept out of the environment for their size."""
    names = " ".join(big)
    path = quoted(f"{state_dir}/{record}", "sh")
    parts = {
        "@DIR@": quoted(state_dir, "sh"),
        "@RECORD@": path,
        "@QUOTED_RECORD@": path.replace("\\", "\\\\").replace('"', '\\"').replace("$", "\\$").replace("`", "\\`"),
        "@EXPORTS@": f"(command export {names}; command export -p)" if names else "command export -p",
        "@OPTIONS@": "command set +o; command shopt -p" if "options" in carry else ":",
        "@FUNCTIONS@": "command declare -f" if "functions" in carry else ":",
        "@ALIASES@": "command alias -p" if "aliases" in carry else ":",
    }
    text = _RESTORE + _CAPTURE
    for mark, part in parts.items():
        text = text.replace(mark, part)
    return text
