"""Completion leaves the user's shell as it was: full dumps before and after, and functions that hang."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rounds import until
from session_magics.completion import asking
from session_magics.completion.answering import Completer
from talk import Talk, talk

# Seconds for an answer, and of them the part for a command's own completion where that never ends.
PATIENCE = 20.0
SHARE = 0.03
# What changes by itself, or by the dump's own commands.
VOLATILE = re.compile(
    r"SECONDS|RANDOM|LINENO|EPOCH|BASHPID|HISTCMD|BASH_COMMAND|TTYIDLE|ERRNO|__sm|CMD_DURATION|status_generation|\t/usr/|\t/bin/"
)
TRAPS = "trap 'echo INT' INT; trap 'echo EXIT >>log' EXIT"
SETUP = {
    "bash": f"set -T; {TRAPS}; trap 'echo D >>log' DEBUG; trap 'echo E >>log' ERR; declare -A m=([a]=1)",
    "zsh": f"setopt extended_glob; {TRAPS}; trap 'echo D >>log' DEBUG; trap 'echo E >>log' ZERR; typeset -A m=(a 1)",
    "dash": TRAPS,
    "fish": "function on_x --on-variable x; echo V >>log; end; function p --on-event fish_postexec; echo P >>log; end",
}
DUMP = {
    "bash": "declare -p; declare -f; alias; trap; set -o; shopt; jobs; history 3 | cut -c 8-; umask; complete -p; dirs;"
    " cat log",
    "zsh": "typeset -p; functions; alias; trap; setopt; jobs; fc -ln -3; umask; dirs; cat log",
    "dash": "set; alias; trap; set -o; jobs; umask; cat log",
    "fish": "set; functions; jobs; history; bind -a; complete; abbr; cat log",
}
FIRST = {"fish": 'echo "$status $pipestatus"', "dash": 'echo "$? $_ $!"', "zsh": 'echo "$? $_ $!" "$pipestatus"'}
BEFORE = "echo a last; true | false"
TEXTS = ("git che", "ll", "ls lo", "echo $x", "ls ~ro", "nosuch ", "cat <l")


def dump(say: Talk, shell: str) -> list[str]:
    first = FIRST.get(shell, 'echo "$? $_ $!" "${PIPESTATUS[*]}"')
    _, output = say("; ".join([first, *(f"{one} 2>&1" for one in DUMP[shell].split("; "))]))
    return [line for line in output.decode().splitlines() if not VOLATILE.search(line)]


@pytest.mark.parametrize("shell", SETUP)
def test_nothing_of_the_shell_changes(shell: str, root: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    with talk(root, shell, cwd=root) as say:
        say(
            f"sleep 1000 &\nalias ll 'ls -l'; set x 5; {SETUP['fish']}"
            if shell == "fish"
            else "sleep 1000 &\nalias ll='ls -l'; x=5"
        )
        say("true" if shell == "fish" else SETUP[shell])
        dumps = []
        for texts in ((), (), TEXTS):
            say(BEFORE)
            say("rm -f log; touch log")
            say(BEFORE)
            log = say.session.output()
            for text in texts:
                Completer(PATIENCE).complete(text, len(text), say.session, shell)
            assert say.session.output() == log, "something was shown"
            dumps.append(dump(say, shell))
        assert dumps[1] == dumps[0], "this test does not tell noise from change"
        assert dumps[2] == dumps[0]
        assert any(shell == "fish" or line.split()[:1] == ["1"] for line in dumps[0][:1]), dumps[0][:1]
        say("kill $last_pid" if shell == "fish" else "kill $!")


@pytest.fixture
def bash(root: Path) -> Iterator[Talk]:
    with talk(root, "bash", cwd=root) as say:
        yield say


@pytest.mark.parametrize(
    "options", ["", "set -e", "set -x", "set -u", "set +m", "set -f; IFS=:", "alias printf=false local=false"]
)
def test_options_of_the_shell_do_not_matter(bash: Talk, options: str) -> None:
    bash("touch 'one file'; complete -W 'apple' eat")
    bash(options)
    log = len(bash.session.output())
    for text, item in (("ls on", "one\\ file"), ("eat ", "apple"), ("mkfif", "mkfifo"), ("git che", "checkout")):
        if "git" in text and not shutil.which("git"):
            continue
        found = Completer(PATIENCE).complete(text, len(text), bash.session, "bash")
        assert item in [one.text for one in found.items]
    assert bash.session.output()[log:] == b""
    assert bash.notice == ""


def test_a_function_that_hangs_is_ended_and_files_are_offered(bash: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "SHELL_SHARE", SHARE)
    bash("_h() { sleep 987; }; complete -F _h hang; _s() { while :; do :; done; }; complete -F _s spin; touch here")
    bash("_t() { trap '' TERM INT; while :; do :; done; }; complete -F _t tough; v=7; (exit 4)")
    shell = psutil.Process(bash.session.info().pid)
    for command in ("hang", "spin", "tough"):
        found = Completer(PATIENCE).complete(f"{command} he", len(command) + 3, bash.session, "bash")
        assert [one.text for one in found.items] == ["here"]
        until(lambda: not shell.children())
        assert bash("echo $? $v; (exit 4)") == (4, b"4 7\n")
    until(lambda: not [one for one in psutil.process_iter(["cmdline"]) if one.info["cmdline"] == ["sleep", "987"]])
