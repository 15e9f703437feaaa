"""Reports about running commands in a shell: each ends when it ends, with its own output and its own status."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psutil
import pytest

import leaks
from others import PROJECT, in_another_process
from rounds import DEADLINE, until
from session_magics import CellCommandError, Session, SessionBusy, run_cell
from session_magics.shell import Cell
from talk import Talk, talk

# Seconds after which a command is given up that has done by then, on any machine, what it does first.
CUT_OFF = 1.5

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc")


@pytest.fixture(scope="module")
def say() -> Iterator[Talk]:
    """A bash that the tests of this module share."""
    with shell("bash") as one:
        yield one


@contextlib.contextmanager
def shell(name: str, rc: str | None = None) -> Iterator[Talk]:
    """A shell of that kind in a place of its own, with that text as its start-up file."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    place = Path(tempfile.mkdtemp(prefix="sm"))
    home = place / "home"
    home.mkdir()
    for file in (".bashrc", ".zshrc"):
        (home / file).write_text(rc or "")
    env = {"HOME": str(home), "ZDOTDIR": None, "GIT_TERMINAL_PROMPT": None, "GIT_ASKPASS": None, "SSH_ASKPASS": None}
    try:
        with talk(place, name, rc=rc is not None, env=env, cwd=home) as one:
            yield one
    finally:
        shutil.rmtree(place, ignore_errors=True)


@contextlib.contextmanager
def running(session: Session, text: str) -> Iterator[Cell]:
    """A command that is to be watched while it runs; at the end it has ended."""
    cell = session.cell(text)
    try:
        yield cell
        deadline = time.monotonic() + DEADLINE
        while cell.result is None:
            assert time.monotonic() < deadline, cell.output()
            cell.receive(1)
    finally:
        while cell.result is None:  # the test has failed; the others go on
            cell.interrupt()
            cell.receive(0.5)
        cell.close()


def printed(cell: Cell, data: bytes) -> None:
    """Wait until the command has printed that."""
    deadline = time.monotonic() + DEADLINE
    while data not in cell.output():
        assert time.monotonic() < deadline, cell.output()
        cell.watch(cell.available)
        cell.receive(0.5)


def waits(cell: Cell) -> None:
    """Wait until the command is seen to wait for input."""
    until(lambda: (cell.receive(0), cell.probe().kind != "no")[1])


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


def test_bash_kernel_147_a_start_up_file_that_prints_sequences_changes_no_status() -> None:
    """A sequence that a start-up file prints before each command was shown, and made failures."""
    rc = "precmd() { printf '\\033]777;precmd\\007'; }\nPROMPT_COMMAND=precmd\nPS0='\\033]777;preexec\\007'"
    with shell("bash", rc) as say:
        for wanted in (0, 3, 0):
            status, output = say(f"echo a; (exit {wanted})")
            assert status == wanted and re.sub(rb"\x1b\]777;\w+\x07", b"", output) == b"a\n"


def test_bash_kernel_113_a_pager_waits_and_can_be_left(say: Talk) -> None:
    """Nobody could leave it."""
    if shutil.which("less") is None:
        pytest.skip("less is not installed")
    with running(say.session, "seq 500 >many; less many") as cell:
        printed(cell, b"20")
        waits(cell)
        cell.send(b"q")
    assert cell.result is not None and cell.result.returncode == 0


def test_bash_kernel_101_what_reads_its_input_eats_no_cells(say: Talk) -> None:
    """The cells that followed went into the file."""
    with running(say.session, "cat >f") as cell:
        waits(cell)
        with pytest.raises(SessionBusy):
            say("echo not for the file")
        cell.send(b"typed\n")
        waits(cell)
        cell.send(b"\x04")
    assert say("cat f") == (0, b"typed\n")


def test_swe_rex_287_each_answer_of_a_repl_comes_with_its_own_input(say: Talk) -> None:
    """The answers came one input late."""
    with running(
        say.session, "stty -echo; python3 -q -i -u -c 'import sys; sys.ps1 = sys.ps2 = \"\"'; stty echo"
    ) as cell:
        for number in (1, 2, 3):
            waits(cell)
            cell.send(b"print(%d * 111)\n" % number)
            printed(cell, b"%d\n" % (number * 111))
            assert b"%d" % ((number + 1) * 111) not in cell.output()
        waits(cell)
        cell.send(b"exit()\n")


def test_swe_rex_29_what_came_before_the_time_was_over_is_kept(say: Talk) -> None:
    """The output was thrown away with the command."""
    with pytest.raises(CellCommandError, match=rf"timed out after {CUT_OFF} s") as caught:
        run_cell(say.session, "echo part; sleep 99", timeout=CUT_OFF)
    assert caught.value.output.startswith("part\n")


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


def test_agent_sdk_2244_a_question_to_the_terminal_is_answered_and_shown_to_nobody(say: Talk) -> None:
    """The question, or its answer, was left on the screen."""
    code = "import os, tty; tty.setraw(0); os.write(1, b'\\x1b[6n'); a = os.read(0, 20); "
    code += "os.write(1, repr(a).encode() + b'\\r\\n')"
    status, output = say(f'stty -echo; python3 -c "{code}"; stty echo sane')
    assert status == 0 and re.search(rb"b'\\x1b\[\d+;\d+R'", output)
    assert "6n" not in say.session.snapshot() and "6n" not in say.session.tail(5)
    assert say("echo next") == (0, b"next\n")


def test_openhands_9147_the_first_command_waits_for_a_slow_start() -> None:
    """The first command after the start was given up at once."""
    with shell("bash", "sleep .4; export FROM_RC=1") as say:
        assert say("echo $FROM_RC") == (0, b"1\n")


def test_openhands_8097_every_byte_belongs_to_one_command(say: Talk) -> None:
    """What was printed between two commands was lost."""
    results = [run_cell(say.session, f"seq {number * 1000}; sleep .02") for number in range(1, 6)]
    for number, result in enumerate(results, 1):
        wanted = b"".join(b"%d\n" % line for line in range(1, number * 1000 + 1))
        assert say.session.output(result.begin, result.end) == wanted
    gaps = [say.session.output(one.end, two.begin) for one, two in itertools.pairwise(results)]
    assert not [gap for gap in gaps if re.sub(rb"\x1b[^\x1b]*?(\x07|\x1b\\)", b"", gap).strip()]


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


def test_codex_45419_asking_often_changes_no_status(say: Talk) -> None:
    """After minutes of asking it was said to have been killed."""
    with running(say.session, "sleep .5; (exit 9)") as cell:
        until(lambda: (cell.receive(0.001), cell.result is not None or cell.probe() is None)[1])
    assert cell.result is not None and cell.result.returncode == 9


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


def test_gemini_cli_14870_a_server_does_not_wait_for_input(say: Talk) -> None:
    """A server that listens was shown as waiting for the person."""
    with running(say.session, "python3 -u -m http.server --bind 127.0.0.1 0") as cell:
        printed(cell, b"Serving")
        assert {cell.probe().kind for _ in range(20)} == {"no"}
        cell.interrupt()


def test_gemini_cli_24707_a_question_for_a_name_is_seen_at_once(say: Talk) -> None:
    """Minutes of silence while it asked for a name."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")

    class Locked(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="locked"')
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Locked) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            with running(say.session, f"git clone http://127.0.0.1:{server.server_port}/x") as cell:
                printed(cell, b"Username")
                waits(cell)
                cell.interrupt()
        finally:
            server.shutdown()
            thread.join()


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


@pytest.mark.parametrize("text", ["yes | grep x | head -1", "sleep 1000 | cat", "yes | sleep 1000"])
def test_claude_code_79902_the_end_of_the_time_ends_the_whole_pipeline(say: Talk, text: str) -> None:
    """What was behind the first of it ran on, with all processors."""
    state = psutil.Process(say.session.info().pid)
    with pytest.raises(CellCommandError, match="timed out"):
        run_cell(say.session, text, timeout=0.3)
    until(lambda: not state.children(recursive=True))
    assert say("echo next") == (0, b"next\n")


def test_claude_code_3372_a_server_in_the_background_is_not_waited_for(say: Talk) -> None:
    """The cell ended when the time was over."""
    assert say("python3 -m http.server --bind 127.0.0.1 0 >/dev/null 2>&1 &")[0] == 0
    assert say("kill %1; wait; echo gone")[1].endswith(b"gone\n")


def test_claude_code_74741_the_directory_is_told_though_the_time_was_over(say: Talk) -> None:
    """A change of directory was lost without a word."""
    with pytest.raises(CellCommandError, match="timed out") as caught:
        run_cell(say.session, "mkdir -p x; cd x; sleep 99", timeout=CUT_OFF)
    assert caught.value.result is not None and caught.value.result.cwd.endswith("/x")
    assert say("pwd; cd ..")[1].endswith(b"/x\n")


def test_claude_code_62978_a_killed_background_task_fails_no_other_command(say: Talk) -> None:
    """From then on every command gave 1."""
    say("sleep 1000 & echo $! >pid")
    say('kill -9 "$(cat pid)"; wait')
    assert say("true")[0] == 0 and say("echo ok") == (0, b"ok\n")


def test_vscode_146873_a_debug_trap_of_the_user_is_kept_and_obeyed() -> None:
    """It was replaced, or what it returned did not count."""
    with shell("bash") as say:
        say("trap '[[ $BASH_COMMAND != \"echo skipped\" ]]' DEBUG; shopt -s extdebug")
        assert say("echo seen; echo skipped; echo on") == (0, b"seen\non\n")
        assert b"skipped" in say("trap -p DEBUG")[1]


def test_tmux_mcp_31_an_interrupt_is_a_signal_and_no_text(say: Talk) -> None:
    """The name of the key was typed."""
    assert say("sleep 60", interrupt_after=0.1)[0] == 130
    deaf = "sh -c 'trap \"echo caught; exit 5\" INT; echo up; while :; do sleep .05; done'"
    with running(say.session, deaf) as cell:
        printed(cell, b"up")
        cell.interrupt()
    assert cell.result is not None and cell.result.returncode == 5
    assert b"caught" in cell.output() and b"C-c" not in cell.output()


def test_daytona_3770_a_program_that_reads_to_the_end_is_seen_to_wait(say: Talk) -> None:
    """It waited for ever for an end of its input."""
    with running(say.session, "wc -l") as cell:
        waits(cell)
        cell.send(b"one\n\x04")
    assert cell.output().endswith(b"1\n")
    assert run_cell(say.session, "wc -l", check=False).state == "done", "where nobody can answer it is told the end"


def test_openai_agents_3609_an_end_without_output_wakes_at_once(say: Talk) -> None:
    """It was seen when the time to wait was over."""
    began = time.monotonic()
    with running(say.session, "sleep .1") as cell:
        while cell.result is None:
            cell.receive(2 * DEADLINE)
    assert time.monotonic() - began < DEADLINE and cell.result.end == cell.result.begin


def test_kubernetes_124571_two_million_lines_are_whole(say: Talk) -> None:
    """The output was cut, with status 0."""
    result = run_cell(say.session, "seq 1 2000000")
    assert result.end - result.begin == 14_888_896
    assert say.session.output(result.end - 16, result.end) == b"1999999\n2000000\n"


def test_warp_5456_a_shell_that_ends_at_an_error_comes_back_and_says_so() -> None:
    """The terminal was gone."""
    with shell("bash") as say:
        assert say("set -e") == (0, b"")
        assert say("false; echo not reached") == (1, b"")
        assert "restarted" in say.notice
        assert say("echo back") == (0, b"back\n")


def test_bash_preexec_25_a_subshell_in_the_background_ends_no_shell(say: Talk) -> None:
    """The subshell's end was the shell's."""
    pid = say.session.info().pid
    for _ in range(5):
        assert say("( ls >/dev/null ) &")[0] == 0
    assert say("wait; echo on")[1].endswith(b"on\n") and say.session.info().pid == pid


def test_aider_2415_aliases_are_there_and_the_directory_is_the_one_asked_for() -> None:
    """Aliases were missing, and the start-up file had moved the directory."""
    with shell("bash", "alias hello='echo from-alias'\ncd /") as say:
        assert say("hello; basename $PWD") == (0, b"from-alias\nhome\n")


def test_opencode_43003_a_persistent_shell_persists(say: Talk) -> None:
    """Nothing of a cell was left for the next one."""
    say("mkdir -p y; cd y; export T=p; f() { echo f; }; alias g='echo g'; set -o noclobber; false")
    assert say("echo $?; basename $PWD; echo $T; f; g; echo $-; cd ..; set +o noclobber")[1].splitlines()[:5] == [
        b"1", b"y", b"p", b"f", b"g",
    ]  # fmt: skip
