"""``attach``: how it comes and goes, and that it leaves the terminal as it was, whatever ends first.

Real programs on real terminals, which answer questions as real ones do, here and in the other modules of ``attach``.
"""

from __future__ import annotations

import os
import signal
import sys
import termios
from pathlib import Path

import psutil
import pytest

import attachable
from attachable import PROMPT, keys, settled, shell
from rounds import DEADLINE, rounds, until
from session_magics import Command, Registry
from terminals import CLI, DETACH, Terminal, attached

pytestmark = pytest.mark.timeout(120)
registry = attachable.registry


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
