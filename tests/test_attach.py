"""``attach``: real programs on real terminals, which answer questions as real ones do."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from rounds import DEADLINE, rounds, sessions, until
from session_magics import Command, Registry, Session
from session_magics.cli.typing_in import DetachKey
from terminals import CLI, DETACH, KEYS, Terminal, attached

pytestmark = pytest.mark.timeout(120)
PROMPT = "ready> "


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    with sessions(root) as registry:
        yield registry


def shell(registry: Registry, name: str = "s") -> Session:
    env = {"PS1": PROMPT, "PROMPT_COMMAND": None, "HISTFILE": None}
    session = registry.start(name, Command(("bash", "--norc", "--noprofile"), env=env))
    session.wait_for(PROMPT, DEADLINE)
    return session


def keys(registry: Registry, begin: str = "", name: str = "k") -> Session:
    session = registry.start(name, Command((sys.executable, "-c", KEYS, begin)))
    return printed(session, b"ready")


def printed(session: Session, data: bytes) -> Session:
    """The session, once it has printed that, on whichever screen."""
    until(lambda: data in session.output(), what=session.output)
    return session


def need(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


def settled(terminal: Terminal) -> None:
    """The terminal is as it was: its modes, and what the program had switched on."""
    until(lambda: terminal.restored, what="termios")
    until(lambda: terminal.switched() == {}, what=terminal.switched)


def test_a_shell_is_typed_into_and_left_with_the_detach_key(registry: Registry) -> None:
    session = shell(registry)
    with attached("s", (20, 70)) as terminal:
        terminal.told("s: C-\\ detaches")
        terminal.until(PROMPT.strip())
        assert session.info().size == (20, 70)
        terminal.type("echo he''llo\r")
        terminal.until("hello\n" + PROMPT.strip(), gone="detaches")
        terminal.type(DETACH)
        assert terminal.wait() == 0
        terminal.until("[detached: session-magics attach s comes back]")
        settled(terminal)
    assert session.info().running


def test_the_line_that_tells_the_detach_key_goes_away_by_itself(registry: Registry) -> None:
    shell(registry)
    with attached("s") as terminal:
        terminal.told("detaches")
        terminal.until(PROMPT.strip(), gone="detaches")
        terminal.type("\x1c")
        assert terminal.wait() == 0


@pytest.mark.parametrize(("end", "status", "shown"), [("exit 7", 7, "exited 7"), ("kill -9 $$", 137, "signal 9")])
def test_the_end_of_the_program_ends_it_with_its_status(registry: Registry, end: str, status: int, shown: str) -> None:
    shell(registry)
    with attached("s") as terminal:
        terminal.told("detaches")
        terminal.type(f"echo las''t; {end}\r")
        assert terminal.wait() == status
        terminal.until("last", shown)
        settled(terminal)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_restores_the_terminal(registry: Registry, number: int) -> None:
    session = keys(registry, "\\x1b[?1049h\\x1b[?25l\\x1b[?1000h\\x1b[?2004h\\x1b[?1h\\x1b=\\x1b[>1u\\x1b[4 q")
    with attached("k") as terminal:
        terminal.told("detaches")
        terminal.until("ready")
        until(lambda: b"1049" in terminal.switched())
        os.kill(terminal.process.pid, number)
        assert terminal.wait() == 128 + number
        settled(terminal)
        assert b"\x1b[<1u" in terminal.raw and b"\x1b>" in terminal.raw and b"\x1b[0 q" in terminal.raw
    assert session.info().running


def test_a_terminal_that_is_gone_ends_it(registry: Registry) -> None:
    session = keys(registry)
    terminal = attached("k")
    terminal.told("detaches")
    terminal.hang_up()
    assert terminal.wait() == 128 + signal.SIGHUP
    terminal.close()
    assert session.info().running


def test_a_crash_restores_the_terminal(registry: Registry) -> None:
    keys(registry, "\\x1b[?1049h\\x1b[?1000h")
    code = """
import sys
from session_magics.cli import attach, main
def crash(loop):
    loop._viewer.step()
    raise ZeroDivisionError
attach._Loop.run = crash
sys.exit(main.main(["attach", "k"]))
"""
    with Terminal((sys.executable, "-c", code)) as terminal:
        assert terminal.wait() == 1
        terminal.until("ZeroDivisionError")
        settled(terminal)


def test_a_program_in_back_off_stays_attached(registry: Registry) -> None:
    command = Command(("sh", "-c", "echo round; read word; exit 9"))
    session = registry.start("b", command, restart="on-failure")
    with attached("b") as terminal:
        terminal.told("detaches")
        terminal.until("round")
        terminal.type("\r")
        terminal.told("b: backing-off after exit 9")
        until(lambda: session.info().generation == 2)
        terminal.until("round", gone="backing-off")
        terminal.type(DETACH)
        assert terminal.wait() == 0


def test_a_killed_holder_is_told_and_the_terminal_restored(registry: Registry) -> None:
    session = keys(registry, "\\x1b[?1049h\\x1b[?1003h")
    with attached("k") as terminal:
        terminal.told("detaches")
        terminal.until("ready")
        from session_magics.store.records import read_run

        run = read_run(str(session.directory))
        assert run is not None
        os.kill(run.holder, signal.SIGKILL)
        assert terminal.wait() == 1
        terminal.until("session-magics: session 'k' is not running (lost")
        settled(terminal)


def test_stopped_and_continued_it_gives_the_terminal_back_and_takes_it_again(registry: Registry) -> None:
    keys(registry, "\\x1b[?1049h\\x1b[?1000h")
    with Terminal(("bash", "--norc", "-i"), env={"PS1": "outer> "}) as terminal:  # stopping takes a shell with jobs
        terminal.until("outer>")
        terminal.type(" ".join((*CLI, "attach", "k")) + "\r")
        terminal.told("detaches")
        terminal.until("ready")
        [process] = psutil.Process(terminal.process.pid).children()
        process.send_signal(signal.SIGTSTP)
        terminal.until("Stopped")
        assert b"1000" not in terminal.switched() and b"1049" not in terminal.switched()
        assert termios.tcgetattr(terminal.tty_fd)[1] & termios.OPOST
        terminal.type("echo mean''while\r")
        terminal.until("meanwhile")
        terminal.type("fg\r")
        until(lambda: b"1000" in terminal.switched(), what="continued")
        terminal.type("a")
        terminal.until("<61>")
        terminal.type(DETACH)
        terminal.until("detached:", "outer>")
        terminal.type("exit\r")
        assert terminal.wait() == 0
        settled(terminal)


def test_keys_typed_before_it_learns_that_it_goes_on_reach_the_program(registry: Registry) -> None:
    keys(registry)
    with attached("k") as terminal:
        terminal.told("detaches")
        terminal.until("ready")
        process = psutil.Process(terminal.process.pid)
        process.suspend()
        until(lambda: process.status() == psutil.STATUS_STOPPED, what="stopped")
        terminal.type("a")
        process.resume()
        terminal.until("<61>")
        terminal.type(DETACH)
        assert terminal.wait() == 0
        settled(terminal)


def test_live_questions_reach_the_holder_alone(registry: Registry) -> None:
    session = shell(registry)
    with attached("s") as terminal:
        terminal.told("detaches")
        terminal.type("printf '\\033[6n\\033[c\\033[5n'; printf 'do''ne\\n'\r")
        terminal.until("done")
        assert terminal.answers == [] and session.output().count(b"\x1b[6n") == 1
        terminal.type(DETACH)
        terminal.wait()


def test_the_screen_comes_back_as_it_was_and_without_history(registry: Registry) -> None:
    session = registry.start(
        "s", Command(("sh", "-c", "seq 1 3000; printf '\\033[31mred\\033[m end'; sleep 1000")), size=(10, 40)
    )
    session.wait_for("end", DEADLINE)
    with attached("s", (10, 40)) as terminal:
        terminal.told("detaches")
        terminal.until("red end", "2999", gone="detaches")
        assert terminal.lines[0] == "2992" and terminal.cursor == (9, 7)
        assert b"\n2500" not in terminal.raw and b"\x1b[31mred" in terminal.raw
        terminal.type(DETACH)
        assert terminal.wait() == 0


def test_python_is_a_terminal_program_like_others(registry: Registry) -> None:
    registry.start("py", Command((sys.executable, "-q")))
    with attached("py") as terminal:
        terminal.until(">>>")
        terminal.type("6*7\r")
        terminal.until("42\n>>>")  # from then on it takes keys raw again
        terminal.type("\x1b[A")  # the line before
        terminal.until(">>> 6*7\n42\n>>> 6*7")
        terminal.type("\x15import sys; sys.exit(3)\r")
        assert terminal.wait() == 3
        settled(terminal)


def test_vim_is_drawn_typed_into_and_left_with_its_modes(registry: Registry, root: Path) -> None:
    need("vim")
    text = root / "text"
    text.write_text("".join(f"line {number}\n" for number in range(100)))
    printed(registry.start("v", Command(("vim", "-u", "NONE", "-N", str(text))), size=(15, 50)), b"line 3")
    for size in ((15, 50), (12, 60)):  # its own size, and another
        with attached("v", size) as terminal:
            terminal.told("detaches")
            terminal.until("line 0")
            until(lambda terminal=terminal: b"1049" in terminal.switched())
            terminal.type("j")  # the first key takes the line away
            terminal.until("line 0", f"line {size[0] - 2}", gone="detaches")
            until(lambda terminal=terminal: terminal.cursor[0] >= 1)
            terminal.type(DETACH)
            assert terminal.wait() == 0
            settled(terminal)
    with attached("v", (12, 60)) as terminal:
        terminal.told("detaches")
        terminal.until("line 0")
        terminal.type("oadded\x1b:wq\r")
        assert terminal.wait() == 0
        settled(terminal)
    assert "\nadded\n" in text.read_text()


def test_less_pages(registry: Registry, root: Path) -> None:
    need("less")
    text = root / "text"
    text.write_text("".join(f"line {number}\n" for number in range(100)))
    printed(registry.start("l", Command(("less", str(text)))), b"line 3")
    with attached("l", (10, 60)) as terminal:
        terminal.told("detaches")
        terminal.until("line 0", "line 8")
        terminal.type(" ")
        terminal.until("line 9", "line 17", gone="line 8")
        terminal.type("q")
        assert terminal.wait() == 0
        settled(terminal)


def test_a_program_with_the_mouse_gets_it_after_a_new_attach(registry: Registry) -> None:
    keys(registry, "\\x1b[?1049h\\x1b[?1002h\\x1b[?1006h\\x1b[?2004h\\x1b]2;the title\\x07")
    for _ in range(2):
        with attached("k") as terminal:
            terminal.until("ready")
            until(lambda terminal=terminal: {b"1002", b"1006", b"2004", b"1049"} <= set(terminal.switched()))
            assert b"\x1b]2;the title\x07" in terminal.raw
            terminal.type("\x1b[<0;5;6M")
            terminal.until("<1b5b3c303b353b364d>")
            terminal.type(DETACH)
            assert terminal.wait() == 0
            settled(terminal)
            assert terminal.raw.count(b"\x1b[22;2t") == terminal.raw.count(b"\x1b[23;2t") == 1


def test_modes_are_known_long_after_they_were_set(registry: Registry) -> None:
    code = "import sys, time; sys.stdout.write('\\x1b[?1049h\\x1b[?1002h'); "
    code += "[sys.stdout.write('\\x1b[H' + 'x' * 1000) for _ in range(5000)]; "
    code += "print('\\x1b[2J\\x1b[Hmain', flush=True); time.sleep(1000)"
    printed(registry.start("big", Command((sys.executable, "-c", code))), b"main")
    with attached("big") as terminal:
        terminal.until("main")
        until(lambda: {b"1049", b"1002"} <= set(terminal.switched()), what=terminal.switched)
        terminal.type(DETACH)
        terminal.wait()


def test_two_terminals_of_different_sizes_see_the_same_and_the_last_typist_sets_the_size(registry: Registry) -> None:
    session = shell(registry)
    with attached("s", (24, 80)) as wide, contextlib.ExitStack() as later:
        wide.told("detaches")
        small = later.enter_context(attached("s", (12, 40)))
        small.told("detaches")
        small.until(PROMPT.strip())
        until(lambda: session.info().size == (12, 40), what=session.info)
        wide.type("stty size\r")
        wide.until("24 80", gone="detaches")
        small.until("24 80", gone="detaches")
        small.type("stty size\r")
        small.until("12 40")
        wide.until("12 40")
        wide.type("echo ag''ain\r")
        small.until("again")
        wide.type(DETACH)
        assert wide.wait() == 0
        small.type("exit 4\r")
        assert small.wait() == 4


def test_who_only_looks_neither_types_nor_sets_the_size(registry: Registry) -> None:
    session = shell(registry)
    with attached("s", (12, 40), "--read-only") as terminal:
        terminal.told("looking only")
        terminal.until(PROMPT.strip())
        terminal.type("echo typed\r")
        session.send("echo se''nt\r")
        terminal.until("sent")
        assert session.info().size == (24, 80) and "typed" not in terminal.text
        terminal.type(DETACH)
        assert terminal.wait() == 0
        settled(terminal)
    assert b"typed" not in session.output()


def test_a_window_that_is_dragged_takes_the_session_with_it(registry: Registry) -> None:
    session = shell(registry)
    with attached("s") as terminal:
        terminal.told("detaches")
        for width in range(60, 100):
            terminal.resize((20, width))
        until(lambda: session.info().size == (20, 99), what=session.info)
        terminal.type("stty size\r")
        terminal.until("20 99")
        terminal.type(DETACH)
        terminal.wait()


def test_another_detach_key_also_where_keys_are_told_in_numbers(registry: Registry) -> None:
    keys(registry)
    for typed in (b"\x1d", b"\x1b[93;5u", b"\x1b[27;5;93~"):
        with attached("k", (24, 80), "--detach-key", "C-]") as terminal:
            terminal.told("C-] detaches")
            terminal.type(DETACH)
            terminal.until("<1c>")
            terminal.type(typed)
            assert terminal.wait() == 0


@pytest.mark.parametrize(
    ("name", "typed", "before", "leaves"),
    [
        ("C-\\", b"abc\x1cdef", b"abc", True),
        ("C-\\", b"abc", b"abc", False),
        ("C-\\", b"\x1b[92;5u", b"", True),
        ("C-\\", b"\x1b[92;5:1u", b"", True),
        ("C-\\", b"\x1b[92;5:3u", b"\x1b[92;5:3u", False),  # it was let go
        ("C-a", b"\x1b[97:65;5u", b"", True),
        ("C-a", b"\x1b[97;6u", b"\x1b[97;6u", False),
        ("F12", b"x\x1b[24~y", b"x", True),
        ("M-d", b"\x1bd", b"", True),
    ],
)
def test_the_detach_key_is_found_in_what_is_typed(name: str, typed: bytes, before: bytes, leaves: bool) -> None:
    assert DetachKey(name).part(typed) == (before, leaves)


def test_a_shell_of_cells_takes_keys_only_while_a_command_runs(registry: Registry) -> None:
    session = registry.shell("c", lifetime="detached", rc=False)
    with attached("c") as terminal:
        terminal.told("detaches")
        terminal.type("ls\r")
        terminal.told("no command runs", "%%sh_session c")
        cell = session.cell("printf 'one\\ntwo\\n'; read word; echo got $word")
        try:
            terminal.until("one\ntwo")
            terminal.type("yes\r")
            terminal.until("got yes")
        finally:
            cell.close()
        terminal.type(DETACH)
        assert terminal.wait() == 0


def test_a_terminal_that_reads_nothing_slows_nobody_and_catches_up(registry: Registry) -> None:
    code = "import sys, time; sys.stdin.readline(); t = time.monotonic()\n"
    code += "for n in range(100_000): sys.stdout.write(f'{n:060d}\\n')\n"
    code += "sys.stdout.flush(); print('took', time.monotonic() - t); sys.stdin.readline()"
    session = registry.start("flood", Command((sys.executable, "-c", code)))
    with attached("flood") as terminal:
        terminal.told("detaches")
        terminal.stall(True)
        terminal.type("\r")  # which takes the line away: from then on output passes as it comes
        until(lambda: b"took" in session.output(max(0, session.info().log_bytes - 99)), 2 * DEADLINE)
        terminal.stall(False)
        terminal.until("took", "99999")
        assert len(terminal.raw) < 2_000_000
        terminal.type(DETACH)
        assert terminal.wait() == 0
        settled(terminal)


def test_a_stalled_terminal_can_still_be_left(registry: Registry) -> None:
    session = registry.start("yes", Command(("sh", "-c", "echo ready; read word; yes | head -c 300000; exec cat")))
    with attached("yes") as terminal:
        terminal.told("detaches")
        terminal.until("ready")
        terminal.stall(True)
        terminal.type("\r")  # which takes the line away: from then on output passes as it comes
        until(terminal.full)
        used, began = psutil.Process(terminal.process.pid).cpu_times().user, time.monotonic()
        terminal.type("z" * 100)  # it is awake, and not busy
        until(lambda: session.output().count(b"z") == 100)
        busy = psutil.Process(terminal.process.pid).cpu_times().user - used
        assert busy < 0.1 + (time.monotonic() - began) / 2
        terminal.type(DETACH)
        assert terminal.wait() == 0
        terminal.stall(False)
        terminal.until("detached:")
        settled(terminal)


def test_a_program_that_does_not_read_keeps_nobody_from_leaving(registry: Registry) -> None:
    code = "import tty, time; tty.setraw(0); print('deaf', flush=True); time.sleep(1000)"
    registry.start("deaf", Command((sys.executable, "-c", code))).wait_for("deaf", DEADLINE)
    with attached("deaf") as terminal:
        terminal.told("detaches")
        for _ in range(600):
            terminal.type(b"x" * 4000)
        terminal.told("the program does not read: what was typed is dropped")
        terminal.type(DETACH)
        assert terminal.wait() == 0
        settled(terminal)


def test_a_stopped_holder_keeps_nobody_from_leaving(registry: Registry) -> None:
    from session_magics.store.records import read_run

    session = keys(registry)
    run = read_run(str(session.directory))
    assert run is not None
    with attached("k") as terminal:
        terminal.told("detaches")
        os.kill(run.holder, signal.SIGSTOP)
        try:
            terminal.type("a")
            terminal.told("keys are dropped", "did not answer")
            terminal.type(DETACH)
            assert terminal.wait() == 0
        finally:
            os.kill(run.holder, signal.SIGCONT)


def test_a_restart_is_seen_and_begins_with_fresh_modes(registry: Registry, root: Path) -> None:
    code = "test -e $0 || printf '\\033[?1002h\\033[5;5Hfirst'; echo $0 > $0; echo ready; read word; exit 5"
    registry.start("k", Command(("sh", "-c", code, str(root / "flag"))))
    with attached("k") as terminal:
        terminal.told("detaches")
        terminal.until("first")
        until(lambda: b"1002" in terminal.switched())
        registry.restart("k")
        terminal.until("ready", gone="first")
        until(lambda: b"1002" not in terminal.switched())
        terminal.type("\r")
        assert terminal.wait() == 5
        settled(terminal)


def test_what_cannot_be_attached_to_is_told_in_one_line(registry: Registry, root: Path) -> None:
    registry.start("done", Command(("true",))).wait(DEADLINE)
    keys(registry)
    id = registry.get("k").id
    for words, status, message, env in (
        (("done",), 1, "session 'done' is not running (exited 0): session-magics restart done", {}),
        (("nope",), 1, "no session named 'nope'", {}),
        (("k", "--detach-key", "Nope"), 2, "no key 'Nope'", {}),
        (("k",), 2, "this terminal is session 'k' itself", {"SESSION_MAGICS_SESSION": id}),
    ):
        with Terminal((*CLI, "attach", *words), (24, 200), env=env) as terminal:
            assert terminal.wait() == status
            terminal.until(f"session-magics: {message}" if status == 1 else message)
            settled(terminal)


def test_it_comes_and_goes_a_hundred_times_and_leaves_nothing(registry: Registry) -> None:
    session = keys(registry, "\\x1b[?1049h")
    from session_magics.store.records import read_run

    run = read_run(str(session.directory))
    assert run is not None
    descriptors = len(os.listdir(f"/proc/{run.holder}/fd"))
    for _ in range(rounds(5, 100)):
        with attached("k") as terminal:
            terminal.until("ready")
            terminal.type(DETACH)
            assert terminal.wait() == 0
            settled(terminal)
    until(lambda: len(os.listdir(f"/proc/{run.holder}/fd")) == descriptors)
    assert session.info().running and b"<" not in session.output()


def test_the_modes_are_those_of_a_raw_terminal_meanwhile(registry: Registry) -> None:
    shell(registry)
    with attached("s") as terminal:
        terminal.told("detaches")
        modes = termios.tcgetattr(terminal.tty_fd)
        assert not modes[3] & (termios.ECHO | termios.ICANON | termios.ISIG) and not modes[1] & termios.OPOST
        terminal.type(DETACH)
        terminal.wait()
