"""What a shell's own history has, and what ``%session history`` tells."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from session_magics import Registry, UsageMistake
from session_magics.history import History, history
from session_magics.model import Command
from session_magics.run import run_hidden
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_verb
from talk import Talk, talk

needs_zsh = pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
LOOP = "for i in 1 2; do\n echo $i\ndone\n"


def lines(say: Talk, text: str) -> list[str]:
    return say(text)[1].decode().splitlines()


def test_the_history_of_bash_has_the_cells_and_nothing_of_ours(root: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".bash_history").write_text("before\n")
    (home / ".bashrc").write_text("HISTFILE=~/.bash_history; PROMPT_COMMAND='history -a'\n")
    with talk(root, "bash", rc=True, env={"HOME": str(home)}, cwd=tmp_path) as say:
        say("echo one")
        run_hidden(say.session, "echo ours")
        say(LOOP)
        say("   \n")
        assert lines(say, "history") == [
            "    1  echo one",
            "    2  for i in 1 2; do",
            " echo $i",
            "done",
            "    3  history",
        ]
        assert lines(say, "fc -ln -1") == ["\t history"]
        say("echo two")
        assert lines(say, "fc -s") == ["echo two", "two"]
        say("echo three")
        assert lines(say, "history -p '!!'") == ["echo three"]
        assert lines(say, "echo hello! !x '!!'") == ["hello! !x !!"]
        say("trap : DEBUG; trap : ERR")
        say("echo four")
        say("trap - DEBUG ERR; HISTCONTROL=ignorespace HISTIGNORE='pwd'")
        say(" echo secret")
        say("pwd")
        say("if")  # a mistake is in it too
        assert [line[7:] for line in lines(say, "history 4")] == [
            *("echo four", "trap - DEBUG ERR; HISTCONTROL=ignorespace HISTIGNORE='pwd'", "if", "history 4"),
        ]
        assert (home / ".bash_history").read_text() == "before\n"
        assert lines(say, f'HISTFILE={tmp_path}/own; history -w; tail -n 1 "$HISTFILE"')[0].startswith("HISTFILE=")


def test_a_bash_that_is_told_to_keep_and_expand_history_does_so_for_cells(root: Path) -> None:
    with talk(root, "bash") as say:
        say("set -o history")
        say("echo one")
        assert lines(say, "[[ -o history ]] && history 2") == [
            "    2  echo one",
            "    3  [[ -o history ]] && history 2",
        ]
        say("echo two; set +o history; set -H")
        assert lines(say, "echo '!!' x; echo hi")[-1] == "hi"
        assert lines(say, "!echo | cat") == ["echo '!!' x; echo hi | cat", "!! x", "hi"]
        assert say("!nosuch")[0] == 1
        say("set -x")
        assert lines(say, "echo !$")[0].startswith("echo -x")
        say("set +xH")
        assert lines(say, "echo a!!") == ["a!!"]
        assert not [line for line in lines(say, "history") if "__sm" in line or "nosuch" in line]


@needs_zsh
def test_the_history_of_zsh_has_the_cells_and_nothing_of_ours(root: Path, tmp_path: Path) -> None:
    (tmp_path / ".zshrc").write_text("HISTFILE=~/.zsh_history SAVEHIST=100 HISTSIZE=100\nsetopt share_history\n")
    (tmp_path / ".zsh_history").write_text("before\n")
    with talk(root, "zsh", rc=True, env={"HOME": str(tmp_path), "ZDOTDIR": None}, cwd=tmp_path) as say:
        say("echo one")
        run_hidden(say.session, "echo ours")
        say(LOOP)
        assert lines(say, "fc -ln 1") == ["echo one", r"for i in 1 2; do\n echo $i\ndone"]
        say("echo two")
        assert lines(say, "fc -e -") == ["echo two", "two"]
        say("setopt hist_ignore_space")
        say(" echo secret")
        assert not [line for line in lines(say, "history") if "__sm" in line or "secret" in line]
        say("(exit 3)")
        assert lines(say, "echo $?") == ["3"]
        assert (tmp_path / ".zsh_history").read_text() == "before\n"


@pytest.mark.parametrize("shell", ["ksh", "fish", "sh"])
def test_other_shells_leave_the_histories_of_the_user_alone(root: Path, tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    with talk(root, shell, env={"HOME": str(tmp_path), "XDG_DATA_HOME": None}, cwd=tmp_path) as say:
        assert say("echo one") == (0, b"one\n")
        assert say("env | grep HISTFILE")[0] == 1
    assert not list(tmp_path.rglob("*history"))


def test_the_verb_tells_status_duration_and_directory_also_of_what_has_ended(root: Path, tmp_path: Path) -> None:
    with talk(root, "bash", cwd=tmp_path) as say:
        say("echo one")
        say("cd /\nfalse")
        run_hidden(say.session, "echo ours")
        cell = say.session.cell("echo begun; read x")
        while cell.begin is None:
            cell.receive(1)
        found = history(say.session)
        assert [(one.text, one.status, one.state) for one in found] == [
            *(("echo one", 0, "done"), ("cd /", 1, "done"), ("echo begun; read x", None, "running")),
        ]
        assert [one.directory for one in found] == [str(tmp_path), "/", ""]
        assert all(0 <= one.seconds < 20 for one in found[:2])
        assert [one.began for one in found] == sorted(one.began for one in found)
        cell.close()
        say.session.stop(now=True)
        found = history(say.session)
        assert [one.state for one in found] == ["done", "done", "exited"]
        verbs = Verbs(Registry(root), lambda text: None)
        assert [one.text for one in verbs.value(parse_verb("history t -n 1"))] == ["echo begun; read x"]
        assert [one.status for one in verbs.value(parse_verb("history t --failed"))][:1] == [1]
        told = json.loads(str(verbs.call(parse_verb("history t -n 9 --json"))))
        assert [one["text"] for one in told["value"]] == [one.text for one in found]


def test_what_is_no_shell_has_no_history(root: Path) -> None:
    registry = Registry(root)
    session = registry.start("p", Command(("sleep", "60"), None, {}))
    with pytest.raises(UsageMistake, match="runs sleep and no shell"):
        history(session)
    registry.remove("p", force=True)


def test_a_history_shows_itself_as_a_table_and_escapes_what_it_shows(root: Path) -> None:
    with talk(root, "bash") as say:
        say("echo '<b>&'")
        say("(exit 3)")
        found = history(say.session)
        table = str(found).splitlines()
        assert table[0].split() == ["WHEN", "TOOK", "STATUS", "DIRECTORY", "COMMAND"]
        assert table[1].endswith("echo '<b>&'") and table[2].split()[2] == "3"
        assert "<b>" not in found._repr_html_() and "&lt;b&gt;&amp;" in found._repr_html_()
    assert str(History()) == "no commands"
