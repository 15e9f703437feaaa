"""Keys and commands go to a place without Python by two connections: neither overtakes the other."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from farplaces import NextDoor, PlacedBackend
from session_magics.backends import Link
from session_magics.model import Command
from session_magics.registry import Registry
from session_magics.session import Session
from session_magics.testing.rig import outcome, receive_until

# Seconds that each key is on its way, and for a cell that does not wait for any: it would for half a second.
LATE, PROMPT = 0.1, 0.25
ROUNDS = 10
CARRIER = f"""
import os, pty, select, sys, time, tty
tty.setraw(0)
pid, there = pty.fork()
if not pid:
    os.execvp(sys.argv[1], sys.argv[1:])
while True:
    for fd in select.select([0, there], [], [])[0]:
        try:
            data = os.read(fd, 4096)
        except OSError:
            data = b""
        if not data:
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) if fd else 1)
        if not fd:
            time.sleep({LATE})
        os.write(1 if fd else there, data)
"""


class SlowKeys(NextDoor):
    """What is typed takes its time, all else does not."""

    def wrap(self, command: Command, *, terminal: bool = False) -> Command:
        self.before = (sys.executable, "-c", CARRIER) if terminal else ()
        return super().wrap(command, terminal=terminal)


@pytest.fixture
def cells(root: Path, tmp_path: Path) -> Iterator[tuple[Session, Link]]:
    registry = Registry(root, backend=PlacedBackend(SlowKeys(tmp_path, python=None)))
    session = registry.shell("cells", shell="bash", lifetime="detached", rc=False)
    with contextlib.ExitStack() as closing:
        closing.callback(lambda: session.stop(now=True))
        yield session, closing.enter_context(session.link())


def run(cells: tuple[Session, Link], text: str) -> tuple[bytes, bytes]:
    session, link = cells
    fields = outcome(link, link.run(text))
    return session.output(int(fields[1]), int(fields[2])), fields[4]


def test_keys_before_a_cell_are_no_input_of_it(cells: tuple[Session, Link]) -> None:
    run(cells, "true")
    cells[1].send(b"left over\nand more\n")
    assert run(cells, 'read -r -t 0.5 line; echo "got $line"')[0].endswith(b"got \n")
    assert run(cells, 'read -r -t 0.1 line; echo "got $line"')[0].endswith(b"got \n")


def test_keys_after_its_begin_are_all_for_the_cell(cells: tuple[Session, Link]) -> None:
    session, link = cells
    run(cells, "true")
    link.send(b"left over\n")
    ticket = link.run('read -r line; echo "got $line"')
    receive_until(link, lambda: link.begun(ticket), "the beginning")
    link.send(b"mine\n")
    fields = outcome(link, ticket)
    assert session.output(int(fields[1]), int(fields[2])).endswith(b"got mine\n")


def test_a_cell_waits_for_no_keys_that_were_for_another(cells: tuple[Session, Link]) -> None:
    """Each would; that some take as long may be the machine's doing."""
    assert any(seconds_after_keys(cells) < PROMPT for _ in range(ROUNDS))


def seconds_after_keys(cells: tuple[Session, Link]) -> float:
    """Those of a cell after one that has read what was typed."""
    _, link = cells
    ticket = link.run("read -r line")
    receive_until(link, lambda: link.begun(ticket), "the beginning")
    link.send(b"mine\n")
    outcome(link, ticket)
    began = time.monotonic()
    run(cells, "true")
    return time.monotonic() - began


def test_exec_is_told_from_exit_however_soon_the_program_ends(cells: tuple[Session, Link]) -> None:
    assert run(cells, "exec true")[1] == b"replaced"
    assert run(cells, "exec 5>&1; echo on; exit 3") == (b"on\n", b"exited")
    assert run(cells, "trap 'echo bye' EXIT; exit 3") == (b"bye\n", b"exited")
    assert run(cells, "exec sh -c 'echo other; exit 4'") == (b"other\n", b"replaced")
