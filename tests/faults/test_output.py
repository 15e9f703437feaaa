"""Lines 21 to 25: all that a program prints is in the log as it is, and harms nobody who shows it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from holders import MB, faults, holder, memory
from rounds import DEADLINE, rounds, until
from session_magics import Command, Exited, Registry, Session
from session_magics.text import LineModel
from terminals import CLI, DETACH, KEYS, Terminal, attached

BACKENDS = ("native", "tmux")

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc"),
    pytest.mark.timeout(120),
]


def python(code: str, *arguments: object) -> Command:
    return Command((sys.executable, "-I", "-S", "-c", code, *map(str, arguments)))


# Writes so many bytes, which depend on the seed, and exits.
QUICK = """
import os, random, sys
size, code, seed = map(int, sys.argv[1:])
data = random.Random(seed).randbytes(size).replace(b"\\n", b" ")
while data:
    data = data[os.write(1, data):]
os._exit(code)
"""


def test_line_21_a_quick_exit_loses_no_byte_and_keeps_its_code(registry: Registry) -> None:
    """The same for tmux: test_a_program_that_ends_at_once_loses_no_byte."""
    draw = random.Random(7)
    for number in range(rounds(40, 1000)):
        size, code = round(2 ** draw.uniform(0, 20)), draw.randrange(256)
        session = registry.start("quick", python(QUICK, size, code, number))
        assert session.wait(DEADLINE) == code
        wanted = random.Random(number).randbytes(size).replace(b"\n", b" ")
        assert hashlib.sha256(session.output()).digest() == hashlib.sha256(wanted).digest()


@pytest.mark.parametrize("backend", BACKENDS)
def test_line_22_a_child_that_keeps_the_terminal_delays_no_end_and_is_still_logged(
    registry: Registry, root: Path, backend: str
) -> None:
    for number in range(rounds(5, 100)):
        gate = root / f"gate{number}"
        os.mkfifo(gate)
        script = f"trap '' HUP; (read line <{gate}; echo late $line) & exit 3"
        session = registry.start("parent", Command(("sh", "-c", script)), backend=backend)
        assert session.wait(DEADLINE) == 3
        state = session.state()
        assert isinstance(state, Exited) and state.background
        gate.write_text("but here\n")
        until(lambda: session.output() == b"late but here\r\n", what=session.output)  # noqa: B023
        until(lambda: not getattr(session.state(), "background", True))  # noqa: B023
        assert session.wait(DEADLINE) == 3
        registry.remove("parent")


# Prints the bytes of a file as they are, and waits.
PRINT = """
import os, sys, tty
tty.setraw(0)
with open(sys.argv[1], "rb") as file:
    while data := file.read(1 << 16):
        while data:
            data = data[os.write(1, data):]
sys.stdin.read(1)
"""

# Of one to four bytes, and none of them a control character.
LETTERS = "aZ0~ äßñ λЖ €✓漢 한 😀𝄞"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["bytes", "text"])
def test_line_23_any_bytes_arrive_and_text_stays_text(
    registry: Registry,
    root: Path,
    capped: Callable[[int], None],
    kind: str,
    backend: str,
) -> None:
    size, draw, file = rounds(4 * MB, 100 * MB), random.Random(23), root / "data"
    if kind == "bytes":
        data = draw.randbytes(size)
    else:  # many lines, and then one that is longer than any tail, without an end
        piece = "".join(draw.choices(LETTERS, k=100_000))
        lines = piece.replace(" ", "\n") + "\n"
        data = (lines * (size // len(lines.encode())) + piece.replace(" ", "_") * 8).encode()
    file.write_bytes(data)
    capped(2 * len(data))
    session = registry.start("printer", python(PRINT, file), backend=backend)
    if kind == "bytes":
        until(lambda: session.info().log_bytes == len(data), 300, what=session.info)
    else:
        seen, viewer = 0, LineModel()
        for chunk in session.follow(0):
            viewer.feed(chunk)
            seen += len(chunk)
            if seen >= len(data):
                break
        assert viewer.text() == data.decode()
        assert session.tail(2).endswith(piece[-1000:].replace(" ", "_"))
        assert "\ufffd" not in session.tail(2) + session.snapshot()
    assert hashlib.sha256(session.output()).digest() == hashlib.sha256(data).digest()


QUESTIONS = (
    "\\x1b[c\\x1b[6n\\x1b[>c\\x1b[5n\\x1b]11;?\\x07\\x1bZ\\x05\\x1b[?2026$p\\x1bP+q544e\\x1b\\\\\\x1b[?6n"
    "\\x1b[x\\x1b[>q\\x1b[?u\\x1b[14t\\x1b[18t\\x1b]4;1;?\\x07\\x1b]52;c;?\\x07\\x1bP$qm\\x1b\\\\\\x1b[21t"
)

# Terminal's attributes, both kinds; its status; the cursor's place.
ANSWERS = b"\x1b[?62;22c\x1b[>0;276;0c\x1b[0n\x1b[24;1R"


def pressed(session: Session) -> bytes:
    """What ``KEYS`` has been given so far."""
    return bytes.fromhex(b"".join(re.findall(rb"<(\w+)>", session.output())).decode())


def test_line_24_no_question_is_answered_into_the_program(registry: Registry) -> None:
    session = registry.start("k", python(KEYS, QUESTIONS))
    # What a program needs to know that stands still without it, the holder answers, in as many pieces as may be.
    until(lambda: pressed(session) == ANSWERS, what=session.output)
    before = session.output()
    for number in range(rounds(4, 100)):
        with attached("k") as terminal:
            terminal.told("detaches")
            terminal.type("a")
            until(lambda: session.output().count(b"<61>") == number + 1)  # noqa: B023
            assert terminal.answers == []
            terminal.type(DETACH)
            terminal.wait()
    assert session.output() == before + b"<61>\r\n" * (number + 1)


def test_line_24_the_terminal_of_these_tests_does_answer(root: Path) -> None:
    with Terminal(("printf", "\\033[6n\\033[c")) as terminal:
        until(lambda: len(terminal.answers) == 2)


# Says that it is up; at a line it prints a beginning, then so many bytes, and waits for another.
ENDLESS = """
import os, sys
begin, size = sys.argv[1].encode().decode("unicode_escape").encode("latin-1"), int(sys.argv[2])
os.write(1, b"up\\n")
sys.stdin.readline()
os.write(1, begin)
while size > 0:
    size -= os.write(1, b"1;2;3;44;" * 7000)
os.write(1, b"over")
sys.stdin.readline()
"""

CLIENT_MEMORY, HOLDER_MEMORY = 50 * MB, 10 * MB


@pytest.mark.parametrize("begin", ["\\x1b]0;", "\\x1bP", "\\x1b["], ids=["OSC", "DCS", "CSI"])
def test_line_25_a_sequence_without_an_end_fills_no_memory(registry: Registry, begin: str) -> None:
    """Clients: an attached terminal, ``tail -f``, and the pictures that this process makes."""
    volume = rounds(16 * MB, 200 * MB)
    session = registry.start("flood", python(ENDLESS, begin, volume))
    following = (*CLI, "tail", "-f", "flood")
    with (
        attached("flood") as terminal,
        subprocess.Popen(following, stdout=subprocess.PIPE) as follower,
        contextlib.ExitStack() as over,
    ):
        over.callback(follower.kill)
        terminal.told("detaches")
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"up\n"  # it follows from here on
        terminal.type("\r")  # the first key takes the line away: from then on output passes as it comes
        until(lambda: session.output(session.info().log_bytes - 4) == b"over", 300, what=session.info)
        terminal.type("z")  # taken behind all of it: it is awake
        until(lambda: session.output().endswith(b"z"))
        assert len(session.tail()) + len(session.snapshot()) < 2 * MB
        for _ in range((volume - MB) // MB):  # not the last of it, which is an unfinished line
            assert len(follower.stdout.read(MB)) == MB
        for client in (terminal.process, follower):
            assert memory(client.pid, "VmHWM") <= CLIENT_MEMORY
        assert memory(holder(session), "VmHWM") <= HOLDER_MEMORY
        assert faults(session) == []
        terminal.type(DETACH)
        assert terminal.wait() == 0
        session.send("\r")
        assert follower.stdout.read().endswith(b"overz\n")
