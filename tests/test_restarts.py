"""Programs that are started again: by policy, up to a limit, and because somebody asks."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from changed_holder import QUICK, changed_holder
from rounds import DEADLINE, rounds, sessions, until, until_state
from session_magics import (
    BackingOff,
    Command,
    Exited,
    GaveUp,
    Registry,
    RestartLimit,
    Running,
    Session,
    SessionNotRunning,
    UsageMistake,
)
from session_magics.backends import native
from session_magics.cleaning import clean
from session_magics.holder.restarts import BACK_OFF, Allowance, pause
from session_magics.log import EventReader

pytestmark = pytest.mark.timeout(rounds(60, 600))


def shell(script: str) -> Command:
    return Command(("sh", "-c", script))


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    with sessions(root) as opened:
        yield opened


@pytest.fixture
def quick(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """A registry whose holders make pauses of a millisecond."""
    monkeypatch.setattr(native, "HOLDER", changed_holder(tmp_path, QUICK))
    return registry


Paced = Callable[[float], Registry]


@pytest.fixture
def paced(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paced:
    """Gives a registry whose holders make a first pause of so many seconds."""

    def make(first: float) -> Registry:
        holder = changed_holder(tmp_path, {"restarts.BACK_OFF": (first, BACK_OFF[1])})
        monkeypatch.setattr(native, "HOLDER", holder)
        return registry

    return make


def times(session: Session, kind: str) -> list[float]:
    """When events of a kind happened."""
    return [event.time for event in EventReader(session.directory).events()[0] if event.kind == kind]


def pauses(session: Session) -> list[float]:
    """Seconds between each end and the start after it."""
    return [start - end for start, end in zip(times(session, "restart"), times(session, "exit"), strict=False)]


# ---------------------------------------------------------------------- policies


POLICIES = [
    ("no", "exit 0", False),
    ("no", "exit 1", False),
    ("no", "kill -KILL $$", False),
    ("on-failure", "exit 0", False),
    ("on-failure", "exit 1", True),
    ("on-failure", "kill -KILL $$", True),
    ("always", "exit 0", True),
    ("always", "exit 1", True),
    ("always", "kill -KILL $$", True),
]
LIMITS = [None, RestartLimit(2), RestartLimit(2, 60.0)]


@pytest.mark.parametrize("limit", LIMITS, ids=str)
@pytest.mark.parametrize(("policy", "script", "again"), POLICIES)
def test_overmind_190_each_policy_with_each_end_and_limit(
    quick: Registry, policy: str, script: str, again: bool, limit: RestartLimit | None
) -> None:
    if policy == "no" and limit:
        with pytest.raises(UsageMistake, match="needs a policy"):
            quick.start("policy", shell(script), max_restarts=limit)
        return
    session = quick.start("policy", shell(script), restart=policy, max_restarts=limit)  # type: ignore[arg-type]
    if again and limit is None:
        until(lambda: session.info().generation > 3)
        session.stop(now=True)
        assert type(session.state()) is Exited
        return
    status = session.wait(timeout=DEADLINE)
    assert status == {"exit 0": 0, "exit 1": 1}.get(script, -signal.SIGKILL)
    assert type(session.settled()) is (GaveUp if again else Exited)
    assert session.info().generation == (3 if again else 1)


def test_supervisor_118_stop_in_back_off(paced: Paced) -> None:
    registry = paced(DEADLINE)
    session = registry.start("crashing", shell("exit 7"), restart="on-failure")
    state = until_state(session, BackingOff)
    assert isinstance(state, BackingOff) and state.code == 7
    [end] = times(session, "exit")
    assert 0.9 * DEADLINE <= state.until - end <= 2 * DEADLINE
    run = registry.store.run(session.id)
    assert run is not None and run.end is not None and run.end.status == (7, None), "one file tells all of it"
    began = time.monotonic()
    stopped = session.stop()
    assert time.monotonic() - began < DEADLINE / 2, "the pause is not sat out"
    assert type(stopped) is Exited and (stopped.code, stopped.signal) == (7, None)
    until(lambda: not getattr(session.state(), "background", True))  # its holder has gone: nothing can start it
    assert session.info().generation == 1 and session.state() == stopped
    assert len(times(session, "exit")) == 1 and times(session, "restart") == []


def test_circus_979_after_many_exits_it_is_started_still(quick: Registry) -> None:
    wanted = rounds(100, 2000)
    session = quick.start("restless", shell("exit 3"), restart="always")
    until(lambda: session.info().generation > wanted, rounds(30, 300))
    session.stop(now=True)
    events = [event.kind for event in EventReader(session.directory).events()[0]]
    assert events[: 2 * wanted] == ["exit", "restart"] * wanted
    assert "fault" not in events


def test_circus_979_no_number_of_failures_is_too_many_for_the_pause() -> None:
    first, most = BACK_OFF
    for failures in (1, 2, 3, 7, 8, 17, 1024, 1025, 2000, 10**6):
        plan = min(most, first * 2.0 ** min(failures - 1, 20))
        assert plan * 0.9 <= pause(failures) <= plan * 1.1


def test_restarts_by_policy_are_ever_further_apart(paced: Paced) -> None:
    wanted, first = rounds(3, 6), rounds(1, 5) / 10
    session = paced(first).start("crashing", shell("exit 1"), restart="always", max_restarts=RestartLimit(wanted))
    assert session.wait(timeout=rounds(20, 60)) == 1
    found = pauses(session)
    assert len(found) == wanted and len(times(session, "exit")) == wanted + 1
    for number, seconds in enumerate(found):  # how much later a start is than planned is up to the machine
        assert seconds >= first * 2**number * 0.9


def test_no_end_is_seen_between_a_failure_and_the_back_off(quick: Registry) -> None:
    session = quick.start("crashing", shell("exit 7"), restart="always")
    seen = set()
    wanted = {(Running, None), (BackingOff, 7)}
    enough = time.monotonic() + rounds(1, 8)
    while time.monotonic() < enough or seen < wanted:
        state = session.state()
        seen.add((type(state), getattr(state, "code", None)))
    session.stop()
    assert seen == wanted


def test_wait_sits_out_restarts_and_ends_with_a_success(paced: Paced, root: Path) -> None:
    script = f"echo x >>{root}/count; [ $(wc -l <{root}/count) -ge 3 ]"
    session = paced(0.1).start("retried", shell(script), restart="on-failure")
    assert session.wait(timeout=DEADLINE) == 0
    assert session.info().generation == 3


def test_wait_sits_out_restarts_until_a_stop(registry: Registry) -> None:
    session = registry.start("crashing", shell("exit 5"), restart="always")
    outcomes: list[int] = []
    waiter = threading.Thread(target=lambda: outcomes.append(session.wait(timeout=30)))
    waiter.start()
    until(lambda: session.info().generation == 2)
    assert not outcomes
    session.stop()
    waiter.join(DEADLINE)
    assert outcomes in ([5], [-signal.SIGTERM])  # in a pause, or in the middle of the next attempt


# ------------------------------------------------------------------------ limits


def test_pm2_2252_2584_718_839_a_limit_counts_however_long_it_ran(quick: Registry) -> None:
    script = f"sleep {rounds(1, 20) * 0.1:g}; exit 9"  # so long that each pause is the first one again
    session = quick.start("dying", shell(script), restart="on-failure", max_restarts=RestartLimit(5, 60.0))
    assert session.wait(timeout=60) == 9
    state = session.settled()
    assert isinstance(state, GaveUp) and (state.code, state.signal, state.restarts) == (9, None, 5)
    assert repr(session) == "<Session dying gave up after 5 restarts: exit 9>"
    assert abs(state.at - times(session, "exit")[-1]) < DEADLINE
    assert len(times(session, "exit")) == session.info().generation == 6


def test_restarts_that_are_long_ago_do_not_count(quick: Registry) -> None:
    session = quick.start("dying", shell("sleep 0.1; exit 9"), restart="always", max_restarts=RestartLimit(2, 0.15))
    until(lambda: session.info().generation > 5)
    session.stop(now=True)
    assert type(session.state()) is Exited


def test_an_allowance_is_spent_within_its_window_alone() -> None:
    within, ever, free = Allowance(2, 10.0), Allowance(2, 0.0), Allowance(0, 0.0)
    for now, wanted in ((0.0, (0, 0, 0)), (9.0, (0, 0, 0)), (9.5, (2, 2, 0)), (10.0, (2, 2, 0)), (10.1, (0, 2, 0))):
        assert (within.spent(now), ever.spent(now), free.spent(now)) == wanted, now
        for one in (within, ever, free):
            if not one.spent(now):
                one.take(now)
    ever.clear()
    assert ever.spent(11.0) == 0


def test_what_gave_up_has_ended_for_every_verb(quick: Registry) -> None:
    def given_up() -> Session:
        session = quick.start("bad", shell("exit 4"), restart="always", max_restarts=RestartLimit(1))
        with pytest.raises(SessionNotRunning, match="gave up after 1 restart: exit 4 before 'x' appeared"):
            session.wait_for("x", timeout=DEADLINE)
        session.settled(DEADLINE)  # its holder goes a moment later
        return session

    session = given_up()
    assert session.wait(timeout=0) == 4 and session.wait(timeout=0) == 4
    state = session.settled()
    assert session.stop() == state == session.stop(now=True), "stopping what has ended changes nothing"
    with pytest.raises(SessionNotRunning, match="gave up"):
        session.send("x")
    assert quick.restart("bad").id == session.id, "and it begins to count anew"
    assert session.wait(timeout=DEADLINE) == 4
    assert isinstance(session.settled(DEADLINE), GaveUp) and session.info().generation == 4
    assert session.info().max_restarts == RestartLimit(1)
    second = given_up()  # the name is free for another session
    assert second.id != session.id
    quick.remove("bad")
    given_up()
    assert clean(quick) == ["bad"] and quick.infos() == []


def test_what_the_program_left_behind_is_stopped_after_it_gave_up(quick: Registry) -> None:
    script = "trap '' HUP; sleep 1000 & exit 2"
    session = quick.start("bad", shell(script), restart="always", max_restarts=RestartLimit(1))
    assert session.wait(timeout=DEADLINE) == 2
    state = session.state()
    assert isinstance(state, GaveUp) and state.background
    assert clean(quick) == [], "something of it lives"
    stopped = session.stop()
    assert isinstance(stopped, GaveUp) and (stopped.code, stopped.background) == (2, False)


def test_a_restart_by_somebody_begins_to_count_anew(quick: Registry, root: Path) -> None:
    """The holder lives through it, and has restarted the program by itself before."""
    script = f"echo x >>{root}/count; [ $(wc -l <{root}/count) = 2 ] && sleep 1000; exit 1"
    session = quick.start("dying", shell(script), restart="always", max_restarts=RestartLimit(2))
    counted = root / "count"
    until(lambda: counted.exists() and counted.read_text() == "x\nx\n")
    holder = quick.store.run(session.id)
    quick.restart("dying")
    assert session.wait(timeout=DEADLINE) == 1
    state = session.settled()
    assert isinstance(state, GaveUp) and state.restarts == 2
    after = quick.store.run(session.id)
    assert holder is not None and after is not None and after.holder == holder.holder
    assert after.generation == 3 + 2


def test_a_limit_is_shown(quick: Registry) -> None:
    from session_magics.verbs.actions import Details

    session = quick.start("dying", shell("sleep 1000"), restart="always", max_restarts=RestartLimit(5, 60.0))
    assert "\nrestart    always, at most 5/60s\n" in str(Details.of(session.info()))


@pytest.mark.parametrize("limit", [RestartLimit(0), RestartLimit(1, 0.0), RestartLimit(1, float("inf"))])
def test_a_limit_that_makes_no_sense_is_refused(registry: Registry, limit: RestartLimit) -> None:
    with pytest.raises(UsageMistake, match="no limit of restarts"):
        registry.start("x", shell("true"), restart="always", max_restarts=limit)
    assert registry.infos() == []


# ------------------------------------------------------------------- by somebody


def test_restart_keeps_id_name_and_log_and_begins_the_next_generation(registry: Registry) -> None:
    session = registry.start("kept", shell("echo up; sleep 1000"), labels={"a": "b"})
    session.wait_for("up", timeout=DEADLINE)
    before = session.info()
    assert registry.restart("kept").id == session.id
    until(lambda: session.output() == b"up\r\nup\r\n", what=session.output)
    after = session.info()
    assert (after.id, after.name, after.labels) == (before.id, before.name, before.labels)
    assert after.generation == before.generation + 1
    assert after.pid != before.pid
    session.stop()
    registry.restart("kept")
    until(lambda: session.output() == b"up\r\n" * 3, what=session.output)
    assert session.info().generation == before.generation + 2


def test_restart_in_the_back_off_starts_at_once(paced: Paced, root: Path) -> None:
    registry = paced(2.0)
    session = registry.start("crashing", shell(f"echo up; [ -e {root}/good ] && sleep 1000"), restart="always")
    pause = until_state(session, BackingOff)
    (root / "good").touch()
    registry.restart("crashing")
    state = session.state()
    assert isinstance(state, Running), state
    assert session.info().generation == 2
    assert isinstance(pause, BackingOff)
    until(lambda: time.time() > pause.until + 0.2)  # the pause that was under way must not start another
    assert session.state() == state
