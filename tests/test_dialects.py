"""What is particular to one shell: fish as a whole, zsh's and bash's ways to keep things, POSIX shells by name."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rounds import rounds, until
from session_magics.holder.dialects import dialect
from session_magics.log import EventReader
from talk import Talk, talk

needs_fish = pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
needs_zsh = pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def fish(root: Path, home: Path) -> Iterator[Talk]:
    with talk(root, "fish", env={"HOME": str(home), "XDG_CONFIG_HOME": None}, cwd=home) as say:
        yield say


# ---------------------------------------------------------------- fish


@needs_fish
def test_fish_keeps_state_and_status_from_cell_to_cell(fish: Talk, home: Path) -> None:
    assert fish("set x 1; set -gx Y 2; function f; echo f$argv; end; mkdir d; cd d") == (0, b"")
    assert fish("f $x; sh -c 'echo $Y'; pwd; false") == (1, b"f1\n2\n" + f"{home}/d\n".encode())
    assert fish("echo $status; return 5") == (5, b"1\n")
    assert fish("echo $status; set -q __fish_config_dir; and echo fish") == (0, b"5\nfish\n")


@needs_fish
@pytest.mark.parametrize(
    ("text", "status", "output"),
    [
        ("", 0, b""),
        ("# only a comment", 0, b""),
        ("\n\n  echo a  \n\n", 0, b"a\n"),
        ("printf 'no newline'", 0, b"no newline"),
        ("echo 'tab\there' \"q'q\" \\\\ é✓", 0, "tab\there q'q \\ é✓\n".encode()),
        ("for i in 1 2\n  echo $i\nend", 0, b"1\n2\n"),
        ("printf 'a\\r\\nb\\rc\\tT\\n'", 0, b"a\r\nb\rc\tT\n"),
        ("printf '\\xff\\xfe\\n'", 0, b"\xff\xfe\n"),
        ("/bin/echo out; /bin/echo err >&2", 0, b"out\nerr\n"),
        ('read x </dev/null; echo "[$x]"', 0, b"[]\n"),
        ("test -t 0; and test -t 1; and test -t 2; and echo terminal", 0, b"terminal\n"),
        ("sh -c 'kill -9 $$'", 137, b""),
        ("seq 3 | string join +", 0, b"1+2+3\n"),
        ("echo (math 6 x 7)", 0, b"42\n"),
        ("kill -INT $fish_pid; echo never", 130, b""),
        ("sh -c 'exit 7'", 7, b""),
    ],
)
def test_fish_cells(fish: Talk, text: str, status: int, output: bytes) -> None:
    assert fish(text) == (status, output)
    assert fish("echo next") == (0, b"next\n")
    assert fish.result is not None and fish.result.exact and not fish.result.restarted


@needs_fish
@pytest.mark.parametrize("text", ['echo "abc', "echo (", "for", "if true", "end", "nonexistent-zz", "echo *.none-such"])
def test_fish_mistakes_fail_at_once_and_leave_the_session_whole(fish: Talk, text: str) -> None:
    fish("set kept yes")
    status, output = fish(text)
    assert status != 0 and output
    assert fish("echo $kept") == (0, b"yes\n")


@needs_fish
def test_fish_job_and_terminal_modes_are_those_of_a_terminal(fish: Talk) -> None:
    assert fish("stty | string match -r -- '-onlcr|raw|-echo ?$'") == (0, b"-onlcr\n")
    assert fish("stty raw -echo") == (0, b"")
    assert fish("stty -a | string match -ra -- '-?icanon|-?echo ' | string trim") == (0, b"icanon\necho\n")
    code = "import os; print(os.tcgetpgrp(0) == os.getpgrp(), os.isatty(0), os.ttyname(0).startswith('/dev/'))"
    assert fish(f'python3 -c "{code}"') == (0, b"True True True\n")
    assert fish("sleep 60 &") == (0, b"")
    status, output = fish("jobs; kill (jobs -p); wait")
    assert status == 0 and b"sleep 60 &" in output


@needs_fish
def test_fish_shows_and_keeps_nothing_of_what_is_typed(fish: Talk, home: Path) -> None:
    for text in ("echo one", "false", "echo 'x", "kill -INT $fish_pid"):
        fish(text)
    assert fish("history; echo end") == (0, b"end\n")
    log = fish.session.output()
    assert b"__sm" not in log and b"7788" not in log and b"echo one" not in log.replace(b"\necho 'x", b"")
    assert not [one for one in home.rglob("fish_history") if one.read_bytes()]


@needs_fish
@pytest.mark.parametrize(("text", "status"), [("exit 3", 3), ("false; exit", 1), ("function f; exit 4; end; f", 4)])
def test_fish_that_exits_comes_back_with_directory_and_environment(
    fish: Talk, home: Path, text: str, status: int
) -> None:
    fish("mkdir 'd e'; cd 'd e'; set -gx LIST a 'b  c' 'd\ne'; set -gx ODD 'q\\'\"$x\\\\'; set lost 1")
    got, output = fish(text)
    assert got == status and fish.result is not None and fish.result.state == "exited"
    assert output.replace(b"\033[30m\033(B\033[m", b"") == b""
    assert f"ended with status {status}; it was restarted in {home}/d e" in fish.notice
    assert fish("pwd; count $LIST; printf '%s|' $LIST $ODD; echo \"[$lost]\"") == (
        0,
        f"{home}/d e\n3\na|b  c|d\ne|q'\"$x\\|[]\n".encode(),
    )


@needs_fish
@pytest.mark.parametrize(("text", "status"), [("kill -9 $fish_pid", -9), ("exec sh -c 'exit 9'", 9)])
def test_fish_that_is_killed_or_replaced_comes_back(fish: Talk, home: Path, text: str, status: int) -> None:
    fish("mkdir d; cd d; set -gx KEPT yes")
    fish("true")
    assert fish(text)[0] == status
    assert fish("echo $KEPT; pwd") == (0, f"yes\n{home}/d\n".encode())


@needs_fish
@pytest.mark.parametrize("text", ["sleep 60", "while true; end", "while true; /bin/true; end", "sleep 60 | cat"])
def test_fish_interrupts_end_the_cell_only(fish: Talk, text: str) -> None:
    fish("set kept yes")
    for number in range(rounds(4, 15)):
        status, output = fish(text, interrupt_after=0.007 * number)
        assert output == b"" and status in (0, 130)  # 0: the first of a pipeline was hit before the last had begun
        assert fish("echo OK $kept") == (0, b"OK yes\n")


@needs_fish
@pytest.mark.parametrize("text", ["bind --erase --all", "fish_vi_key_bindings", "set fish_bind_mode insert"])
def test_fish_key_bindings_may_change(fish: Talk, text: str) -> None:
    fish(text)
    assert fish("echo one") == (0, b"one\n")
    assert fish("echo two") == (0, b"two\n")


@needs_fish
def test_fish_typed_text_that_nobody_read_is_no_command(fish: Talk, home: Path) -> None:
    cell = fish.session.cell("while not test -e go; sleep 0.02; end")
    try:
        while cell.begin is None:
            cell.receive(1)
        cell.send(b"touch made\n\x1e\x1f")
        (home / "go").touch()
        while cell.result is None:
            cell.receive(1)
    finally:
        cell.close()
    assert fish("echo next") == (0, b"next\n")
    assert not (home / "made").exists()


@needs_fish
def test_fish_reads_its_start_up_files_and_survives_what_they_do(root: Path, home: Path) -> None:
    config = home / ".config/fish"
    config.mkdir(parents=True)
    (config / "config.fish").write_text(
        "echo noise; set -g from_rc yes; set -gx IN_ENV 1\nfish_vi_key_bindings\n"
        "function fish_prompt; echo PROMPT; end\nfunction fish_greeting; echo GREETING; end\n"
    )
    with talk(root, "fish", rc=True, env={"HOME": str(home), "XDG_CONFIG_HOME": None}) as say:
        assert say("echo $from_rc $IN_ENV") == (0, b"yes 1\n")
        assert say("false; or echo b") == (0, b"b\n")


@needs_fish
def test_fish_whose_start_up_file_ends_it_runs_without_it(root: Path, home: Path) -> None:
    config = home / ".config/fish"
    config.mkdir(parents=True)
    (config / "config.fish").write_text("kill -9 $fish_pid\n")
    with talk(root, "fish", rc=True, env={"HOME": str(home), "XDG_CONFIG_HOME": None}) as say:
        assert say("echo a") == (0, b"a\n")
        assert "start-up file ended the shell" in say.notice


@needs_fish
def test_fish_commands_are_in_the_index(fish: Talk) -> None:
    fish("echo one")
    fish("sh -c 'exit 3'")

    def told() -> list[tuple[str, object]]:
        events, _ = EventReader(fish.session.directory).events()
        return [(one.kind, one.data.get("text", one.data.get("status"))) for one in events if "n" in one.data]

    until(lambda: len(told()) == 4, what=told)
    assert told() == [("begin", "echo one"), ("end", 0), ("begin", "sh -c 'exit 3'"), ("end", 3)]


@needs_fish
def test_a_long_fish_cell_arrives_whole(fish: Talk) -> None:
    text = "echo " + "x" * 200_000 + " | string length"
    assert fish(text) == (0, b"200000\n")


# ---------------------------------------------------------------- zsh


@needs_zsh
def test_zsh_history_files_get_nothing_of_ours(root: Path, home: Path) -> None:
    (home / ".zshenv").write_text("export FROM_ENV=1\n")
    (home / ".zshrc").write_text(
        f"HISTFILE={home}/hist; HISTSIZE=100; SAVEHIST=100; setopt share_history inc_append_history\n"
        "precmd() { echo PRECMD; }; preexec() { echo PREEXEC; }; PROMPT='%n> ' RPROMPT=x\n"
    )
    (home / "hist").write_text("mine\n")
    with talk(root, "zsh", rc=True, env={"HOME": str(home), "ZDOTDIR": None}) as say:
        assert say("echo $FROM_ENV; false") == (1, b"1\n")
        assert say("echo $?; fc -l 1 | grep -c __sm") == (1, b"1\n0\n")
        assert say("exit 2")[0] == 2
        assert say("echo back") == (0, b"back\n")
    assert (home / "hist").read_text().strip() == "mine"


# ---------------------------------------------------------------- bash


EDITING = [
    "set -o vi",
    "set -o emacs",
    'bind "\\C-x: self-insert" 2>/dev/null; true',
    "to_emacs",
    "g() { set -o vi; set +o vi; set -o emacs; }; g; g",
    "set +o vi; set +o emacs",
]


@pytest.mark.parametrize("around", [":", "set -x", 'trap ": $((n++))" DEBUG', "trap : ERR RETURN DEBUG; set -x"])
def test_bash_editing_modes_change_nothing(root: Path, home: Path, around: str) -> None:
    (home / ".bashrc").write_text("set -o vi\nto_emacs() { set -o emacs; }\n")
    for _ in range(rounds(2, 30)):
        with talk(root, "bash", rc=True, env={"HOME": str(home)}) as say:
            say("kept=1")
            say(around)
            for text in EDITING:
                assert say(text)[0] == 0, text
            say("set +x; trap - DEBUG ERR RETURN")
            assert say('printf "a\\tb %s\\n" "$kept"') == (0, b"a\tb 1\n")


@pytest.mark.parametrize(
    ("trap", "cell", "output"),
    [
        ("trap 'echo dbg' DEBUG", "echo a; echo b", b"dbg\na\ndbg\nb\n"),
        ("trap 'echo err' ERR", "echo a; false", b"a\nerr\n"),
        ("trap 'echo err; echo \" INT\"' ERR", "false; true", b"err\n INT\n"),
        ("trap 'echo dbg' DEBUG; trap 'echo err' ERR", "(exit 3)", b"dbg\nerr\n"),
        ("set -v", "echo a", b"echo a\na\n"),
    ],
)
def test_bash_traps_and_traces_see_the_cell_and_nothing_of_ours(
    root: Path, trap: str, cell: str, output: bytes
) -> None:
    with talk(root, "bash") as say:
        say(trap)
        say("(")  # a syntax error does not take the traps away
        for _ in range(2):
            assert say(cell)[1] == output
        say("trap - DEBUG ERR; set +v")
        assert say("false; echo $?") == (0, b"1\n")


# ---------------------------------------------------------------- all


def ready_after(root: Path, shell: str) -> float:
    """Seconds from the start of a shell to the end of its first cell."""
    began = time.monotonic()
    with talk(root, shell) as say:
        assert say("echo a") == (0, b"a\n")
        return time.monotonic() - began


@pytest.mark.parametrize("shell", ["bash", "zsh", "dash", "fish"])
def test_a_shell_is_ready_within_moments(root: Path, shell: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    # 0.1 on a quiet machine; other work may hold up one or another.
    assert any(ready_after(root, shell) < 2 for _ in range(5))


@pytest.mark.parametrize("name", ["bash", "zsh", "sh", "fish", "tcsh"])
def test_no_dialect_lets_text_out_of_its_quotes(name: str) -> None:
    from session_magics.holder.dialects import Cell

    one = dialect(name, b"/bin/" + name.encode(), b"/a 'dir", rc=True)
    one.init(b"/dev/pts/0")
    cell = Cell(5, b"it's\n; $(rm -rf x) `y` \"z", b"begin", b"end")
    first, second = one.command(cell)
    assert b"rm -rf" in first + second
    assert one.keys or b"it's" not in first + second
    assert one.without_rc().rc is False
    assert all(b"/a" in value or b"$" in value for value in one.files().values())
