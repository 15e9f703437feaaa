"""Reports about shells: their start-up files, options and traps, how they come to be, and how they end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import leaks
from others import PROJECT, in_another_process
from rounds import DEADLINE, until
from talk import shell

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc")


def test_bash_kernel_147_a_start_up_file_that_prints_sequences_changes_no_status() -> None:
    """A sequence that a start-up file prints before each command was shown, and made failures."""
    rc = "precmd() { printf '\\033]777;precmd\\007'; }\nPROMPT_COMMAND=precmd\nPS0='\\033]777;preexec\\007'"
    with shell("bash", rc) as say:
        for wanted in (0, 3, 0):
            status, output = say(f"echo a; (exit {wanted})")
            assert status == wanted and re.sub(rb"\x1b\]777;\w+\x07", b"", output) == b"a\n"


def test_openhands_9147_the_first_command_waits_for_a_slow_start() -> None:
    """The first command after the start was given up at once."""
    with shell("bash", "sleep .4; export FROM_RC=1") as say:
        assert say("echo $FROM_RC") == (0, b"1\n")


def test_codex_11941_an_exit_trap_of_the_start_up_file_speaks_at_the_end_alone() -> None:
    """It spoke after every command."""
    with shell("bash", "trap 'echo bye' EXIT") as say:
        assert say("echo a") == (0, b"a\n") and say("false") == (1, b"")
        assert say("exit 4") == (4, b"bye\n")


def test_codex_7846_output_through_a_process_of_its_own_is_waited_for_by_nobody() -> None:
    """The end of that process was waited for, which lives as long as the shell."""
    with shell("bash") as say:
        assert say("exec > >(tee -a f) 2>&1 && echo hi")[0] == 0
        until(lambda: b"hi\n" in say.session.output())
        assert say("echo two")[0] == 0
        until(lambda: say.session.output().endswith(b"two\n") or b"two\n" in say.session.output())


def test_codex_21994_children_of_a_killed_host_end_with_it(root: Path) -> None:
    """They outlived it."""
    code = "s = r.shell('main', rc=False); run_cell(s, 'sleep 1000 & echo $! >pid'); print('up', flush=True); input()"
    host = in_another_process(root, f"import os; os.chdir({str(root)!r})\n{code}")
    assert host.stdout is not None and host.stdout.readline() == "up\n"
    child = psutil.Process(int((root / "pid").read_text()))
    host.kill()
    host.communicate()
    assert not leaks.outlived([child], DEADLINE)


FEW_TERMINALS = """
import os, sys
sys.path.insert(0, sys.argv[1])
from session_magics import Command, Registry, StartFailed
r = Registry()
started = []
try:
    for number in range(9):
        started.append(r.start(f"s{number}", Command(("sleep", "1000"))))
except StartFailed as error:
    print(len(started), error.reason)
print(all(session.info().running for session in started))
started[0].stop()
print(r.start("again", Command(("true",))).wait(10))
r.stop_all(now=True)
"""


def test_codex_7219_where_there_are_no_terminals_left_the_start_says_so(root: Path) -> None:
    """Hundreds of sessions took all terminals, and what came then was a riddle."""
    few = "mount -t devpts -o newinstance,ptmxmode=0666,max=4 devpts /dev/pts && "
    few += "mount --bind /dev/pts/ptmx /dev/ptmx && exec "
    apart = ["unshare", "--mount", "sh", "-c", few + '"$@"', "sh"]
    if subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("a devpts of its own needs root")
    env = os.environ | {"SESSION_MAGICS_HOME": str(root)}
    words = [*apart, sys.executable, "-c", FEW_TERMINALS, PROJECT]
    done = subprocess.run(words, capture_output=True, text=True, env=env, timeout=40)
    assert done.stdout.startswith("4 no terminal to be had: "), done
    assert done.stdout.splitlines()[1:] == ["True", "0"]


def test_claude_code_2383_a_pipe_in_zsh_without_multios() -> None:
    """Something put behind the command took the place of the pipe."""
    with shell("zsh") as say:
        assert say("unsetopt multios; echo foo | grep foo") == (0, b"foo\n")


def test_claude_code_47689_a_shell_of_one_command_is_told_or_goes_on() -> None:
    """With that option on there was no output any more."""
    with shell("bash") as say:
        say("set -t")
        assert say("echo next") == (0, b"next\n")
        say("set +t; echo whole") if not say.notice else None
        assert say("echo more") == (0, b"more\n")


def test_claude_code_1872_a_broken_zsh_start_up_file_breaks_no_cell() -> None:
    """What was copied from a start-up file did not parse."""
    rc = "alias -g G='| grep'\nalias ll='ls -l'\n'no such'\nf() { print -r -- ${(q)1} }\nsetopt extended_glob"
    with shell("zsh", rc) as say:
        assert say("f 'a b'; alias ll; echo one G one") == (0, b"a\\ b\nll='ls -l'\none\n")


def test_vscode_146873_a_debug_trap_of_the_user_is_kept_and_obeyed() -> None:
    """It was replaced, or what it returned did not count."""
    with shell("bash") as say:
        say("trap '[[ $BASH_COMMAND != \"echo skipped\" ]]' DEBUG; shopt -s extdebug")
        assert say("echo seen; echo skipped; echo on") == (0, b"seen\non\n")
        assert b"skipped" in say("trap -p DEBUG")[1]


def test_warp_5456_a_shell_that_ends_at_an_error_comes_back_and_says_so() -> None:
    """The terminal was gone."""
    with shell("bash") as say:
        assert say("set -e") == (0, b"")
        assert say("false; echo not reached") == (1, b"")
        assert "restarted" in say.notice
        assert say("echo back") == (0, b"back\n")


def test_aider_2415_aliases_are_there_and_the_directory_is_the_one_asked_for() -> None:
    """Aliases were missing, and the start-up file had moved the directory."""
    with shell("bash", "alias hello='echo from-alias'\ncd /") as say:
        assert say("hello; basename $PWD") == (0, b"from-alias\nhome\n")
