"""Sessions that end with another one, and the shell next to an agent (rows C1, C5, C11)."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from rounds import until, until_state
from session_magics import (
    Command,
    Exited,
    Registry,
    Session,
    SessionExists,
    SessionNotFound,
    SessionNotRunning,
    UsageMistake,
)
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_verb

SLEEP = Command(("sleep", "1000"))


@pytest.fixture
def pair(real: Registry) -> tuple[Session, Session]:
    return real.start("a", SLEEP), real.start("b", SLEEP, parent="a")


def call(real: Registry, line: str) -> Any:
    return Verbs(real, lambda text: None).call(parse_verb(line))


def test_a_stop_of_the_parent_has_stopped_the_child(real: Registry, pair: tuple[Session, Session]) -> None:
    call(real, "stop a")
    assert [isinstance(session.state(), Exited) for session in pair] == [True, True]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_c5_the_end_of_the_parent_ends_the_child_with_nobody_there(pair: tuple[Session, Session], number: int) -> None:
    parent, child = pair
    os.kill(parent.info().pid or 0, number)
    state = until_state(child, Exited)
    assert isinstance(state, Exited) and state.signal == signal.SIGTERM


def test_a_stop_of_the_child_leaves_the_parent(pair: tuple[Session, Session]) -> None:
    pair[1].stop()
    assert pair[0].info().running


def test_a_restart_of_the_parent_stops_the_child_and_a_restart_of_the_child_watches_the_new_one(
    real: Registry, pair: tuple[Session, Session]
) -> None:
    parent, child = pair
    real.restart("a")
    until_state(child, Exited)
    real.restart("b")
    assert child.info().running
    parent.stop()
    until_state(child, Exited)
    with pytest.raises(SessionNotRunning, match="restart a"):
        real.restart("b")


def test_c1_remove_refuses_while_a_child_runs_and_takes_ended_ones_along(
    real: Registry, pair: tuple[Session, Session]
) -> None:
    os.kill(pair[0].info().pid or 0, signal.SIGSTOP)  # so that nothing of it goes by itself
    with pytest.raises(SessionExists, match="running"):
        real.remove("a")
    call(real, "stop a --now")
    real.remove("a")
    assert real.infos() == []


def test_remove_refuses_while_a_child_still_runs_after_the_parent(real: Registry) -> None:
    parent = real.start("a", SLEEP)
    stubborn = Command(("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"))
    child = real.start("b", stubborn, parent="a")
    child.wait_for("ready", 10)
    parent.stop()
    if child.info().running:  # for the second between asking and forcing
        with pytest.raises(SessionExists, match="with b, which ends with it, still running"):
            real.remove("a")
    until_state(child, Exited)


def test_remove_by_force_stops_the_children(real: Registry, pair: tuple[Session, Session]) -> None:
    real.remove("a", force=True)
    assert real.infos() == [] and not pair[1].directory.exists()


def test_a_parent_must_run(real: Registry) -> None:
    with pytest.raises(SessionNotFound):
        real.start("b", SLEEP, parent="a")
    real.start("a", SLEEP).stop()
    with pytest.raises(SessionNotRunning):
        real.start("b", SLEEP, parent="a")
    assert [info.name for info in real.infos()] == ["a"]


def test_c1_children_are_found_those_that_run_first(real: Registry) -> None:
    parent = real.start("a", SLEEP)
    assert real.children(parent.id) == []
    for name in ("b", "c", "d"):
        real.start(name, SLEEP, parent="a")
    real.get("d").stop()
    assert [info.name for info in real.children(parent.id)] == ["c", "b", "d"]
    real.remove("b", force=True)
    assert [info.name for info in real.children(parent.id)] == ["c", "d"]


# ---- the terminal child


def test_c11_a_terminal_child_is_a_shell_in_the_directory_of_its_parent(
    real: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    real.start("a", Command(("sleep", "1000"), str(tmp_path)))
    child = call(real, "shell a")
    child.send("pwd; echo in the shell\r")
    child.wait_for(rf"{tmp_path}\s+in the shell", 10)
    assert child.name == "a-shell" and child.info().argv[0] == "/bin/sh"


def test_c11_it_is_found_while_it_runs_and_made_anew_after_that(real: Registry) -> None:
    real.start("a", SLEEP)
    first = real.child_shell("a")
    assert real.child_shell("a").id == first.id
    first.stop(now=True)
    second = real.child_shell("a")
    assert second.id != first.id and second.name == first.name
    real.get("a").stop()
    until_state(second, Exited)


def test_c11_of_many_who_ask_at_once_all_get_the_same(real: Registry) -> None:
    real.start("a", SLEEP)
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(real.child_shell("a").id)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1


def test_a_name_that_something_else_has_is_left_to_it(real: Registry) -> None:
    real.start("a", SLEEP)
    real.start("a-shell", SLEEP)
    with pytest.raises(SessionExists, match="a-shell"):
        real.child_shell("a")


def test_the_name_of_a_long_parent_is_cut(real: Registry) -> None:
    real.start("a" * 64, SLEEP)
    assert real.child_shell("a" * 64).name == "a" * 58 + "-shell"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("start b --parent", "--parent"),
        ("start b --parent a --shell bash", "has no parent"),
        ("start b --approve-all true", "belongs to --tool"),
        ("start b --tool claude --shell bash", "different things"),
        ("shell", "NAME is missing"),
    ],
)
def test_what_does_not_fit_together_is_told(line: str, problem: str) -> None:
    with pytest.raises(UsageMistake, match=problem):
        parse_verb(line)


def test_the_child_of_a_child_goes_too(real: Registry, pair: tuple[Session, Session]) -> None:
    third = real.start("c", SLEEP, parent="b")
    pair[0].stop()
    until(lambda: not third.info().running)
