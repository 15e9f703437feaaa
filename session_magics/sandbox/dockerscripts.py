"""What runs inside a container around a program: shell text that needs nothing but a POSIX sh and /proc.

The names of its variables are odd on purpose, as a program's own must not be changed.
"""

from __future__ import annotations

COOKIE = "SESSION_MAGICS_EXEC"
"""Variable that marks what a call started there, for KILL."""

ENTER = r"""
_sm_say() { case $_sm_n in '') echo "$1" >&2;; *) printf '%s ! %s\n' "$_sm_n" "$1" >&2;; esac; exit 126; }
unset _sm_n
_sm_n=$1$2 _sm_d=$4 _sm_u=$5
cd "$3" 2>/dev/null || _sm_say "the directory $3 is not there"
_sm_r=${PWD%/}
cd "$_sm_d" 2>/dev/null || _sm_say "no program can run in $_sm_d: there is no such directory"
case $PWD/ in
  "$_sm_r"/*) ;;
  *) _sm_say "$_sm_d leads out of $3 through a symbolic link: give a directory below it";;
esac
unset OLDPWD
[ "$_sm_u" ] && command unset $_sm_u
shift 5
""".replace('cd "', 'cd -P "')
"""Go to the directory of a program. Words: the mark in two halves, root, directory, names of variables to be removed;
then the program. The mark is never whole in a command line or a variable, as a program may well print those (``ps``).

``cd -P`` as a link that leads out must be seen; the program then starts in the very directory that was looked at.
"""

PLAIN = ENTER + r'exec "$@"'
"""Run a program in the place of the script; without a mark."""

RUN = (
    ENTER
    + r"""
printf '%s %s\n' "$_sm_n" "$$" >&2
exec 3>&1 4>&2
_sm_m=$(exec 2>&1; (exec "$@" >&3 2>&4 3>&- 4>&-); echo "=$?")
_sm_s=${_sm_m##*=}
[ "$_sm_s" ] || _sm_s=lost
[ "${_sm_m%=*}" ] && [ "$_sm_s" -gt 128 ] 2>/dev/null && _sm_s=-$((_sm_s - 128))
printf '%s' "$_sm_n" >&3
printf '%s%s\n' "$_sm_n" "$_sm_s" >&4
"""
)
"""Run a program, and set signs around what it writes: the mark and the script's pid before the error output, the mark
behind each output, and behind the error output the status. So the end of the program is known though others have its
streams still open. Where the shell itself has words for the end of a child ("Killed"), it was a signal and no status;
dash and busybox have some for all signals but INT and PIPE, bash has none here.
"""

KILL = r"""
_sm_c=$1 _sm_p=$2 _sm_k=0
_sm_tree() {
  _sm_t=" $_sm_p "
  for _sm_f in $(grep -ls "SESSION_MAGICS_EXEC=$_sm_c" /proc/[0-9]*/environ 2>/dev/null); do
    _sm_f=${_sm_f#/proc/}
    _sm_t="$_sm_t${_sm_f%/environ} "
  done
  _sm_more=1 _sm_live=
  while [ "$_sm_more" ]; do
    _sm_more=
    for _sm_d in /proc/[0-9]*; do
      _sm_i=${_sm_d#/proc/}
      { read -r _sm_l < "$_sm_d/stat"; } 2>/dev/null || continue
      set -- ${_sm_l##*) }
      case $1 in Z|X) continue;; esac
      case $_sm_live in *" $_sm_i "*) continue;; esac
      case $_sm_t in
        *" $_sm_i "*) ;;
        *) case " $3 $4 " in *" ${_sm_p:-none} "*) ;; *)
             case $_sm_t in *" $2 "*) ;; *) continue;; esac
           esac
           _sm_t="$_sm_t$_sm_i ";;
      esac
      _sm_live="$_sm_live $_sm_i " _sm_more=1
    done
  done
}
while [ "$_sm_k" -lt 100 ]; do
  _sm_tree
  [ "$_sm_live" ] || exit 0
  kill -STOP $_sm_live 2>/dev/null
  kill -9 $_sm_live 2>/dev/null
  _sm_k=$((_sm_k + 1))
  [ "$_sm_k" -lt 5 ] || sleep 0.02 2>/dev/null || :
done
echo "$_sm_live"
"""
"""Kill all that belongs to a call, until a look at all processes finds nothing more, and print what is left. Words: its
cookie, or the beginning of several; the pid that RUN told, or nothing. That are those that carry the cookie, the group
and session of that process, and the children of all these. They are stopped first, so that none goes on when its child
is killed. Without grep the cookie is not looked for.
"""

KILL_OR_USERS = (
    r"""
_sm_o=
for _sm_f in /proc/[0-9]*/status; do
  while read -r _sm_i _sm_l _sm_x; do
    case $_sm_i in
      Uid:) _sm_u=$_sm_l;;
      Gid:) case $_sm_u:$_sm_l$_sm_o in 0:0*|*" $_sm_u:$_sm_l "*) ;; *) _sm_o="$_sm_o $_sm_u:$_sm_l ";; esac;;
    esac
  done < "$_sm_f"
done 2>/dev/null
if [ "$_sm_o" ]; then echo "users$_sm_o"; exit; fi
"""
    + KILL
)
"""The same where all processes there are root's; else prints "users" and each other USER:GROUP, in numbers."""

PROBE = r"""
uname -s; (cd && pwd) 2>/dev/null || echo "${HOME:-/}"; id -un 2>/dev/null || id -u
python3 -c 'import sys; print(sys.executable if sys.version_info >= (3, 9) else "")' 2>/dev/null || echo
for shell in bash zsh fish dash sh; do command -v "$shell"; done
"""
"""Prints a line for each field of Probe, then the paths of shells."""

KEEP_ALIVE = "while sleep 86400; do :; done"
"""What a container of ours runs: it waits."""
