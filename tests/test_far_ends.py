"""How far sessions end though nobody asked for it, and what they find at their place."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import psutil
import pytest

import farplaces
from farplaces import (
    SLEEP,
    WITHIN,
    NextDoor,
    PlacedBackend,
    carrying,
    connections,
    drop,
    far_directories,
    far_holders,
    faults,
    over,
)
from held import record
from rounds import alive, rounds, until, until_state
from session_magics import Command, Exited, Lost, Registry, StartFailed
from session_magics.backends import Start, far
from session_magics.backends.far import FarBackend
from session_magics.cleaning import clean
from session_magics.errors import SandboxError, SessionError
from session_magics.holder import processes
from session_magics.log import EventReader
from session_magics.testing.rig import outcome
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_verb

NO_ROUTE = "no route"

home, place, there = farplaces.home, farplaces.place, farplaces.there


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


def test_a_place_that_cannot_be_reached_any_more_loses_its_sessions(
    root: Path, place: NextDoor, tmp_path: Path
) -> None:
    """Soon, with a reason that says what may still run; once it can be reached, a stop ends that."""
    barrier = tmp_path / "barrier"
    place.before = ("sh", "-c", f'[ ! -e {barrier} ] || {{ echo "{NO_ROUTE}" >&2; exit 255; }}; exec "$@"', "sh")
    registry = Registry(root, backend=PlacedBackend(place))
    left = {"detached": "it may still run there", "kernel": "what it runs there ends by itself soon"}
    lost = {registry.start(each, SLEEP, lifetime=each): f"({NO_ROUTE}): {what}" for each, what in left.items()}  # type: ignore[arg-type]
    for session in lost:
        session.wait_for("up", WITHIN)
    barrier.touch()
    for session in lost:
        with session.link() as link:
            drop(session)
            until(lambda session=session: not connections(session))  # type: ignore[misc]
            with pytest.raises(SessionError, match="the connection to next-door has dropped"):
                link.probe()
    for session, reason in lost.items():
        assert until_state(session, Lost, WITHIN) == Lost(f"no connection to next-door any more {reason}")
        assert carrying(session)
        with pytest.raises(SandboxError, match=f"next-door: {NO_ROUTE}; what the session left there may still run"):
            session.stop()
    barrier.unlink()
    for session in lost:
        session.stop()
        assert carrying(session) == []


def test_a_lost_session_whose_place_is_gone_for_good_can_be_removed(
    root: Path, place: NextDoor, tmp_path: Path
) -> None:
    """By force alone, which tells what may still run there; all that reads the record works as ever."""
    barrier = tmp_path / "barrier"
    place.before = ("sh", "-c", f'[ ! -e {barrier} ] || {{ echo "{NO_ROUTE}" >&2; exit 255; }}; exec "$@"', "sh")
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
    assert told == [f"removed, but far: next-door: {NO_ROUTE}; what the session left there may still run\n"]
    assert registry.find("far") is None and carrying(session)
    barrier.unlink()
    [pid] = far_holders(place.home)
    tick = processes.start_tick(pid)
    os.kill(pid, signal.SIGTERM)
    until(lambda: not carrying(session) and not alive(pid, tick), WITHIN)
    shutil.rmtree(place.home / ".local" / "state" / "session-magics-far" / far_directories(place.home)[0])


def test_a_far_session_to_which_nobody_comes_back_ends_with_its_kernel(
    there: Registry, place: NextDoor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(far, "FORSAKEN", 1.5)  # more than it takes to come there
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


def test_a_relay_that_is_dying_gives_nothing_up_any_more(
    root: Path, place: NextDoor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It still lived when the force began, and was left to do what it had no time for."""
    made = tmp_path / "made"
    made.touch()
    place.cleaning = ("rm", "-f", str(made))
    session = Registry(root, backend=PlacedBackend(place)).start("dying", SLEEP)
    holder, looks = record(session).holder, iter([True])
    os.kill(holder, signal.SIGKILL)
    until_state(session, Lost)
    monkeypatch.setattr(far, "living_holder", lambda _directory: holder if next(looks, False) else 0)
    session.stop(now=True)
    assert not made.exists() and carrying(session) == []


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
        victims = generator.choice(([relay], far_holders(place.home), connections(session)))
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
