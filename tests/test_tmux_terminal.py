"""Sessions whose terminal tmux has: every byte of output, keys, sizes, and people who attach."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import shlex
import signal
import time
from collections.abc import Iterator

import pytest

import panes
from panes import NEEDED, PYTHON, ask, plain
from rounds import DEADLINE as LIMIT
from rounds import rounds, until
from session_magics import Command, Registry, Running
from session_magics.holder import tmux
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_verb

pytestmark = NEEDED
registry = panes.registry
QUICK = rounds(40, 1000)


@pytest.mark.timeout(rounds(60, 600))
def test_a_program_that_ends_at_once_loses_no_byte(registry: Registry) -> None:
    """SEEDS B13."""
    for number in range(QUICK):
        size = (1, 60, 5000, 70_000)[number % 4]
        text = f"{number:05d}" + "x" * size
        code = f"import os; os.write(1, b'{number:05d}' + b'x' * {size}); os._exit({number % 256})"
        session = registry.start("quick", Command((*PYTHON, code)))
        assert session.wait(LIMIT) == number % 256
        assert session.output() == text.encode()


def test_all_output_is_in_the_log_and_only_the_last_lines_in_tmux(registry: Registry) -> None:
    session = registry.start("many", Command(("sh", "-c", "seq 50000; echo done; sleep 1000")))
    session.wait_for("done", LIMIT)
    assert session.output() == b"".join(b"%d\r\n" % number for number in range(1, 50001)) + b"done\r\n"
    assert 0 < int(ask(session, "display", "-p", "#{history_size}")) <= tmux.HISTORY_LINES


def test_output_goes_on_when_somebody_has_closed_the_pipe(registry: Registry) -> None:
    session = registry.start("told", Command(("sh", "-c", "echo one; while read line; do echo got $line; done")))
    session.wait_for("one", LIMIT)
    ask(session, "pipe-pane", "-t", "%0")
    events = session.directory / "log.idx"
    until(lambda: b"had closed the pipe" in events.read_bytes())
    session.send("two\r")
    session.wait_for("got two", LIMIT)


def test_a_question_to_the_terminal_is_answered_once(registry: Registry) -> None:
    code = """
import os, select, sys, tty
tty.setraw(0)
os.write(1, b"\\x1b[5n\\x1b[6n")
heard, wanted = b"", len(b"\\x1b[0n\\x1b[1;1R")
while select.select([0], [], [], 20 if len(heard) < wanted else 0.5)[0]:
    heard += os.read(0, 100)
print(repr(heard))
"""
    session = registry.start("asks", Command((*PYTHON, code)))
    session.wait(2 * LIMIT)
    assert session.output().endswith(rb"b'\x1b[0n\x1b[1;1R'" + b"\n"), session.output()


def test_a_program_that_is_suspended_by_a_key_goes_on(registry: Registry) -> None:
    """As natively, where the system does not let a program be stopped that nobody could continue."""
    session = registry.start("one", Command(("sh", "-c", "echo ready; while read line; do echo got $line; done")))
    session.wait_for("ready", LIMIT)
    session.send(b"\x1a")
    session.send("more\r")
    session.wait_for("got more", LIMIT)


def test_a_socket_that_was_deleted_comes_back(registry: Registry) -> None:
    """tmux/tmux#1036, #2222, #4057."""
    session = registry.start("one", Command(("sleep", "1000")), size=(24, 80))
    os.unlink(session.directory / "tmux")
    session.resize(30, 100)
    until(lambda: (session.directory / "tmux").exists())
    until(lambda: ask(session, "display", "-p", "#{window_height}x#{window_width}") == "30x100")


def test_many_resizes_end_with_the_last(registry: Registry) -> None:
    session = registry.start("one", Command(("sleep", "1000")))
    with session.link() as link:
        for rows in range(10, 60):
            link.resize(rows, 2 * rows)
    until(lambda: ask(session, "display", "-p", "#{window_height}x#{window_width}") == "59x118")
    assert session.info().size == (59, 118)


@contextlib.contextmanager
def attached(command: str) -> Iterator[tuple[int, int]]:
    """A real terminal with a person's command in it: its descriptor and the pid."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execvpe("sh", ["sh", "-c", f"exec {command}"], plain() | {"TERM": "xterm", "LC_ALL": "C.UTF-8"})
    try:
        yield fd, pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(fd)


def read_until(fd: int, wanted: bytes) -> bytes:
    seen = b""
    deadline = time.monotonic() + LIMIT
    while wanted not in seen:
        assert select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0], seen
        seen += os.read(fd, 65536)
    return seen


def test_tmux_attaches_as_info_says_and_shows_the_screen(registry: Registry) -> None:
    program = ("sh", "-c", "echo on the screen; while read line; do echo got $line; done")
    session = registry.start("web.v1", Command(program), size=(20, 70))
    session.wait_for("screen", LIMIT)
    told = str(Verbs(registry, print).call(parse_verb("info web.v1")))
    command = re.search(r"^attach +(tmux .*)$", told, re.M)
    assert command and re.search(r"^backend +tmux$", told, re.M)
    with attached(command[1]) as (fd, _):
        read_until(fd, b"on the screen")
        os.write(fd, b"typed\r")
        session.wait_for("got typed", LIMIT)
        read_until(fd, b"got typed")
        assert ask(session, "display", "-p", "#{window_height}x#{window_width}") == "20x70", "who attaches only looks"
        os.write(fd, b"\x02d")
        read_until(fd, b"detached")
    assert isinstance(session.state(), Running)
    session.stop(now=True)
    assert "attach" not in str(Verbs(registry, print).call(parse_verb("info web.v1")))


def test_who_is_attached_gets_the_terminal_back_at_the_end(registry: Registry) -> None:
    session = registry.start("one", Command(("sh", "-c", "echo hello; sleep 1000")))
    with attached(shlex.join(["tmux", "-S", str(session.directory / "tmux"), "attach", "-t", "=one:"])) as (fd, _):
        read_until(fd, b"hello")
        session.stop(now=True)
        read_until(fd, b"\x1b[?1049l")
