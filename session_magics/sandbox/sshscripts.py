"""What runs on the far side of ssh: scripts for any POSIX shell (dash, bash, busybox, ksh).

They print lines that begin with a mark, which is random and new for each use: what comes before the first is the noise
of a login shell's start-up files.
"""

from __future__ import annotations

from session_magics.holder.trees import RUN
from session_magics.model import Command
from session_magics.sandbox.quoting import READ_LINE, entering, executing, input_line, login_line

_RUNNER = """\
[ -z "$BASH_VERSION" ] || set +o posix
refuse() {{ printf '%s refused %s\\n' {mark} "$1"; exit 0; }}
{entering}
printf '%s begin %s\\n' {mark} $$; printf '%s begin\\n' {mark} >&2
{wait}
exec 3<&0 4>&2 5>&1
{{ (
{executing}
) <&3 >&5 2>&4 3<&- 4>&- 5>&-
echo "status $?"; }} 2>&1 </dev/null | {{
said=
while IFS= read -r line; do case $line in "status "*) code=${{line#status }};; ?*) said="$said$line ";; esac; done
[ -n "$code" ] || {{ printf '%s lost\\n' {mark} >&4; exit; }}
kind=exit
if [ -n "$said" ]; then
  if [ "$code" -gt 128 ]; then kind=signal code=$((code - 128)); else printf '%s\\n' "$said" >&4; fi
fi
{end}
printf '%s %s %s\\n' {mark} $kind $code >&4
}} || printf '%s lost\\n' {mark} >&4
"""
"""Runs a program in the foreground, as those in the background ignore interrupts. That a signal ended it, a shell tells
by a line in its own error output (bash only if it is not in its POSIX mode); of SIGINT and SIGPIPE no shell does."""

_WATCHDOG = """\
carrying() {{
  if [ -r /proc/self/environ ]; then
    for file in $(grep -lszF "{variable}=$1" /proc/[0-9]*/environ); do
      file=${{file#/proc/}}; printf '%s ' "${{file%%/*}}"
    done
  else
    ps axwwE -o pid= -o command= 2>/dev/null | while read -r pid rest; do
      case $rest in *"{variable}=$1"*) printf '%s ' "$pid";; esac
    done
  fi
}}
slay() {{
  [ -z "$2" ] || kill -KILL "-$2" 2>/dev/null
  rounds=0
  while pids=$(carrying "$1"); [ -n "$pids" ] && [ $rounds -lt 20 ]; do
    kill -KILL $pids 2>/dev/null; rounds=$((rounds + 1))
  done
}}
trap '' HUP INT TERM PIPE
runs=
printf '%s up\\n' {mark}
while read -r verb run group; do
  case $verb in
    begin) runs="$runs $run";;
    kill) slay "$run" "$group"; printf 'killed %s\\n' "$run";;
    end) rest=; for one in $runs; do [ "$one" = "$run" ] || rest="$rest $one"; done; runs=$rest;;
  esac
done
for run in $runs; do slay "$run" ''; done
"""
"""Lives as long as a connection. Told which commands run, it kills them on demand, and all of them once its input
ends, as it does with the connection, however that ends. A round repeats as long as something forks away."""


def run_line(run: str) -> str:
    """The command line that waits for a command of ``run_script`` on its input; ``run`` marks its processes."""
    return login_line(READ_LINE, {RUN: run})


def run_script(command: Command, mark: str, root: str | None, *, live: bool) -> bytes:
    """A command as input for ``run_line``; what follows it is the program's.

    Output: ``MARK begin GROUP`` and the program's (or ``MARK refused WHY``), at its end ``MARK end``. Error output:
    ``MARK begin``, the program's, ``MARK exit CODE`` or ``MARK signal NUMBER`` (or ``MARK lost``: shells of ours were
    killed). ``live``: the program is started when one more line of input has come, and there is no ``MARK end``.
    """
    return input_line(
        _RUNNER.format(
            mark=mark,
            entering=entering(root, command.cwd),
            executing=executing(command),
            wait="IFS= read -r line || exit" if live else "",
            end="" if live else f"printf '%s end\\n' {mark} >&5",
        )
    )


def plain_script(command: Command, root: str | None) -> str:
    """A script that becomes the program in its directory; it says so and has the status 126 where that cannot be."""
    refuse = 'refuse() { echo "no command can run there: the directory is $1" >&2; exit 126; }'
    return f"{refuse}\n{entering(root, command.cwd)}\n{executing(command)}"


def watchdog_line(mark: str) -> str:
    """The command line of what watches over a connection's commands."""
    return login_line(_WATCHDOG.format(mark=mark, variable=RUN))
