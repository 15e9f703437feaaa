"""Verbs on many sessions at once: by label, and ``clean``."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rounds import DEADLINE, until
from session_magics import (
    GaveUp,
    Lost,
    Registry,
    Running,
    Session,
    SessionError,
    SessionExists,
    StartFailed,
    Unknown,
    UsageMistake,
    WaitTimeout,
)
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_verb

Desk = Callable[[str], Any]


def desk_of(registry: Registry) -> Desk:
    verbs = Verbs(registry, lambda text: None)
    return lambda line: verbs.call(parse_verb(line))


@pytest.fixture
def desk(fake: Registry) -> Desk:
    desk = desk_of(fake)
    for line in ("a1 --label crew=a", "a2 --label crew=a --label job=x", "b1 --label crew=b", "none"):
        desk(f"start {line} forever")
    return desk


def running(registry: Registry) -> list[str]:
    return [info.name for info in registry.infos() if info.running]


def test_stop_by_label_stops_those_and_no_other(desk: Desk, fake: Registry) -> None:
    assert desk("stop --label crew=a --label job=x") == ["a2"]
    assert desk("stop --label crew=a --now") == ["a1"], "what has ended already is not told again"
    assert desk("stop --label crew=a") == []
    assert running(fake) == ["b1", "none"]


def test_restart_by_label_gives_the_sessions(desk: Desk, fake: Registry) -> None:
    desk("stop a1")
    sessions = desk("restart --label crew=a")
    assert [session.name for session in sessions] == ["a1", "a2"]
    assert all(isinstance(session, Session) and session.info().generation == 2 for session in sessions)
    assert [info.generation for info in fake.infos()] == [2, 2, 1, 1]
    value = json.loads(desk("restart --json --label crew=a"))["value"]
    assert [(one["name"], one["generation"]) for one in value] == [("a1", 3), ("a2", 3)]


def test_remove_by_label_checks_all_before_it_removes_any(desk: Desk, fake: Registry) -> None:
    desk("stop a1")
    with pytest.raises(SessionExists, match="a2"):
        desk("remove --label crew=a")
    assert fake.find("a1") is not None
    assert desk("remove --label crew=a --force") == ["a1", "a2"]
    assert [info.name for info in fake.infos()] == ["b1", "none"]


@pytest.mark.parametrize("verb", ["stop", "restart", "remove"])
def test_a_label_that_no_session_carries_is_told(desk: Desk, fake: Registry, verb: str) -> None:
    with pytest.raises(SessionError, match=r"^no session carries crew=c$"):
        desk(f"{verb} --label crew=c")
    with pytest.raises(SessionError, match=r"^no session carries crew=b and job=x$"):
        desk(f"{verb} --label crew=b --label job=x")
    assert len(running(fake)) == 4


# ------------------------------------------------------------------------- clean


def test_clean_keeps_to_its_limits_and_tells_the_names(desk: Desk, fake: Registry) -> None:
    names = [f"done{number}" for number in range(4)]
    for number, name in enumerate(names):
        session = desk(f"start {name} --label half={number % 2} true")
        session.wait(DEADLINE)
        session.settled(DEADLINE)  # its holder goes a moment after it has told the end
    assert desk("clean --older 7d") == []
    assert desk("clean --keep 4") == desk("clean --total 1G") == []
    assert desk("clean --keep 3 --dry-run") == ["done0"] == desk("clean --keep 3")
    assert desk("clean --label half=1 --keep 1") == ["done1"]
    assert json.loads(desk("clean --json --total 0"))["value"] == ["done3", "done2"]
    assert desk("clean") == [] and len(running(fake)) == 4


def test_clean_never_touches_what_is_lost_or_unknown(real: Registry) -> None:
    desk = desk_of(real)
    desk("start runs sleep 100")
    lost, unknown = desk("start lost sleep 100"), desk("start odd -- sh -c 'exit 3'")
    unknown.wait(DEADLINE)
    until(lambda: not unknown.settled().background)
    (unknown.directory / "spec.json").write_text("{")
    assert isinstance(unknown.info().state, Unknown)
    run = real.store.run(lost.id)
    assert run is not None
    os.kill(run.holder, signal.SIGKILL)
    until(lambda: isinstance(lost.state(), Lost))
    gave_up = desk("start bad --restart always --max-restarts 1 -- false")
    assert gave_up.wait(DEADLINE) == 1
    until(lambda: isinstance(gave_up.state(), GaveUp) and not gave_up.state().background)
    with pytest.raises(StartFailed):
        desk("start never /no/such/program")
    assert sorted(desk("clean --dry-run")) == sorted(desk("clean")) == ["bad", "never"]
    assert [info.name for info in real.infos()] == ["runs", "lost", "odd"]
    assert isinstance(real.get("runs").state(), Running)


def test_clean_spares_a_session_that_took_the_name_meanwhile(real: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """A registry that is looked at a moment too early."""
    desk = desk_of(real)
    desk("start one true").wait(DEADLINE)
    until(lambda: not getattr(real.get("one").state(), "background", True))
    stale = real.infos()
    desk("start one true").wait(DEADLINE)
    until(lambda: not getattr(real.get("one").state(), "background", True))
    monkeypatch.setattr(real, "infos", lambda labels: stale)
    assert desk("clean") == []
    assert real.find("one") is not None


# ------------------------------------------------------------------ wait, and start


LISTEN = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)"


@pytest.fixture
def served(real: Registry, root: Path) -> Desk:
    program = root / "serve.py"
    program.write_text(f"{LISTEN}\ntime.sleep(100)\n")
    return desk_of(real)


def test_start_and_wait_take_ports(served: Desk, root: Path, real: Registry) -> None:
    session = served(f"start web --wait-port --timeout 20 -- {sys.executable} {root}/serve.py")
    port = int(session.wait_for(r"\d+\n", DEADLINE))  # it listens before it says where
    assert served("wait web --port") == served(f"wait --port {port} web") == port
    assert json.loads(served("wait web --port --json"))["value"] == port
    with pytest.raises(SessionError, match=rf"port {port - 1} not seen within 0\.1 s"):
        served(f"wait web --port {port - 1} --timeout 0.1")
    with pytest.raises(SessionError, match=r"exited 3 before it listened on port 80.*; last output: 'no'"):
        served("start bad --wait-port 80 -- sh -c 'echo no; exit 3'")


def test_wait_takes_silence(real: Registry) -> None:
    desk = desk_of(real)
    desk("start steps --wait-for over -- sh -c 'echo over; read x'")
    assert desk("wait steps --silence 0.2 --timeout 20") is None
    with pytest.raises(WaitTimeout, match=r"60 s of silence"):
        desk("wait steps --silence 60 --timeout 0.1")
    with pytest.raises(UsageMistake, match="give one"):
        desk("wait steps over --silence 1")
