"""What runs on a far side that has no Python: scripts for any POSIX shell, and the files that they are given.

Two connections are made. The *control* script makes a private directory with two FIFOs, the shell's commands (``in``)
and its reports (``records``), which it copies to its standard output; it carries out lines from its standard input and
answers each on its standard error, behind TAG. The *terminal* script starts the program on the far terminal and tells
the end by a record. When the near side hangs up, the control script ends all that carries the session's cookie.

A shell says 128 and the signal for a program that a signal has ended, and the same for an exit with that status. The
terminal script tells them apart, as a shell with job control says a word about the first, and is itself interrupted
where the signal was INT. Of PIPE none says anything: 141 counts as a status.

Only builtins and cat, chmod, kill, mkdir, mkfifo, rm, sleep, stty, tty are used; grep makes it faster, and where there
is dd, keys that are on their way are waited for. What leads a session opens no terminal, which could become its own:
that is left to subshells.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TAG = b":session-magics: "
"""Begins an answer among whatever else comes on the error output of the control connection."""
PLACES = '"${TMPDIR:-/tmp}" /tmp /var/tmp /dev/shm "$HOME" "$PWD"'
"""Where the directory may be made."""
LATE = 5
"""Tenths of a second for a key to come after the one before; waited out only if some were not for reading (Ctrl-C)."""

HELLO = b"\033]7788;hello\007"
TERMINAL = r"printf '\033]7788;hello\007'; " + 'read -r d && . "$d/run"'
"""The terminal script; when it says HELLO, the near side types where the directory is. What is typed before may be
thrown away, as clients change the modes of their own terminal."""

PROCESSES = r"""
stat() { # what /proc tells of a process; false if it is gone
 line=; while read -r piece; do line="$line $piece"; done <"/proc/$1/stat" || return 1
 [ -n "$line" ] || return 1
 set -- ${line##*") "}
 state=$1 parent=$2 group=$3 session=$4 front=$6 tick=${20} ignored=${31} caught=${32} image=${48}
 case $state in Z|X) return 1;; esac
}
words() { text=; while IFS= read -r piece || [ -n "$piece" ]; do text="$text $piece"; done <"$1"; }
carriers() {
 if printf 'a\0b\0' | grep -qzxF b; then set -- $(grep -lzxF "$cookie" /proc/[0-9]*/environ)
 else
  found=; for one in /proc/[0-9]*/environ; do words "$one"; case $text in *"$cookie"*) found="$found $one";; esac; done
  set -- $found
 fi
 strays=; for one; do one=${one#/proc/}; strays="$strays ${one%%/*}"; done
}
tree() { # members: the pids of all that is the session's
 table=; set -- /proc/[0-9]*/stat; set -f; IFS='
'
 set -- $(cat "$@"); IFS=$spaces  # a shell that reads a file itself takes each byte alone
 for line; do
  one=${line%%" "*}; case $line in [1-9]*") "[A-WY]*) ;; *) continue;; esac
  set -- ${line##*") "}
  [ "$1" = Z ] || table="$table $one:$2:$4:$1:${20}"
 done
 set +f; members=" "; more=1
 while [ "$more" ]; do
  more=
  for one in $table; do
   this=${one%%:*}; rest=${one#*:}; parent=${rest%%:*}; rest=${rest#*:}; session=${rest%%:*}
   case " $host " in *" $this "*) continue;; esac
   case $members in *" $this:"*) continue;; esac
   kin=; case $members in *" $parent:"*) kin=1;; esac
   case " $strays " in *" $this "*) kin=1;; esac
   [ "$kin" ] || [ "$this:${one##*:}" = "$leader:$since" ] || [ "$session" = "${leads:-none}" ] || continue
   members="$members$this:${rest#*:} "; more=1
  done
 done
}
freeze_and_kill() {
 seen=" "; round=0
 while [ $round -lt 20 ]; do
  fresh=
  for one in $members; do
   one=${one%%:*}; case $seen in *" $one "*) ;; *) fresh=1; kill -s STOP "$one"; seen="$seen$one ";; esac
  done
  [ "$fresh" ] || break
  round=$((round + 1)); tree
 done
 for one in $seen; do kill -s KILL "$one"; done
}
finish() { # end all, at once
 tries=0
 while [ $tries -lt 40 ]; do
  carriers; tree; [ "$members" != " " ] || break
  freeze_and_kill; tries=$((tries + 1))
  [ $tries -lt 2 ] || sleep 0.05 || sleep 1
 done
}
"""

LOOKING = r"""
modes() { set -- $(stty -a <"$tty"); echo=1 canonical=1 keys=1
 for one; do case ${one%;} in -echo) echo=0;; -icanon) canonical=0;; -isig) keys=0;; esac; done; }
by_int() { # whether INT ends the process for sure; $2: one that is the shell's own image counts too
 stat "$1" || return 0
 [ $((ignored >> 1 & 1)) = 0 ] || return 1
 [ $((caught >> 1 & 1)) = 1 ] || return 0
 [ "$2" ] || return 1
 words "/proc/$1/cmdline"; mine=$text; words "/proc/$2/cmdline"; [ "$mine" = "$text" ]
}
group_kill() { kill -s "$1" -- "-$target" || kill -s "$1" "-$target"; }
fronts() { stat "$leader" || return 1; own=$state; [ "${front:-0}" -gt 1 ] || front=; }
interrupt() { # $1: how often it was asked for before
 fronts || return; target=$front; answer=done
 if [ "$1" = 0 ] || { [ "$1" = 1 ] && [ "$target" = "$leader" ]; }; then
  modes; hit=
  if [ "$target" = "$leader" ] || { [ "$target" ] && by_int "$target" "$leader"; }; then hit=$target; fi
  if [ $keys = 0 ] || [ -z "$target" ] || ! group_kill INT; then answer=key; fi
 elif [ "$target" ]; then
  [ "$1" = 1 ] && how=TERM || how=KILL
  group_kill $how
 fi
 [ -z "$target" ] || group_kill CONT
 [ "$own" != T ] || kill -s CONT "$leader"
}
missed() { # INT again, if it was lost
 fronts && [ "$hit" ] && [ "$front" ] || return; target=$front; lost=
 modes; [ $keys = 1 ] || return
 if [ "$target" = "$leader" ]; then
  for one in /proc/[0-9]*; do
   one=${one#/proc/}; [ "$one" != "$leader" ] && stat "$one" && [ "$group" = "$leader" ] || continue
   if by_int "$one" "$leader"; then lost=1; else lost=; break; fi
  done
 elif [ "$target" != "$hit" ] || by_int "$target"; then lost=1
 fi
 [ "$lost" ] || return
 if [ "$target" != "$leader" ] && ! by_int "$target" "$leader"; then hit=; else hit=$target; fi
 group_kill INT
}
look() { # how the shell is: state, whether it waits for commands, which program; one that is suspended goes on
 fronts || { answer=gone; return; }
 [ "$own" != T ] || kill -s CONT "$leader"
 waits=0; [ "$own" != S ] || ! [ "/proc/$leader/fd/0" -ef "$d/in" ] || waits=1
 answer="$own $waits ${image:-0}"
}
is_tty() { [ "/proc/$1/fd/$2" -ef "$tty" ] || [ "/proc/$1/fd/$2" -ef /dev/tty ]; }
waiting() { # whether the foreground reads the terminal: "read" is certain, "poll" is not
 wait=no; modes; fronts || return; target=$front; [ "$target" ] || return
 for one in /proc/[0-9]*; do
  one=${one#/proc/}; stat "$one" && [ "$group" = "$target" ] && [ "$state" != T ] || continue
  for task in "/proc/$one/task/"*; do
   if read -r call first second limit rest <"$task/syscall"; then
    case $machine:$call in
    x86_64:0|x86_64:19|aarch64:63|aarch64:65|riscv64:63|riscv64:65)
     is_tty "$one" $((first)) && wait=read && return;;
    x86_64:7|x86_64:271|aarch64:73|riscv64:73)
     ready "$one" "$first" "$second" && wait=poll || continue
     case $second:$call:$limit in 0x1:7:0xffffffff|0x1:*:0x0) wait=read; return;; esac;;  # as busybox reads
    esac
   else
    read -r call <"$task/wchan"
    case $call in n_tty_read|wait_woken) is_tty "$one" 0 && wait=poll;; esac
   fi
  done
 done
}
ready() { # whether poll's array of $3 has the terminal in it
 count=$(($3)); [ $count -le 16 ] || count=16
 set -- "$1" $(dd "if=/proc/$1/mem" bs=8 "skip=$(($2 / 8))" "count=$count" | od -An -v -t d4)
 of=$1; shift
 while [ $# -gt 1 ]; do [ "$1" -ge 0 ] && [ $(($2 & 65)) != 0 ] && is_tty "$of" "$1" && return; shift 2; done
 return 1
}
reset() { # $1: "none" was typed, "any" number of keys that may wait unread, or that number, as it is on its way
 case $1 in
 none) ;;
 any) (stty -icanon -echo min 0 time 0 <"$tty"; cat <"$tty" >/dev/null);;
 *) (stty -icanon -echo min 0 time @LATE <"$tty"; dd bs=1 "count=$1" <"$tty" >/dev/null
  stty min 0 time 0 <"$tty"; cat <"$tty" >/dev/null);;
 esac
 [ "$(stty -g <"$tty")" = "$sane" ] || (stty "$sane" <"$tty")
}
"""

CONTROL = (
    (
        r"""umask 077; trap '' HUP INT QUIT TERM PIPE
exec 3>&2 2>/dev/null
say() { printf ':session-magics: %s\n' "$*" >&3; }
spaces=$IFS d= left=1 leader= since= feeder= leads= host= strays= hit= asked=" " tty=/dev/null hangup=
"""
        + PROCESSES
        + LOOKING
        + r"""
read -r name cookie hangup machine || exit 1
if [ "$name" = end ]; then finish; say 0 $members; exit; fi
machine=$(uname -m)
for one in @PLACES; do mkdir -m 700 "$one/$name" && d=$one/$name && break; done
case $d in "") say 0 failed no directory can be made there; exit 1;; /*) ;; *) d=$PWD/$d;; esac
mkfifo "$d/in" "$d/records" || { say 0 failed no FIFO can be made there; rm -rf "$d"; exit 1; }
exec 6<>"$d/in" 7<>"$d/records"  # both at once: what is written to a FIFO that nobody has open is lost
cat <&7 3>&- 6>&- 7>&- &
reader=$!
exec >/dev/null
say 0 ready "$d"
while read -r verb number one two; do
 case $verb in
 F) printf %b "$two" >"$d/$one";;
 A) printf %b "$two" >>"$d/$one";;
 D) printf %b "$two" >&6;;
 Q) { cat "$d/$one" >&6; rm -f "$d/$one"; } 3>&- & feeder=$!;;
 T) leader=$one tty=$two; read -r sane <"$d/sane"; stat "$leader" && leads=$session since=$tick host="$parent $session"
    [ "$leads" = "$leader" ] && host=$parent; say "$number" "${image:-0}";;
 R) reset "$one";;
 S) (stty rows "$one" cols "$two" <"$tty");;
 P) say "$number";;
 X) left=; break;;
 L) look; say "$number" "$answer";;
 W) waiting; say "$number" "$wait" "$echo" "$canonical";;
 I) answer=key; interrupt "$one"; say "$number" "$answer";;
 M) missed;;
 N) kill -s KILL "$leader";;
 K) how=$one; [ "$how" = list ] || carriers
    tree
    if [ "$members" = " " ]; then carriers; [ -z "$strays" ] || tree; fi
    alive=; for each in $members; do alive="$alive ${each%%:*}"; done
    case $how in
    ask) for each in $members; do
      this=${each%%:*}
      case $asked in *" $this:${each##*:} "*) ;; *)
       asked="$asked$this:${each##*:} "
       if [ "$hangup" = 1 ] && [ "$this" = "$leader" ]; then kill -s HUP "$this"; else kill -s TERM "$this"; fi;;
      esac
      case $each in *:T:*|*:t:*) kill -s CONT "$this";; esac
     done;;
    force) freeze_and_kill;;
    esac
    say "$number" $alive;;
 esac
done
[ -z "$left" ] || finish
kill -s KILL "$reader" $feeder
rm -rf "$d"
"""
    )
    .replace("@PLACES", PLACES)
    .replace("@LATE", str(LATE))
)
"""The control script."""


def quoted(text: bytes) -> bytes:
    """The bytes as one word of a shell."""
    return b"'" + text.replace(b"'", b"'\\''") + b"'"


def escaped(data: bytes) -> bytes:
    """The bytes as the last word of a line, for ``printf %b``: plain ASCII, and spaces inside only.

    Some shells read a pipe byte by byte, so what can stay short does.
    """
    text = b"".join(PLAIN[one] for one in data)
    if text.startswith(b" "):
        text = SPACE + text[1:]
    return text[:-1] + SPACE if text.endswith(b" ") else text


PLAIN = [bytes((one,)) if 32 <= one < 127 and one != 92 else b"\\0%03o" % one for one in range(256)]
SPACE = b"\\0040"


def run_file(directory: bytes, size: tuple[int, int], marks: tuple[bytes, bytes], *, raw_lines: bool) -> bytes:
    """What the terminal script reads: it sets the modes, starts the program in the foreground, and tells its end."""
    rows, columns = size
    lines = b"-onlcr" if raw_lines else b"onlcr"
    begin, end = (one.replace(b"\033", b"\\033").replace(b"\007", b"\\007") for one in marks)
    return b"""
tty=$(tty) || exit
exec 2>>%(d)s/err
stty sane noflsh %(lines)s rows %(rows)d cols %(columns)d; stty -g >%(d)s/sane
printf '%(begin)s'
st= got=
fin() {
 trap '' TTOU; trap - EXIT
 if [ -z "$st" ] || [ "$got" ]; then how="signal 2"
 elif [ "$st" -gt 128 ] && [ -s %(d)s/err ]; then how="signal $((st & 127))"; else how="code $st"; fi
 printf '%(end)s'; printf '\\001Z\\t0\\t%%s\\0' "$how" 1<>%(d)s/records
}
stopped() { read -r pid _ <%(d)s/leader && read -r _ _ state _ <"/proc/$pid/stat" && [ "$state" = T ]; } 2>/dev/null
trap fin EXIT; trap got=1 INT; trap : HUP TERM QUIT
set -m; : >%(d)s/err
sh %(d)s/child "$tty"; st=$?
while [ "$st" -gt 128 ] && stopped; do : >%(d)s/err; got=; fg >/dev/null; st=$?; done
: ; exit 0
""" % {
        b"d": quoted(directory), b"lines": lines, b"rows": rows, b"columns": columns, b"begin": begin, b"end": end,
    }  # fmt: skip


def child_file(
    directory: bytes,
    argv: Sequence[bytes],
    env: Mapping[bytes, bytes],
    unset: Sequence[bytes],
    cwd: bytes,
    *,
    shell: bool,
) -> bytes:
    """What becomes the program."""
    where = quoted(directory + b"/records")
    program = quoted(argv[0])
    lines = [
        b"fail() { printf '\\001N\\t0\\t%%s\\0' \"$1\" 1<>%s; exit 127; }" % where,
        b'printf \'%%s %%s\\n\' "$$" "$PPID" >%s' % quoted(directory + b"/leader"),
        b"tty=$1; exec 2>&1; set --",
    ]
    if cwd:
        lines.append(b"cd -- %s 2>/dev/null || fail %s" % (quoted(cwd), quoted(b"no such directory: " + cwd)))
    lines += [b"unset %s" % one for one in unset]
    lines += [b"export %s=%s" % (name, quoted(value)) for name, value in env.items()]
    lines += [
        b"command -v %s >/dev/null 2>&1 || fail %s" % (program, quoted(b"no such file or directory: " + argv[0])),
        b'printf \'\\001Y\\t0\\t%%s %%s\\0\' "$$" "$tty" 1<>%s' % where,
        b"exec %s%s" % (b" ".join(map(quoted, argv)), b" <" + quoted(directory + b"/in") if shell else b""),
    ]
    return b"\n".join(lines) + b"\n"
