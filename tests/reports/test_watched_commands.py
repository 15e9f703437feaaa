"""Reports about commands while they run: they are seen to wait, are answered, interrupted, or run out of time."""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import psutil
import pytest

from rounds import DEADLINE, until
from session_magics import CellCommandError, Session, SessionBusy, run_cell
from session_magics.shell import Cell
from talk import Talk

# Seconds after which a command is given up that has done by then, on any machine, what it does first.
CUT_OFF = 1.5

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc")


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


def test_agent_sdk_2244_a_question_to_the_terminal_is_answered_and_shown_to_nobody(say: Talk) -> None:
    """The question, or its answer, was left on the screen."""
    code = "import os, tty; tty.setraw(0); os.write(1, b'\\x1b[6n'); a = os.read(0, 20); "
    code += "os.write(1, repr(a).encode() + b'\\r\\n')"
    status, output = say(f'stty -echo; python3 -c "{code}"; stty echo sane')
    assert status == 0 and re.search(rb"b'\\x1b\[\d+;\d+R'", output)
    assert "6n" not in say.session.snapshot() and "6n" not in say.session.tail(5)
    assert say("echo next") == (0, b"next\n")


def test_codex_45419_asking_often_changes_no_status(say: Talk) -> None:
    """After minutes of asking it was said to have been killed."""
    with running(say.session, "sleep .5; (exit 9)") as cell:
        until(lambda: (cell.receive(0.001), cell.result is not None or cell.probe() is None)[1])
    assert cell.result is not None and cell.result.returncode == 9


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


@pytest.mark.parametrize("text", ["yes | grep x | head -1", "sleep 1000 | cat", "yes | sleep 1000"])
def test_claude_code_79902_the_end_of_the_time_ends_the_whole_pipeline(say: Talk, text: str) -> None:
    """What was behind the first of it ran on, with all processors."""
    state = psutil.Process(say.session.info().pid)
    with pytest.raises(CellCommandError, match="timed out"):
        run_cell(say.session, text, timeout=0.3)
    until(lambda: not state.children(recursive=True))
    assert say("echo next") == (0, b"next\n")


def test_claude_code_74741_the_directory_is_told_though_the_time_was_over(say: Talk) -> None:
    """A change of directory was lost without a word."""
    with pytest.raises(CellCommandError, match="timed out") as caught:
        run_cell(say.session, "mkdir -p x; cd x; sleep 99", timeout=CUT_OFF)
    assert caught.value.result is not None and caught.value.result.cwd.endswith("/x")
    assert say("pwd; cd ..")[1].endswith(b"/x\n")


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
