"""Reports about terminals: what is attached says what is the matter, can be left, and shows its own session alone."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
from pathlib import Path

import pytest

from held import command_line, record, stopped
from rounds import DEADLINE, rounds, until
from session_magics import Command, Registry, Session, SessionNotFound, SessionUnresponsive
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_verb
from terminals import DETACH, attached

PYTHON = (sys.executable, "-I", "-S", "-u", "-c")
SLEEP = Command(("sleep", "1000"))

# Shows each key in hex, raw.
KEYS = """
import os, tty
tty.setraw(0)
os.write(1, b"ready\\r\\n")
while True:
    os.write(1, b"".join(b"<%02x>" % one for one in os.read(0, 4096)))
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc")


# ------------------------------------------------------------ holders that hang or are gone


def test_zellij_5583_a_full_backlog_is_no_death_and_no_socket_is_deleted(registry: Registry) -> None:
    """A busy server refused a connection; its socket was deleted as stale, and nobody could reach it any more."""
    session = registry.start("one", SLEEP)
    before = os.stat(session.directory / "sock")
    with contextlib.ExitStack() as stack:
        stack.enter_context(stopped(record(session).holder))
        refused = 0
        while not refused:  # until the backlog is full
            connection = stack.enter_context(socket.socket(socket.AF_UNIX))
            connection.setblocking(False)
            refused = connection.connect_ex(str(session.directory / "sock"))
        assert [info.running for info in registry.infos()] == [True]
        with pytest.raises(SessionUnresponsive):
            session.resize(30, 90)
        assert command_line("send", "one", "x")[0] == 1
        assert command_line("list")[0] == 0
    assert os.stat(session.directory / "sock").st_ino == before.st_ino
    until(lambda: answers(session), what="served again")


def answers(session: Session) -> bool:
    with contextlib.suppress(SessionUnresponsive):
        session.resize(31, 91)
        return True
    return False


def test_abduco_69_an_attach_to_a_holder_that_hangs_says_so_and_can_be_left(registry: Registry) -> None:
    """One of several sessions was dead on attaching, and the terminal could not be left."""
    session = registry.start("one", Command((*PYTHON, KEYS)))
    session.wait_for("ready", DEADLINE)
    with stopped(record(session).holder), attached("one", (24, 200)) as terminal:
        terminal.told("did not answer")
        with contextlib.suppress(OSError):
            terminal.type(DETACH)
        assert terminal.wait() in (0, 1)
        until(lambda: terminal.restored)
    session.resize(30, 90)


@pytest.mark.parametrize("fault", ["a damaged record", "a dead socket", "no socket", "a stopped holder"])
def test_shpool_335_an_attach_always_gives_a_reason_in_time(registry: Registry, fault: str) -> None:
    """It ended with 1 and no word, or never."""
    session = registry.start("one", SLEEP)
    socket_file = session.directory / "sock"
    with contextlib.ExitStack() as stack:
        if fault == "a damaged record":
            (session.directory / "run.json").write_bytes(b'{"schema": 1')
        elif fault == "a stopped holder":
            stack.enter_context(stopped(record(session).holder))
        else:
            socket_file.unlink()
            if fault == "a dead socket":
                with socket.socket(socket.AF_UNIX) as dead:
                    dead.bind(str(socket_file))
        with attached("one", (24, 200)) as terminal:
            terminal.until("one")
            until(lambda: terminal.process.poll() is not None or b"detaches" in terminal.raw or b"drop" in terminal.raw)
            if terminal.process.poll() is None:
                terminal.type("x")
                terminal.told("keys are dropped")
                terminal.type(DETACH)
                assert terminal.wait() == 0
            else:
                assert terminal.wait() == 1
                terminal.until("session-magics: ")
    session.stop(now=True)


def test_cmux_10414_keys_for_a_holder_that_hangs_are_dropped_and_told(registry: Registry) -> None:
    """What was typed without a connection was played into the program later."""
    session = registry.start("one", Command((*PYTHON, KEYS)))
    session.wait_for("ready", DEADLINE)
    with attached("one", (24, 200)) as terminal:
        terminal.told("detaches")
        terminal.until("ready")
        with stopped(record(session).holder):
            terminal.type("abc")
            terminal.told("keys are dropped")
        until(lambda: answers(session))
        terminal.type("z")
        until(lambda: b"<7a>" in session.output())
        assert session.output() == b"ready\r\n<7a>"
        terminal.type(DETACH)
        assert terminal.wait() == 0


def test_abduco_44_a_late_comer_gets_the_exit_code_every_time(registry: Registry) -> None:
    """Whoever attached after the end got no exit code."""
    registry.start("one", Command(("sh", "-c", "exit 7"))).wait(DEADLINE)
    for _ in range(2):
        assert command_line("wait", "one")[0] == 7
        with attached("one", (24, 200)) as terminal:
            assert terminal.wait() == 7
            terminal.until("session 'one' is not running (exited 7)")
    registry.start("two", Command(("sh", "-c", "kill -9 $$"))).wait(DEADLINE)
    registry.start("three", Command(("true",))).wait(DEADLINE)
    for name, status in (("two", 137), ("three", 1)):  # what could not be attached to is no success
        with attached(name) as terminal:
            assert terminal.wait() == status


def test_vscode_186773_both_front_ends_of_a_session_recover_from_its_restart(registry: Registry) -> None:
    """After a restart of the host one window of two stayed dead."""
    session = registry.start("one", Command((*PYTHON, KEYS)))
    session.wait_for("ready", DEADLINE)
    for _ in range(2):
        with attached("one") as first, attached("one") as second:
            for terminal in (first, second):
                terminal.until("ready")
            registry.restart("one")
            for terminal, key in ((first, "a"), (second, "b")):
                terminal.until("ready")
                until(lambda: session.output().count(b"ready") == session.info().generation)
                terminal.type(key)
                # Not by the screen, which may still show what was typed before the restart.
                until(lambda: session.output().endswith(f"<{ord(key):02x}>".encode()), what=session.output)  # noqa: B023
            for terminal in (first, second):
                terminal.until("<61><62>")
                terminal.type(DETACH)
                assert terminal.wait() == 0


# ------------------------------------------------------------ screens, names, sizes


def test_databricks_apps_122_a_prompt_is_clean_after_a_full_screen_program(registry: Registry, root: Path) -> None:
    """The screen of a program that had been left came back on the next attach."""
    if shutil.which("vim") is None:
        pytest.skip("vim is not installed")
    text = root / "text"
    text.write_text("".join(f"vim line {number}\n" for number in range(60)))
    env = {"PS1": "ready> ", "PROMPT_COMMAND": None, "HISTFILE": None}
    session = registry.start("s", Command(("bash", "--norc", "--noprofile"), env=env))
    session.wait_for("ready>", DEADLINE)
    with attached("s") as terminal:
        terminal.told("detaches")
        terminal.until("ready>")
        terminal.type(f"vim -u NONE -N {text}\r")
        terminal.until("vim line 20")
        terminal.type(":q\r")
        until(lambda: session.output().endswith(b"ready> "))  # the test's own terminal has no second screen
        terminal.type(DETACH)
        assert terminal.wait() == 0
    with attached("s") as terminal:
        terminal.told("detaches")
        terminal.until("ready>", gone="detaches")
        assert "vim line" not in terminal.text and terminal.lines[terminal.cursor[0]] == "ready>"
        terminal.type("echo cle''an\r")
        terminal.until("clean")
        terminal.type(DETACH)
        assert terminal.wait() == 0


@pytest.mark.parametrize("backend", ["native", "tmux"])
def test_tmux_1143_a_name_is_never_the_beginning_of_another(registry: Registry, backend: str) -> None:
    """What was meant for one session went to another whose name begins alike."""
    if backend == "tmux" and shutil.which("tmux") is None:
        pytest.skip("needs tmux")
    for name in ("a", "ab"):
        registry.start(name, Command((*PYTHON, KEYS)), backend=backend).wait_for("ready", DEADLINE)
    registry.remove("a", force=True)
    with pytest.raises(SessionNotFound):
        registry.get("a")
    verbs = Verbs(registry, lambda _: None)
    for line in ("send a x", "stop a", "interrupt a", "tail a", "restart a", "wait a"):
        with pytest.raises(SessionNotFound, match="no session named 'a'"):
            verbs.call(parse_verb(line))
    other = registry.get("ab")
    assert other.info().running and other.info().generation == 1 and b"<" not in other.output()


def test_gemini_cli_15623_a_resize_during_and_after_the_end_harms_nobody(registry: Registry) -> None:
    """A resize of a terminal whose program had just ended was a crash."""
    from session_magics import SessionNotRunning

    for _ in range(rounds(5, 100)):
        session = registry.start("one", Command(("sh", "-c", "read word; exit 5")))
        with session.link() as link, contextlib.suppress(SessionNotRunning):
            session.send("\r")
            for rows in range(10, 200):
                link.resize(rows, 2 * rows)
        assert session.wait(DEADLINE) == 5
        with pytest.raises(SessionNotRunning):
            session.resize(20, 20)
