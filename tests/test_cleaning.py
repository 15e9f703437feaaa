"""What ``clean`` forgets, and what it never touches."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rounds import DEADLINE, until
from session_magics import Command, Exited, Lost, Registry, Running, SessionInfo, StartFailed, Unknown
from session_magics.cleaning import clean, cleanable, disk_bytes
from session_magics.session import LEAVING

ENDED = st.builds(lambda at: Exited(0, None, at), st.floats(0, 1000))
OTHERS = st.sampled_from([Running(1, 0.0), Lost("holder killed"), Unknown("no access"), Exited(0, None, 5.0, True)])


def info(number: int, state: object) -> SessionInfo:
    return SessionInfo(
        f"s{number}", f"id{number}", state, (), "", {}, "detached", "no", None, (24, 80), 1, None, 0.0, Path(), 0
    )  # type: ignore[arg-type]


@given(
    st.lists(st.one_of(ENDED, OTHERS), max_size=12),
    st.none() | st.floats(0, 1000),
    st.none() | st.integers(0, 8),
    st.none() | st.integers(0, 500),
)
def test_what_stays_keeps_to_the_limits(
    states: list[object], older: float | None, keep: int | None, total: int | None
) -> None:
    infos = [info(number, state) for number, state in enumerate(states)]
    sizes = {one.id: 10 * number for number, one in enumerate(infos)}
    going = cleanable(infos, 1000.0, older=older, keep=keep, total=total, size=lambda one: sizes[one.id])
    assert all(isinstance(one.state, Exited) and not one.state.background for one in going)
    stays = [one for one in infos if one not in going and isinstance(one.state, Exited) and not one.state.background]
    if older is None and keep is None and total is None:
        assert stays == []
    assert keep is None or len(stays) <= keep
    assert total is None or sum(sizes[one.id] for one in stays) <= total
    assert older is None or all(1000 - one.state.at <= older for one in stays)  # type: ignore[union-attr]


def ended(registry: Registry, name: str, *argv: str) -> SessionInfo:
    """A session that has ended, holder included."""
    session = registry.start(name, Command(argv))
    session.wait(DEADLINE)
    until(lambda: session.settled() and not session.info().state.background)  # type: ignore[union-attr]
    return session.info()


def test_ended_sessions_go_and_no_other(real: Registry, root: Path) -> None:
    ended(real, "well", "true")
    ended(real, "bad", "false")
    with pytest.raises(StartFailed):
        real.start("never", Command(("sh", "-c", "true"), cwd="/no-such-directory"))
    real.start("runs", Command(("sleep", "100")))
    lost = real.start("lost", Command(("sleep", "100")))
    run = real.store.run(lost.id)
    assert run is not None
    os.kill(run.holder, signal.SIGKILL)
    until(lambda: isinstance(lost.state(), Lost))
    known = {one.name for one in real.infos()}
    assert set(clean(real)) == known - {"lost", "runs"}
    assert sorted(one.name for one in real.infos()) == ["lost", "runs"]
    assert len(list((root / "sessions").iterdir())) == 2


def test_what_a_kernel_that_has_ended_left_goes_and_what_a_living_one_has_stays(real: Registry, root: Path) -> None:
    script = (
        "import sys; from session_magics import *; registry = Registry(sys.argv[1]);"
        "registry.start('shell', Command(('true',)), lifetime='kernel').wait(10); print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, root], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as kernel:
        assert kernel.stdout is not None and kernel.stdout.readline() == b"\n"
        until(lambda: not real.infos()[0].state.background)  # type: ignore[union-attr]
        assert clean(real) == []
        kernel.communicate()
        name = f"shell@{kernel.pid}-"
    assert [one.startswith(name) for one in clean(real)] == [True] and real.infos() == []


def test_the_size_is_that_on_disk(real: Registry) -> None:
    size = disk_bytes(ended(real, "one", "sh", "-c", "yes | head -c 100000"))
    assert 100_000 < size < 160_000
    assert clean(real, total=size) == []
    assert clean(real, total=size - 1) == ["one"]


def test_a_holder_that_is_slow_to_go_is_waited_for(real: Registry) -> None:
    """Where nothing lives that it could wait for; by then the end is on record."""
    session = real.start("one", Command(("true",)))
    session.wait(DEADLINE)
    session.settled()
    with open(session.directory / "alive", "rb+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert session.state().background  # type: ignore[union-attr]
        slow = threading.Timer(3 * LEAVING, fcntl.flock, (file, fcntl.LOCK_UN))
        slow.start()
        real.remove("one")
        slow.join()
    assert real.infos() == []


def test_what_was_waited_for_goes_although_its_holder_is_only_about_to(real: Registry) -> None:
    for _ in range(10):
        real.start("one", Command(("true",))).wait(DEADLINE)
        assert clean(real) == ["one"]
