"""Sessions whose program runs elsewhere keep the contract of backends, and survive what happens to connections."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest

from farplaces import NextDoor, PlacedBackend, far_directories, far_holders
from held import cap_logs, record
from rounds import rounds, until, until_state
from session_magics import Command, Exited, Lost, Registry, Running, Session, StartFailed
from session_magics.backends import Link, Start, far
from session_magics.backends.far import FarBackend
from session_magics.cleaning import clean
from session_magics.errors import SandboxError, SessionError
from session_magics.holder import processes, trees
from session_magics.log import EventReader, LogReader
from session_magics.testing import Rig
from session_magics.testing.rig import outcome
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_verb
from test_conformance import Check, every_check

WITHIN = 5.0  # seconds in which a connection is there again, or the session lost
SLEEP = Command(("sh", "-c", "echo up; exec sleep 1000"))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """The home of the place next door; no session may have left anything there."""
    yield tmp_path
    until(lambda: not far_directories(tmp_path), 5.0, what=lambda: far_directories(tmp_path))


@pytest.fixture
def place(home: Path) -> NextDoor:
    return NextDoor(home)


@pytest.fixture
def there(root: Path, place: NextDoor) -> Iterator[Registry]:
    registry = Registry(root, backend=PlacedBackend(place))
    yield registry
    registry.stop_all(now=True)


def connection(session: Session) -> int:
    """The pid of the program that leads to the place."""
    return next((one.pid for one in psutil.Process(record(session).holder).children()), 0)


def drop(session: Session, number: int = signal.SIGKILL) -> None:
    """Kill the connection, if there is one at this moment."""
    if pid := connection(session):
        os.kill(pid, number)


def carrying(session: Session) -> list[int]:
    return trees.carrying(f"SESSION_MAGICS_SESSION={session.id}".encode())


def faults(session: Session) -> list[object]:
    return [event.data for event in EventReader(session.directory).events()[0] if event.kind == "fault"]


@every_check
def test_the_far_backend(check: Check, there: Registry) -> None:
    check(Rig(there))


# ---------------------------------------------------------------- connections that drop


def test_the_log_has_no_gap_however_often_the_connection_drops(there: Registry) -> None:
    """Every byte of 20 MB, at its offset, and nothing twice."""
    lines = 20 * 2**20 // 16
    script = f"import sys\nfor n in range({lines}): sys.stdout.write('%015d\\n' % n)"
    raw = ("sh", "-c", 'stty -opost; exec "$@"', "sh", sys.executable, "-c", script)
    session = there.start("flood", Command(raw))
    generator, drops = random.Random(7), 0
    with LogReader(session.directory) as log:
        while not over(session):
            time.sleep(generator.uniform(0.0, 0.2))
            seen = log.end()
            drop(session)
            drops += 1
            until(lambda seen=seen: log.end() > seen or over(session), WITHIN)  # type: ignore[misc]
    assert session.wait(WITHIN) == 0
    assert drops > 3
    assert session.output() == b"".join(b"%015d\n" % number for number in range(lines))
    assert faults(session) == []


def test_a_flood_comes_over_one_connection(there: Registry) -> None:
    """More than the log keeps, and more than a connection takes at once: it ends, and the end of it is here."""
    size = 70 * 2**20
    session = there.start("flood", Command(("sh", "-c", f"stty -opost; head -c {size} /dev/zero; echo end")))
    assert session.wait(4 * WITHIN) == 0
    with LogReader(session.directory) as log:
        assert log.end() == size + 4
        assert log.bytes(size - 2, size + 4) == b"\0\0end\n"


def test_what_the_far_log_dropped_meanwhile_is_a_gap(
    root: Path, place: NextDoor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All offsets stay true where the connection was away for longer than the far log keeps."""
    cap_logs(monkeypatch, 2**16)
    barrier, go = tmp_path / "barrier", tmp_path / "go"
    place.before = ("sh", "-c", f'[ ! -e {barrier} ] || exit 1; exec "$@"', "sh")
    registry = Registry(root, backend=PlacedBackend(place))
    script = (
        f"n=0; stty -opost; echo up; until [ -e {go} ]; do sleep 0.01; done; seq -f %015.0f 0 19999; exec sleep 1000"
    )
    session = registry.start("gap", Command(("sh", "-c", script)))
    session.wait_for("up", WITHIN)
    barrier.touch()
    drop(session)
    go.touch()
    folder = place.home / ".local" / "state" / "session-magics-far" / far_directories(place.home)[0]
    with LogReader(folder) as there, LogReader(session.directory) as here:
        until(lambda: there.end() == 3 + 20_000 * 16, WITHIN)
        assert here.end() == 3
        barrier.unlink()
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
    """A question on the way when the connection drops has an answer within the second, and the link goes on."""
    session = there.start("sleep", SLEEP)
    session.wait_for("up", WITHIN)
    with session.link() as link:
        for _ in range(rounds(10, 50)):
            drop(session)
            began = time.monotonic()
            try:
                link.probe()
            except SessionError as error:
                assert "connection" in str(error)
            assert time.monotonic() - began < 1.0
            until(partial(answers, link), WITHIN)
    assert isinstance(session.state(), Running)


def over(session: Session) -> bool:
    return not isinstance(session.state(), Running)


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


# ---------------------------------------------------------------- ends that nobody asked for


def test_a_far_holder_that_is_killed_loses_the_session_and_leaves_nothing(there: Registry, place: NextDoor) -> None:
    for number in range(rounds(3, 30)):
        session = there.start(f"killed{number}", Command(("sh", "-c", "setsid sleep 1000 & echo up; exec sleep 1000")))
        session.wait_for("up", WITHIN)
        [pid] = far_holders(place.home)
        os.kill(pid, signal.SIGKILL)
        state = until_state(session, Lost, WITHIN)
        assert isinstance(state, Lost) and state.reason == "its holder was killed on next-door"
        assert carrying(session) == []
        until(lambda: not far_directories(place.home), WITHIN)


def test_a_cell_whose_holder_is_killed_is_lost_and_has_no_status(there: Registry, place: NextDoor) -> None:
    session = there.shell("cells", shell="bash", lifetime="detached", rc=False)
    with contextlib.closing(session.cell("sleep 60")) as cell:
        until(lambda: cell.receive(0.01) or cell.begin is not None)
        [pid] = far_holders(place.home)
        os.kill(pid, signal.SIGKILL)
        until(lambda: cell.receive(0.1) and cell.result is not None, WITHIN)
        assert cell.result and cell.result.state == "lost"


def test_a_relay_that_is_killed_loses_the_session_until_it_is_stopped(there: Registry, place: NextDoor) -> None:
    """What runs there goes on; a stop reaches the place again and ends it."""
    session = there.start("orphan", SLEEP)
    session.wait_for("up", WITHIN)
    run = record(session)
    os.kill(run.holder, signal.SIGKILL)
    assert until_state(session, Lost, WITHIN) == Lost("holder killed")
    assert carrying(session)
    session.stop(now=True)
    assert carrying(session) == []


@pytest.mark.parametrize("lifetime", ["detached", "kernel"])
def test_a_place_that_cannot_be_reached_any_more_loses_the_session(
    root: Path, place: NextDoor, lifetime: str, tmp_path: Path
) -> None:
    """Within five seconds, with a reason that says what may still run; once it can be reached, a stop ends that."""
    barrier = tmp_path / "barrier"
    place.before = ("sh", "-c", f'[ ! -e {barrier} ] || {{ echo "no route" >&2; exit 255; }}; exec "$@"', "sh")
    registry = Registry(root, backend=PlacedBackend(place))
    session = registry.start("far", SLEEP, lifetime=lifetime)  # type: ignore[arg-type]
    session.wait_for("up", WITHIN)
    barrier.touch()
    with session.link() as link:
        drop(session)
        until(lambda: connection(session) == 0)
        with pytest.raises(SessionError, match="the connection to next-door has dropped"):
            link.probe()
    state = until_state(session, Lost, WITHIN)
    what = "it may still run there" if lifetime == "detached" else "what it runs there ends by itself soon"
    assert state == Lost(f"no connection to next-door any more (no route): {what}")
    assert carrying(session)
    with pytest.raises(SandboxError, match="next-door: no route; what the session left there may still run"):
        session.stop()
    barrier.unlink()
    session.stop()
    assert carrying(session) == []


def test_a_lost_session_whose_place_is_gone_for_good_can_be_removed(
    root: Path, place: NextDoor, tmp_path: Path
) -> None:
    """By force alone, which tells what may still run there; all that reads the record works as ever."""
    barrier = tmp_path / "barrier"
    place.before = ("sh", "-c", f'[ ! -e {barrier} ] || {{ echo "no route" >&2; exit 255; }}; exec "$@"', "sh")
    registry = Registry(root, backend=PlacedBackend(place))
    session = registry.start("far", SLEEP)
    session.wait_for("up", WITHIN)
    barrier.touch()
    drop(session)
    until_state(session, Lost, WITHIN)
    assert session.tail() == session.snapshot().strip() == "up"
    with pytest.raises(SandboxError, match=r"may still run: remove --force forgets it$"):
        registry.remove("far")
    with pytest.raises(SandboxError, match=r"may still run$"):
        session.stop(now=True)
    assert registry.find("far") is not None and clean(registry) == []
    told: list[str] = []
    assert Verbs(registry, told.append).call(parse_verb("remove --force far")) == ["far"]
    assert told == ["removed, but far: next-door: no route; what the session left there may still run\n"]
    assert registry.find("far") is None and carrying(session)
    barrier.unlink()
    [pid] = far_holders(place.home)
    os.kill(pid, signal.SIGTERM)
    until(lambda: not carrying(session) and not psutil.pid_exists(pid), WITHIN)
    shutil.rmtree(place.home / ".local" / "state" / "session-magics-far" / far_directories(place.home)[0])


def test_a_far_session_to_which_nobody_comes_back_ends_with_its_kernel(
    there: Registry, place: NextDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(far, "FORSAKEN", 0.4)
    session = there.start("mine", SLEEP, lifetime="kernel")
    session.wait_for("up", WITHIN)
    run = record(session)
    os.kill(run.holder, signal.SIGKILL)
    until(lambda: not carrying(session) and not far_directories(place.home), WITHIN)


def test_the_end_of_the_owner_ends_everything_there_and_here(there: Registry, place: NextDoor) -> None:
    with psutil.Popen(["sleep", "1000"]) as owner:
        there.owner = f"{owner.pid}-{processes.start_tick(owner.pid)}"
        session = there.start("mine", SLEEP, lifetime="kernel")
        session.wait_for("up", WITHIN)
        owner.kill()
    until(lambda: not session.directory.exists(), WITHIN)
    assert carrying(session) == []


def test_a_place_that_cannot_be_reached_at_all_starts_nothing(root: Path, place: NextDoor) -> None:
    place.before = ("sh", "-c", "echo 'host key verification failed' >&2; exit 255")
    registry = Registry(root, backend=PlacedBackend(place))
    with pytest.raises(StartFailed, match="next-door cannot be reached: host key verification failed"):
        registry.start("nothing", SLEEP)
    registry.remove("nothing")


def test_what_is_made_for_a_session_is_given_up_with_it(root: Path, place: NextDoor, tmp_path: Path) -> None:
    """At the end of the session, when its program could not be started, and when a stop comes after the relay's end."""
    made = tmp_path / "made"
    place.cleaning = ("rm", "-f", str(made))
    registry = Registry(root, backend=PlacedBackend(place))
    made.touch()
    registry.start("short", Command(("true",))).wait(WITHIN)
    until(lambda: not made.exists(), WITHIN)
    made.touch()
    with pytest.raises(StartFailed):
        registry.start("missing", Command(("/no/such/program",)))
    assert not made.exists()
    made.touch()
    session = registry.start("killed", SLEEP)
    os.kill(record(session).holder, signal.SIGKILL)
    until_state(session, Lost)
    session.stop()
    assert not made.exists()


# ---------------------------------------------------------------- the far side itself


def test_programs_have_the_environment_and_directory_of_the_place(root: Path, place: NextDoor, home: Path) -> None:
    place.env = {"THERE": "yes", "GONE": "1"}

    class Changed(PlacedBackend):
        def start(self, start: Start) -> None:
            there = replace(start, place=place, env={"ADDED": "a b\nc"}, unset=("GONE",))  # type: ignore[arg-type]
            FarBackend.start(self, there)

    registry = Registry(root, backend=Changed(place))
    script = 'printf "%s|" "$THERE" "${GONE-none}" "$ADDED" "$HOME" "$TERM" "${SESSION_MAGICS_HOLDER-none}"; pwd'
    session = registry.start("env", Command(("sh", "-c", f"stty -opost; {script}"), cwd=str(home)))
    assert session.wait(WITHIN) == 0
    expected = f"yes|none|a b\nc|{home}|xterm-256color|none|{home}\n"
    assert session.output().decode() == expected


def pythons() -> list[str]:
    """Other versions that are here to be tried."""
    found = [f"{folder}/bin/python3" for folder in sorted(Path.home().glob(".pyenv/versions/3.*"))]
    return [one for one in found if os.access(one, os.X_OK) and int(one.split("/")[-3].split(".")[1]) >= 9]


@pytest.mark.parametrize("python", pythons(), ids=lambda path: path.split("/")[-3])
def test_holders_run_on_every_python_from_3_9_on(root: Path, place: NextDoor, python: str) -> None:
    place.python = python
    registry = Registry(root, backend=PlacedBackend(place))
    session = registry.shell("cells", shell="bash", lifetime="detached", rc=False)
    with session.link() as link:
        link.resize(40, 120)
        fields = outcome(link, link.run("stty size </dev/tty; (exit 3)"))
        assert fields[3:5] == [b"3", b"done"]
        assert session.output(int(fields[1]), int(fields[2])).split() == [b"40", b"120"]
    assert faults(session) == []
    assert isinstance(session.stop(), Exited)


def test_a_start_after_an_end_goes_on_in_the_same_log(there: Registry) -> None:
    session = there.start("twice", Command(("sh", "-c", "stty -opost; echo one; exit 5")))
    assert session.wait(WITHIN) == 5
    there.restart("twice")
    assert session.wait(WITHIN) == 5
    assert session.output() == b"one\none\n"
    assert session.info().generation == 2
    assert [event.data["code"] for event in EventReader(session.directory).events()[0] if event.kind == "exit"] == [
        5,
        5,
    ]


def test_random_blows_never_make_a_wrong_status_or_a_hang(root: Path, place: NextDoor) -> None:
    """Whatever is killed at whatever moment: the end is the true one, or lost, soon; and nothing is left."""
    generator = random.Random(23)
    registry = Registry(root, backend=PlacedBackend(place))
    for number in range(rounds(12, 300)):
        script = "echo up; read line; setsid sleep 1000 & sleep 0.05; exit 7"
        session = registry.start(f"blow{number}", Command(("sh", "-c", script)))
        session.wait_for("up", WITHIN)
        relay = record(session).holder
        victims = generator.choice(([relay], far_holders(place.home), [connection(session)]))
        with session.link() as link:
            link.send(b"\n")
        time.sleep(generator.uniform(0, 0.1))
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until(partial(over, session), WITHIN, what=session.state)
        state = session.state()
        assert isinstance(state, Lost) or (isinstance(state, Exited) and state.code == 7), state
        session.stop(now=True)
        assert carrying(session) == []


def test_a_shell_in_a_cell_whose_relay_is_killed_is_ended_for_good(there: Registry) -> None:
    """It is not started again by its holder there, as it would be after an end of its own."""
    for number in range(rounds(2, 20)):
        session = there.shell(f"cell{number}", shell="bash", lifetime="detached", rc=False)
        with contextlib.closing(session.cell("sleep 60")) as cell:
            until(lambda cell=cell: cell.receive(0.01) or cell.begin is not None)
            os.kill(record(session).holder, signal.SIGKILL)
            until_state(session, Lost)
        there.remove(f"cell{number}")
        assert carrying(session) == []
