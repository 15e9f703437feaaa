"""Reports about what comes of a command in a shell: it ends when it ends, with its own output and its own status."""

from __future__ import annotations

import itertools
import re
import shutil
import sys
from collections.abc import Sequence

import pytest

from session_magics import CellCommandError, run_cell
from talk import Talk

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc")

# What comes of a cell, in the shared shell: (name, cell, status, output); the next cell has to be as good as any.
SIMPLE: Sequence[tuple[str, str, int, bytes]] = (
    ("swe_rex_54_what_a_parser_might_not_know_fails_as_it_does", "A=(); false", 1, b""),
    ("pexpect_372_the_end_is_not_found_in_the_text_of_the_command", "sleep .1 && echo STEP_DONE", 0, b"STEP_DONE\n"),
    ("swe_agent_595_a_failing_cd", "cd asdf asdf 2>/dev/null", 1, b""),
    ("agent_sdk_2181_a_long_here_document", "cat <<'EOF'\n" + "a line\n" * 100 + "EOF", 0, b"a line\n" * 100),
    ("agent_sdk_1817_a_bar_keeps_its_status", "printf '\\r10%%\\r99%%'; (exit 3)", 3, b"\r10%\r99%"),
    (
        "claude_code_25015_a_here_document_within_a_list",
        'f() { echo "<$1>"; }; true && f "$(cat <<\'EOF\'\nit\'s (one\nEOF\n)"',
        0,
        b"<it's (one>\n",
    ),
    ("cline_4313_the_first_line_is_there", "echo test1 && echo test2", 0, b"test1\ntest2\n"),
    ("cline_caret_c_in_the_output_ends_nothing", "echo 'press ^C to stop'; echo more", 0, b"press ^C to stop\nmore\n"),
    ("vscode_316556_a_line_end_in_a_word", 'python3 -c "print(1)\nprint(2)"', 0, b"1\n2\n"),
    ("vscode_250764_a_subshell", "( echo a )", 0, b"a\n"),
    ("vscode_312260_all_lines_are_one_command", "echo 1\necho 2\necho 3\n(echo 4; exit 4)", 4, b"1\n2\n3\n4\n"),
    ("langchain_36696_no_line_end_at_the_end", "echo -n hi", 0, b"hi"),
    ("open_interpreter_307_what_looks_like_a_marker", "echo '##active_line'", 0, b"##active_line\n"),
    ("node_pty_72_the_last_bytes_are_there", '/bin/echo -n "$(head -c 20000 /dev/zero | tr "\\0" x)"', 0, b"x" * 20000),
    ("daytona_4230_a_here_document_into_a_file", "cat <<'EOF' >f\n$HOME\nEOF\ncat f", 0, b"$HOME\n"),
    ("warp_14324_the_terminator_stays_as_it_is", "cat <<END\nbody\nEND", 0, b"body\n"),
    ("ghostty_14247_the_status_is_that_of_the_command", "false", 1, b""),
    ("swe_rex_pipe_a_closed_pipe_says_nothing", "yes | head -1", 0, b"y\n"),
)


@pytest.mark.parametrize(("cell", "status", "output"), [row[1:] for row in SIMPLE], ids=[row[0] for row in SIMPLE])
def test_a_simple_cell_of(say: Talk, cell: str, status: int, output: bytes) -> None:
    """The end was waited for in vain, or the text or the status were those of something else."""
    assert say(cell) == (status, output)
    assert say("echo $?; echo next") == (0, b"%d\nnext\n" % status)


def test_bash_kernel_33_the_environment_is_whole_and_no_cell_shifts(say: Talk) -> None:
    """A prompt within the environment was taken for the end."""
    status, output = say("export LONG='[PROMPT_$ ]'; env")
    assert status == 0 and b"\nLONG=[PROMPT_$ ]\n" in output and re.search(rb"^PATH=", output, re.M)
    assert say("echo next") == (0, b"next\n")


def test_bash_kernel_118_an_open_loop_is_an_error(say: Talk) -> None:
    """A loop without its end was waited for until an interrupt."""
    status, output = say("for x in 1 2; do echo $x;")
    assert status == 2 and b"syntax error" in output
    assert say("echo next") == (0, b"next\n")


def test_bash_kernel_151_a_status_is_that_of_its_own_cell(say: Talk) -> None:
    """After a long command every cell had its status."""
    assert say("sleep .3; (exit 1)")[0] == 1
    assert say("ls / >/dev/null") == (0, b"")


def test_swe_agent_1269_ten_megabytes_of_one_command_come_back(say: Talk) -> None:
    """A very long diff was never over."""
    with pytest.raises(CellCommandError) as caught:
        run_cell(say.session, "yes '+ a changed line' | head -c 10000000; (exit 1)")
    result = caught.value.result
    assert result is not None and result.end - result.begin == 10_000_000
    assert len(caught.value.output) < 1_000_000, "the error carries the last of it"


def test_agent_sdk_3660_no_pager_takes_the_commands_that_follow(say: Talk) -> None:
    """A pager had the terminal, and read what came next."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    make = "git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty "
    assert say(f"{make} -F <(seq 200)")[0] == 0
    status, output = say("git log; cd ..")
    assert status == 0 and b"    200\n" in output
    assert say("echo next") == (0, b"next\n")
    assert say("cd r; git add -A; cd ..") == (0, b""), "cline 13272: silence is success"


def test_openhands_8097_every_byte_belongs_to_one_command(say: Talk) -> None:
    """What was printed between two commands was lost."""
    results = [run_cell(say.session, f"seq {number * 1000}; sleep .02") for number in range(1, 6)]
    for number, result in enumerate(results, 1):
        wanted = b"".join(b"%d\n" % line for line in range(1, number * 1000 + 1))
        assert say.session.output(result.begin, result.end) == wanted
    gaps = [say.session.output(one.end, two.begin) for one, two in itertools.pairwise(results)]
    assert not [gap for gap in gaps if re.sub(rb"\x1b[^\x1b]*?(\x07|\x1b\\)", b"", gap).strip()]


def test_claude_code_3372_a_server_in_the_background_is_not_waited_for(say: Talk) -> None:
    """The cell ended when the time was over."""
    assert say("python3 -m http.server --bind 127.0.0.1 0 >/dev/null 2>&1 &")[0] == 0
    assert say("kill %1; wait; echo gone")[1].endswith(b"gone\n")


def test_claude_code_62978_a_killed_background_task_fails_no_other_command(say: Talk) -> None:
    """From then on every command gave 1."""
    say("sleep 1000 & echo $! >pid")
    say('kill -9 "$(cat pid)"; wait')
    assert say("true")[0] == 0 and say("echo ok") == (0, b"ok\n")


def test_kubernetes_124571_two_million_lines_are_whole(say: Talk) -> None:
    """The output was cut, with status 0."""
    result = run_cell(say.session, "seq 1 2000000")
    assert result.end - result.begin == 14_888_896
    assert say.session.output(result.end - 16, result.end) == b"1999999\n2000000\n"


def test_bash_preexec_25_a_subshell_in_the_background_ends_no_shell(say: Talk) -> None:
    """The subshell's end was the shell's."""
    pid = say.session.info().pid
    for _ in range(5):
        assert say("( ls >/dev/null ) &")[0] == 0
    assert say("wait; echo on")[1].endswith(b"on\n") and say.session.info().pid == pid


def test_opencode_43003_a_persistent_shell_persists(say: Talk) -> None:
    """Nothing of a cell was left for the next one."""
    say("mkdir -p y; cd y; export T=p; f() { echo f; }; alias g='echo g'; set -o noclobber; false")
    assert say("echo $?; basename $PWD; echo $T; f; g; echo $-; cd ..; set +o noclobber")[1].splitlines()[:5] == [
        b"1", b"y", b"p", b"f", b"g",
    ]  # fmt: skip
