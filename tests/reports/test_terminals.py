"""Reports about terminals and logs: input and output whole, memory and disk bounded, holders that hang."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from held import cap_logs, command_line, kept_bytes, memory, record, stopped
from rounds import DEADLINE, rounds, sessions, until
from session_magics import Command, Registry, Session, SessionNotFound, SessionUnresponsive
from session_magics.holder.logfile import SEGMENTS
from session_magics.log import LogReader
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_verb
from terminals import attached

CAP = 512 * 1024
SEGMENT = CAP // SEGMENTS
GROWTH = 1 << 20  # bytes that a holder may grow by, whatever its program prints
PYTHON = (sys.executable, "-I", "-S", "-u", "-c")
SLEEP = Command(("sleep", "1000"))
DETACH = b"\x1c"

# Shows each key in hex, raw.
KEYS = """
import os, tty
tty.setraw(0)
os.write(1, b"ready\\r\\n")
while True:
    os.write(1, b"".join(b"<%02x>" % one for one in os.read(0, 4096)))
"""
# Writes what a FIFO asks for: the count of pieces, and the piece.
PIECES = """
import os, sys
for line in open(sys.argv[1]):
    count, piece = eval(line)
    for number in range(count):
        os.write(1, piece)
    os.write(1, b"\\nwritten\\n")
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc")


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    with sessions(root) as opened:
        yield opened


class Printer:
    """A session that prints so many pieces when it is told to."""

    def __init__(self, registry: Registry) -> None:
        self.gate = registry.store.root / "gate"
        os.mkfifo(self.gate)
        self.session = registry.start("printer", Command((*PYTHON, PIECES, str(self.gate))))
        self._go = open(self.gate, "w", buffering=1)  # noqa: SIM115

    def begin(self, count: int, piece: bytes) -> None:
        self._go.write(f"{count}, {piece!r}\n")

    def print(self, count: int, piece: bytes) -> None:
        begin = self.session.info().log_bytes
        self.begin(count, piece)
        until(lambda: self.session.output(max(begin, self.session.info().log_bytes - 9)).endswith(b"written\r\n"))

    def close(self) -> None:
        self._go.close()


@pytest.fixture
def printer(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Iterator[Printer]:
    cap_logs(monkeypatch, CAP)
    made = Printer(registry)
    yield made
    made.close()


# ------------------------------------------------------------ bounds


def test_tmux_4859_redraws_without_end_cost_the_holder_no_memory(printer: Printer) -> None:
    """A line drawn again and again, with a client that does not read, filled the server's memory."""
    with attached("printer") as terminal:
        terminal.told("detaches")
        terminal.stall(True)
        frame = b"\r\x1b[2K" + b"working " * 9
        printer.print(100_000, frame)
        holder = record(printer.session).holder
        before = memory(holder)
        printer.print(rounds(200_000, 600_000), frame)
        assert memory(holder) - before < GROWTH
        assert kept_bytes(printer.session.directory) <= CAP
        terminal.stall(False)
        terminal.until("working")
        terminal.type(DETACH)
        assert terminal.wait() == 0


@pytest.mark.parametrize("introducer", [b"\x1b]", b"\x1bP", b"\x1b[", b"\x1b_"], ids=["OSC", "DCS", "CSI", "APC"])
def test_mprocs_0_9_5_a_sequence_without_an_end_costs_nobody_memory(printer: Printer, introducer: bytes) -> None:
    """What came behind the beginning of a control sequence was collected until its end, which never came."""
    with attached("printer") as terminal:
        terminal.told("detaches")
        printer.print(100, b"warm " * 200)
        printer.print(1, introducer)
        printer.print(1000, b"1" * 4096)
        pids = (record(printer.session).holder, terminal.process.pid)
        before = [memory(pid) for pid in pids]
        printer.print(rounds(2000, 50_000), b"1" * 4096)
        assert memory(pids[0]) - before[0] < GROWTH
        assert memory(pids[1]) - before[1] < 8 * GROWTH, "what attaches draws pictures, and stays small"
        printer.print(1, b"\x1b\\\x1bc\r\nafter\r\n")
        terminal.until("after")
        terminal.type(DETACH)
        assert terminal.wait() == 0


def test_pm2_logrotate_165_a_log_is_under_its_cap_at_every_moment(printer: Printer) -> None:
    """The rotation itself filled the disk."""
    seen = []
    printer.begin(rounds(4000, 32_000), b"0123456789abcdef" * 512)
    while not printer.session.output(max(0, printer.session.info().log_bytes - 9)).endswith(b"written\r\n"):
        seen.append(kept_bytes(printer.session.directory))
    assert len(seen) > 10 and max(seen) <= CAP + SEGMENT
    assert printer.session.info().log_bytes > 30 * CAP


def test_atch_16_a_full_log_stays_under_its_cap_through_restarts(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each new start began a log of the whole size beside the old one."""
    cap_logs(monkeypatch, CAP)
    session = registry.start("one", Command(("sh", "-c", f"yes | head -c {3 * CAP // 2}; echo; echo full; sleep 1000")))
    until(lambda: session.output(max(0, session.info().log_bytes - 6)) == b"full\r\n")
    size = session.info().log_bytes  # of what each start prints
    for number in range(4):
        until(lambda number=number: session.info().log_bytes == (number + 1) * size, what=session.info)
        assert CAP - 2 * SEGMENT <= kept_bytes(session.directory) <= CAP
        if number == 2:
            session.stop(now=True)  # and by a new holder
        registry.restart("one")


def test_fluent_bit_375_a_follower_of_a_log_that_rotates_misses_nothing_unseen(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines were lost where the file was copied and cut under the reader."""
    cap_logs(monkeypatch, CAP)
    count, width = rounds(300_000, 3_000_000), 11
    code = f"import os; input()\nfor n in range(0, {count}, 100): "
    code += "os.write(1, b''.join(b'%09d\\n' % m for m in range(n, n + 100)))"
    session = registry.start("lines", Command((*PYTHON, code)))
    begin, position, wrong = len(b"\r\n"), 0, []  # the echo of Enter
    session.send("\r")
    with LogReader(session.directory) as log, session.news() as news:
        while True:
            running = news.running()
            for offset, data in log.read(position, log.end()):
                first = -(-max(0, offset - begin) // width)
                lines = data[begin + first * width - offset :]
                whole = len(lines) // width
                wrong += [offset] * (lines[: whole * width] != numbered(first, whole))
                position = offset + len(data)
            if not running:
                break
            news.wait(position, None)
    assert not wrong and position == begin + count * width and position > 50 * SEGMENT


def numbered(first: int, count: int) -> bytes:
    return b"".join(b"%09d\r\n" % number for number in range(first, first + count))


def test_atch_6_an_attach_draws_the_screen_and_replays_no_history(registry: Registry) -> None:
    """Every attach wrote megabytes of history to the terminal."""
    code = "print(''.join('line %07d\\n' % n for n in range(400_000)) + 'last'); input()"
    session = registry.start("much", Command((*PYTHON, code)))
    until(lambda: session.output(max(0, session.info().log_bytes - 6)) == b"last\r\n", what=session.info)
    assert session.info().log_bytes > 5_000_000
    with attached("much") as terminal:
        terminal.until("line 0399999", "last")
        terminal.type(DETACH)
        assert terminal.wait() == 0
        assert len(terminal.raw) <= 64 * 1024


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


# ------------------------------------------------------------ screens, names, logs


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


def test_circus_912_what_is_printed_after_each_restart_is_in_the_log(registry: Registry) -> None:
    """After a stop and a start the log got nothing any more."""
    session = registry.start("one", Command(("sh", "-c", "echo token; exec sleep 1000")))
    for number in range(1, 11):
        until(lambda number=number: session.output().count(b"token\r\n") == number)
        if number % 5 == 0:
            session.stop()
        registry.restart("one")
    until(lambda: session.output() == b"token\r\n" * 11)


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
