"""Sessions whose program runs elsewhere keep the contract of backends, and survive what happens to connections."""

from __future__ import annotations

import contextlib
import random
import signal
import sys
import time
from functools import partial
from pathlib import Path

import pytest

import farplaces
from farplaces import SLEEP, WITHIN, NextDoor, PlacedBackend, carrying, drop, far_directories, faults, over
from held import cap_logs, record, stopped
from rounds import rounds, until
from session_magics import Command, Exited, Registry, Running
from session_magics.backends import Link
from session_magics.errors import SessionError
from session_magics.log import EventReader, LogReader
from session_magics.run import run_cell
from session_magics.testing import Rig
from session_magics.testing.rig import outcome
from test_conformance import Check, every_check

home, place, there = farplaces.home, farplaces.place, farplaces.there


@every_check
def test_the_far_backend(check: Check, there: Registry) -> None:
    check(Rig(there))


def test_nothing_behind_the_end_of_a_cell_is_seen_before_its_status(there: Registry) -> None:
    """A hook of the prompt prints at once, and was shown as the cell's in one of some cells."""
    session = there.shell("s", shell="bash", rc=False)
    run_cell(session, "PROMPT_COMMAND='echo HOOK'")
    with contextlib.closing(session.attach()) as shell:
        for _ in range(rounds(100, 1000)):
            cell, seen = shell.cell("echo x"), 0
            while cell.result is None:
                cell.receive(0)
                seen = max(seen, 0 if cell.result else cell.available)
            assert seen <= cell.result.end


# ---------------------------------------------------------------- connections that drop


# Lines with their numbers, in five parts: for each but the first the connection has dropped once more.
IN_PARTS = """
import os, sys, time
lines, part = int(sys.argv[1]), int(sys.argv[1]) // 5 + 1
for n in range(lines):
    while n % part == 0 and os.path.getsize(sys.argv[2]) < n // part:
        sys.stdout.flush()
        time.sleep(0.01)
    sys.stdout.write('%015d\\n' % n)
"""


def test_the_log_has_no_gap_however_often_the_connection_drops(there: Registry, tmp_path: Path) -> None:
    """Every byte of 20 MB, at its offset, and nothing twice."""
    lines, dropped = 20 * 2**20 // 16, tmp_path / "dropped"
    dropped.touch()
    raw = ("sh", "-c", 'stty -opost; exec "$@"', "sh", sys.executable, "-c", IN_PARTS, str(lines), str(dropped))
    session = there.start("flood", Command(raw))
    generator, drops = random.Random(7), 0
    with LogReader(session.directory) as log:
        while not over(session):
            time.sleep(generator.uniform(0.0, 0.2))
            seen = log.end()
            drop(session)
            drops += 1
            dropped.write_text("x" * drops)
            until(lambda seen=seen: log.end() > seen or over(session), WITHIN)  # type: ignore[misc]
    assert session.wait(WITHIN) == 0
    assert drops >= 4
    assert session.output() == b"".join(b"%015d\n" % number for number in range(lines))
    assert faults(session) == []


def test_a_flood_comes_over_one_connection(there: Registry) -> None:
    """More than the log keeps, and more than a connection takes at once: it ends, and the end of it is here."""
    size = 70 * 2**20
    session = there.start("flood", Command(("sh", "-c", f"stty -opost; head -c {size} /dev/zero; echo end")))
    assert session.wait(2 * WITHIN) == 0
    with LogReader(session.directory) as log:
        assert log.end() == size + 4
        assert log.bytes(size - 2, size + 4) == b"\0\0end\n"


def test_what_the_far_log_dropped_meanwhile_is_a_gap(
    root: Path, place: NextDoor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All offsets stay true where the connection was away for longer than the far log keeps."""
    cap_logs(monkeypatch, 2**16)
    go = tmp_path / "go"
    registry = Registry(root, backend=PlacedBackend(place))
    script = (
        f"n=0; stty -opost; echo up; until [ -e {go} ]; do sleep 0.01; done; seq -f %015.0f 0 19999; exec sleep 1000"
    )
    session = registry.start("gap", Command(("sh", "-c", script)))
    session.wait_for("up", WITHIN)
    folder = place.home / ".local" / "state" / "session-magics-far" / far_directories(place.home)[0]
    with LogReader(folder) as there, LogReader(session.directory) as here:
        with stopped(record(session).holder):  # so long the relay makes no new connection
            drop(session)
            go.touch()
            until(lambda: there.end() == 3 + 20_000 * 16, WITHIN)
            assert here.end() == 3
        until(lambda: here.end() == there.end(), WITHIN)
        assert here.start() > 3 or here.missing(0, here.end()) > 200_000
        for offset, data in here.read(3, here.end()):
            number, rest = divmod(offset - 3, 16)
            assert data[16 - rest if rest else 0 :].startswith(b"%015d\n" % (number + bool(rest)))
    session.stop(now=True)


def test_a_cell_runs_once_and_has_its_status_whenever_the_connection_drops(there: Registry, tmp_path: Path) -> None:
    """Killed before it is sent, while it is, while it runs, and when its end is told."""
    generator, ran = random.Random(11), tmp_path / "ran"
    session = there.shell("cells", shell="bash", lifetime="detached", rc=False)
    with session.link() as link:
        outcome(link, link.run("true"))
        for number in range(rounds(25, 300)):
            pause = generator.choice((0.0, 0.002, 0.05))
            ticket = link.run(f"echo {number} >>{ran}; printf 'said {number}'; sleep {pause}; (exit {number % 200})")
            time.sleep(generator.choice((0.0, 0.0005, 0.001, 0.003, 0.03)))
            drop(session)
            began = time.monotonic()
            fields = outcome(link, ticket)
            assert time.monotonic() - began < WITHIN
            assert fields[3:5] == [b"%d" % (number % 200), b"done"]
            assert session.output(int(fields[1]), int(fields[2])) == b"said %d" % number
        assert ran.read_text().split() == [str(number) for number in range(number + 1)]
    ends = [event.data["status"] for event in EventReader(session.directory).events()[0] if event.kind == "end"]
    assert ends == [0, *(one % 200 for one in range(number + 1))]
    assert faults(session) == []


def test_hidden_cells_bring_their_values_over_a_new_connection(there: Registry) -> None:
    """What a drop comes between is told as if nothing had been."""
    session = there.shell("hidden", shell="bash", lifetime="detached", rc=False)
    with session.link() as link:
        ticket = link.run("sleep 0.3; printf out; (exit 4)", hidden=True)
        drop(session)
        assert outcome(link, ticket)[3:5] == [b"4", b"done"]


def test_what_cannot_be_asked_twice_is_refused_and_not_lost_sight_of(there: Registry, place: NextDoor) -> None:
    """A question on the way when the connection drops has an answer all the same, and the link goes on."""
    session = there.start("sleep", SLEEP)
    session.wait_for("up", WITHIN)
    with session.link() as link:
        for _ in range(rounds(10, 50)):
            drop(session)
            try:
                link.probe()
            except SessionError as error:
                assert "connection" in str(error)
            until(partial(answers, link), WITHIN)
    assert isinstance(session.state(), Running)


def answers(link: Link) -> bool:
    try:
        link.probe()
    except SessionError:
        return False
    return True


def test_a_connection_that_hangs_is_replaced(there: Registry) -> None:
    """A cell whose connection is stopped has its result all the same."""
    session = there.shell("stall", shell="bash", lifetime="detached", rc=False)
    with session.link() as link:
        outcome(link, link.run("true"))
        drop(session, signal.SIGSTOP)
        began = time.monotonic()
        assert outcome(link, link.run("(exit 9)"))[3] == b"9"
        assert time.monotonic() - began < WITHIN


def test_a_stop_goes_through_although_the_connection_drops(there: Registry) -> None:
    generator = random.Random(3)
    for number in range(rounds(5, 50)):
        session = there.start(f"stop{number}", SLEEP)
        session.wait_for("up", WITHIN)
        with session.link() as link:
            ticket = link._post(b"X", b"1", b"0")  # type: ignore[attr-defined]
            time.sleep(generator.uniform(0, 0.01))
            drop(session)
            until(partial(over, session), WITHIN)
        assert ticket
        state = session.stop()
        assert isinstance(state, Exited) and state.signal == signal.SIGTERM, state
        assert carrying(session) == []


def test_noise_before_the_mark_is_not_taken_for_an_answer(root: Path, place: NextDoor) -> None:
    """A login shell's start-up files may print what they like, and the client complain."""
    place.before = ("sh", "-c", 'printf "welcome\\n"; head -c 3000 /dev/urandom; echo psst >&2; exec "$@"', "sh")
    registry = Registry(root, backend=PlacedBackend(place))
    session = registry.start("loud", Command(("sh", "-c", "echo said; exit 3")))
    assert session.wait(WITHIN) == 3
    assert session.output() == b"said\r\n"
