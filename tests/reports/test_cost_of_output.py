"""Reports about logs and what output costs: memory and disk are bounded, and a reader misses nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from held import cap_logs, kept_bytes, memory, record
from rounds import rounds, until
from session_magics import Command, Registry
from session_magics.holder.logfile import SEGMENTS
from session_magics.log import LogReader
from terminals import DETACH, attached

CAP = 512 * 1024
SEGMENT = CAP // SEGMENTS
GROWTH = 1 << 20  # bytes that a holder may grow by, whatever its program prints
PYTHON = (sys.executable, "-I", "-S", "-u", "-c")
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


def test_circus_912_what_is_printed_after_each_restart_is_in_the_log(registry: Registry) -> None:
    """After a stop and a start the log got nothing any more."""
    session = registry.start("one", Command(("sh", "-c", "echo token; exec sleep 1000")))
    for number in range(1, 11):
        until(lambda number=number: session.output().count(b"token\r\n") == number)
        if number % 5 == 0:
            session.stop()
        registry.restart("one")
    until(lambda: session.output() == b"token\r\n" * 11)
