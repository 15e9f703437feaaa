"""Whatever a cell does to its shell: its status is true, and the next cell works."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from pathlib import Path

import psutil
import pytest

from rounds import rounds, some, until
from session_magics.holder import processes
from session_magics.model import Running
from talk import Talk, talk

SHELLS = ["bash", "zsh", "dash"]
NEXT = "PATH=/bin:/usr/bin; echo \"$keep\"; sh -c 'exit 7'"

# What a cell may do without losing the shell or its state: text and status, by the shells that have it.
HARMLESS = {
    "bash zsh dash": [
        ("set -C", 0), ("set -f", 0), ("set -u", 0), ("set -o vi", None), ("set -o emacs", None),
        ("alias builtin=false eval=false command=false printf=false set=false trap=false", 0),
        ("IFS=; false", 1), ("IFS=abcdef; false", 1), ("umask 777", 0), ("exec 0</dev/null", 0),
        ("exec 2>&-", 0), ("ulimit -f 0", 0),
        ("trap '' INT", 0), ("trap 'echo INT' INT; kill -INT $$", 0),
        ("trap - EXIT", 0), ("trap 'echo bye' EXIT", 0), ("stty raw -echo", 0), ("stty -isig", 0),
        ("LC_ALL=C; printf '\\377\\303\\n'", 0), ("unset HOME; cd", None), ("cd /nonexistent", None),
        ("mkdir gone; cd gone; rmdir ../gone", 0), ("PS1='$(echo one)' PS2=two; echo a", 0),
        ("set -- a b; shift", 0), ("kill -TERM $$; kill -QUIT $$", 0), ("set -o ignoreeof", None),
        ("(sleep .1; kill -CONT $$) & kill -STOP $$", 0), ("kill -STOP $$", 0), ("TMOUT=1", 0), ("readonly IFS", 0),
        ("sleep .05 & wait", 0), ("sleep 3 &", 0), ("set +m", 0), ("true & echo a", 0), ("false | true", 0),
        ("exec 3>&1 4>&1 5>&1 6>&1 7>&1 8>&1 9>&1", 0), ("unset PATH", 0), ("set -m; (exit 3)", 3),
        ("ENV=/x BASH_ENV=/x ZDOTDIR=/x CDPATH=/ GLOBIGNORE='*'", 0), ("echo 'unclosed", None), ("echo $((1/0))", None),
    ],
    "bash zsh": [
        ("eval() { echo no; }; printf() { echo no; }; .() { echo no; }; trap() { :; }; set() { :; }", 0),
        ("coproc cat", 0), ("suspend", 0), ("break", None), ("return 3", 3), ("set -k", 0),
        ("readonly PS1=x PS2=y", None),
        ("sleep 3 & disown", 0), ("logout", None), ("echo *.none-such", None),
    ],
    "bash": [
        ("set -o posix", 0), ("shopt -s extdebug", 0), ("set -T", 0), ("set -E", 0), ("set -n", None), ("set -b", 0),
        ("enable -n printf", 0), ("enable -n test [ echo kill pwd", 0), ("ulimit -n 12", 0), ("POSIXLY_CORRECT=1", 0),
        ("PS0='$(echo zero)'", 0), ("readonly PS0=x", 0), ("PROMPT_COMMAND=false", 0), ("PROMPT_COMMAND='echo pc'", 0),
        ("PROMPT_COMMAND=('echo 1' 'false')", 0), ("readonly PROMPT_COMMAND='echo ro'", 0), ("set -o history", 0),
        ("shopt -s failglob nullglob lastpipe", 0), ("bind 'set completion-ignore-case on' 2>/dev/null", None),
        ("shopt -u expand_aliases", 0), ("trap 'echo ret' RETURN; trap - RETURN", 0), ("declare -i __sm_s=5", 0),
        ("exec nonexistent-zz", None),
    ],
}  # fmt: skip

# What ends the shell: text and status. It comes back, and exported variables with it.
ENDING = {
    "bash zsh dash": [
        ("exit 5", 5), ("set -e; (exit 6)", 6), ("kill -9 $$", -9), ("exec sh -c 'exit 9'", 9),
        ("trap 'exit 5' INT; kill -INT $$; sleep 1", 5), ("trap 'exit 4' EXIT; exit 3", 4),
        ("exec 1>&- 2>&-; exit 3", 3),
        ("unset -f __sm_e __sm_x", -9), ("unset __sm_fifo", -9), ("trap - EXIT; exit 3", 3),
    ],
    "bash": [
        ("trap false DEBUG; shopt -s extdebug; false", -9), ("ulimit -n 5", -9), ("set -r", -9),
        ("builtin() { :; }; command() { :; }", -9), ("kill -HUP $$; sleep 5", -1), ("kill -USR1 $$; sleep 5", -10),
    ],
}  # fmt: skip

LOOPS = [
    *("while :; do :; done", "sleep 60", "while true; do /bin/true; done", "sleep .01", "echo x", "cat", "true"),
    *("x=$(sleep 60)", "for i in 1 2 3 4 5 6 7; do sleep .005; echo $i; done", "sleep 60 | cat", "read v"),
    "(while :; do :; done)",
]


def present(shell: str) -> str:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    return shell


def of(table: dict[str, list[tuple[str, int | None]]], shell: str) -> list[tuple[str, int | None]]:
    return [one for shells, cases in table.items() if shell in shells.split() for one in cases]


def fresh(say: Talk) -> None:
    assert say("keep=yes; export EXPORTED=1")[0] == 0


@pytest.mark.timeout(180)
@pytest.mark.parametrize("shell", SHELLS)
def test_what_a_cell_changes_in_its_shell_does_not_break_it(root: Path, tmp_path: Path, shell: str) -> None:
    present(shell)
    wrong = []
    for number, (text, wanted) in enumerate(some(of(HARMLESS, shell), 3)):
        place = tmp_path / str(number)
        place.mkdir()
        with talk(root, shell, cwd=place) as say:
            fresh(say)
            status, output = say(text)
            if wanted is not None and status != wanted:
                wrong.append(f"{text}: status {status}, {output!r}")
            status, output = say(NEXT)
            if status != 7 or output.splitlines()[:1] != [b"yes"] or say.notice:
                wrong.append(f"{text}: the next cell gave {status}, {output!r}, {say.notice}")
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_that_ends_says_how_and_comes_back(root: Path, shell: str) -> None:
    present(shell)
    wrong = []
    for text, wanted in some(of(ENDING, shell), 3):
        with talk(root, shell) as say:
            fresh(say)
            status, output = say(text)
            told = say.notice
            if status != wanted or "restarted" not in told:
                wrong.append(f"{text}: status {status}, {output!r}, {told!r}")
            if say('echo "$EXPORTED:$keep"') != (0, b"1:\n"):
                wrong.append(f"{text}: not the environment of before")
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("shell", SHELLS)
def test_interrupts_at_random_moments_break_nothing(root: Path, shell: str) -> None:
    present(shell)
    moments = random.Random(7)
    with talk(root, shell) as say:
        fresh(say)
        for number in range(rounds(20, 400)):
            text, after = moments.choice(LOOPS), moments.random() * 0.03
            say(text, interrupt_after=after)
            where = f"{number}: {text} after {after * 1000:.1f} ms"
            assert say.result is not None and say.result.state == "done" and not say.notice, where
            assert say("echo OK $keep") == (0, b"OK yes\n"), where


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_tmout_does_not_end_an_idle_shell_and_keeps_its_value(root: Path, shell: str) -> None:
    present(shell)
    with talk(root, shell) as say:
        fresh(say)
        say("TMOUT=1")
        pid = running(say).pid
        passed = time.monotonic() + 1.4  # past the second after which the shell would log out
        until(lambda: time.monotonic() > passed)
        assert say("echo $TMOUT $keep") == (0, b"1 yes\n")
        assert running(say).pid == pid


def running(say: Talk) -> Running:
    state = say.session.state()
    assert isinstance(state, Running)
    return state


@pytest.mark.parametrize("shell", SHELLS)
def test_a_trap_on_int_of_the_user_is_kept(root: Path, shell: str) -> None:
    present(shell)
    with talk(root, shell) as say:
        say("trap 'echo caught' INT")
        shell_itself = psutil.Process(running(say).pid)
        with contextlib.closing(say.session.cell("sleep 60")) as cell:
            # Once it runs: an earlier interrupt is the trap's, and the shell goes on with the program.
            until(lambda: [one.name() for one in shell_itself.children()] == ["sleep"])
            cell.interrupt()
            until(lambda: (cell.receive(0.1), cell.result)[1])
        assert cell.result is not None and cell.result.returncode == 130
        assert say("kill -INT $$; echo b") == (0, b"caught\nb\n")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_stopped_shell_is_woken(root: Path, shell: str) -> None:
    present(shell)
    with talk(root, shell) as say:
        fresh(say)
        cell = say.session.cell("sleep .2; echo done")
        try:
            pid = running(say).pid
            while cell.begin is None:
                cell.receive(1)
            os.kill(pid, signal.SIGSTOP)
            while cell.result is None:
                cell.receive(1)
        finally:
            cell.close()
        assert processes.entry(pid) is not None
        assert say("echo $keep") == (0, b"yes\n")


def test_a_cell_of_a_megabyte_and_one_of_many_lines_arrive_whole(root: Path) -> None:
    with talk(root, "bash") as say:
        assert say("printf %s '" + "x" * 1_000_000 + "' | wc -c")[1].strip() == b"1000000"
        assert say("\n".join(f"v{n}={n}" for n in range(5000)) + "\necho $v4999") == (0, b"4999\n")
