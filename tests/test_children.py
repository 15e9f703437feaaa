"""Sessions that end with another one, and the shell next to an agent (rows C1, C5, C11)."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from held import record, stopped
from rounds import DEADLINE, until, until_state
from session_magics import (
    Command,
    Exited,
    Registry,
    Session,
    SessionExists,
    SessionNotFound,
    SessionNotRunning,
    UsageMistake,
    WaitTimeout,
)
from session_magics.cleaning import clean
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_verb

SLEEP = Command(("sleep", "1000"))
STUBBORN = Command(("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"))


@pytest.fixture
def pair(real: Registry) -> tuple[Session, Session]:
    return real.start("a", SLEEP), real.start("b", SLEEP, parent="a")


def send(session: Session, number: int) -> None:
    """Send a signal to the program of a session that runs."""
    pid = session.info().pid
    assert pid, session.state()
    os.kill(pid, number)


def call(real: Registry, line: str) -> Any:
    return Verbs(real, lambda text: None).call(parse_verb(line))


def test_a_stop_of_the_parent_has_stopped_the_child(real: Registry, pair: tuple[Session, Session]) -> None:
    call(real, "stop a")
    assert [isinstance(session.state(), Exited) for session in pair] == [True, True]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_c5_the_end_of_the_parent_ends_the_child_with_nobody_there(pair: tuple[Session, Session], number: int) -> None:
    parent, child = pair
    send(parent, number)
    state = until_state(child, Exited)
    assert isinstance(state, Exited) and state.signal == signal.SIGTERM


def test_info_names_parent_and_children(real: Registry, pair: tuple[Session, Session]) -> None:
    assert (call(real, "info a").children, call(real, "info b").parent_name) == (("b",), "a")
    assert "\nchildren   b\n" in str(call(real, "info a")) and "\nparent     a\n" in str(call(real, "info b"))


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
    send(pair[0], signal.SIGSTOP)  # so that nothing of it goes by itself
    with pytest.raises(SessionExists, match=r"^session 'a' cannot be removed \(b, which ends with it, still"):
        real.remove("a")
    with pytest.raises(SessionExists, match=r"^session 'b' cannot be removed \(running\): stop it, or remove --force$"):
        real.remove("b")
    real.start("c", SLEEP, parent="a")
    with pytest.raises(SessionExists, match=r"\(c and b, which end with it, still running\)"):
        real.remove("a")
    call(real, "stop a --now")
    real.remove("a")
    assert real.infos() == []


def test_remove_refuses_while_a_child_still_runs_after_the_parent(real: Registry) -> None:
    parent = real.start("a", SLEEP)
    child = real.start("b", SLEEP, parent="a")
    with stopped(record(child).holder):  # or else it goes a second later
        parent.stop()
        with pytest.raises(SessionExists, match="b, which ends with it, still running"):
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
    child.wait_for(rf"{tmp_path}\s+in the shell", DEADLINE)
    assert child.name == "a-shell" and child.info().argv[0] == "/bin/sh"


@pytest.mark.parametrize("shell", ["bash", "zsh", "dash", "fish"])
def test_a_shell_at_its_prompt_ends_without_force(
    real: Registry, tmp_path: Path, shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / ".zshrc").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", shutil.which(shell) or "")
    real.start("a", SLEEP)
    child = call(real, "shell a")
    child.send("echo re''ady\r")
    child.wait_for("ready", DEADLINE)
    ended = child.stop()
    assert isinstance(ended, Exited) and ended.signal != signal.SIGKILL


def test_a_shell_that_somebody_started_ends_without_force_too(real: Registry) -> None:
    session = real.start("a", Command(("bash", "--norc")))
    session.wait_for(r"\$|#", DEADLINE)
    ended = session.stop()
    assert isinstance(ended, Exited) and ended.signal == signal.SIGHUP


def test_a_shell_with_a_script_is_asked_as_any_program(real: Registry) -> None:
    script = "trap 'echo tidied; exit 7' TERM; echo ready; while :; do sleep 0.1; done"
    session = real.start("a", Command(("bash", "-c", script)))
    session.wait_for("ready", DEADLINE)
    ended = session.stop()
    assert isinstance(ended, Exited) and ended.code == 7 and session.tail(1) == "tidied"


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


# ---- children of children


@pytest.fixture
def three(real: Registry) -> tuple[Session, Session, Session]:
    """A parent, its child, and a child of that one which does not end when it is asked to."""
    parent, child = real.start("a", SLEEP), real.start("b", SLEEP, parent="a")
    return parent, child, real.start("c", STUBBORN, parent="b")


def test_a_stop_has_stopped_the_children_of_children(real: Registry, three: tuple[Session, ...]) -> None:
    three[2].wait_for("ready", DEADLINE)
    call(real, "stop a --grace 0.2")
    assert [isinstance(session.state(), Exited) for session in three] == [True, True, True]


def test_remove_refuses_while_the_child_of_a_child_runs(real: Registry, three: tuple[Session, ...]) -> None:
    with stopped(record(three[2]).holder):  # or else it goes a second later
        send(three[0], signal.SIGKILL)
        for session in three[:2]:
            until_state(session, Exited)
            session.settled()
        with pytest.raises(SessionExists, match=r"c, which ends with it, still running"):
            real.remove("a")
    until_state(three[2], Exited)
    three[2].settled()
    real.remove("a")
    assert real.infos() == []


@pytest.mark.parametrize("line", ["remove a b", "remove b a", "remove --label crew=x"])
def test_a_child_may_be_removed_in_one_go_with_its_parent(real: Registry, line: str) -> None:
    real.start("a", SLEEP, labels={"crew": "x"})
    real.start("b", SLEEP, labels={"crew": "x"}, parent="a")
    call(real, "stop a")
    assert sorted(call(real, line)) == ["a", "b"]
    assert real.infos() == []


def test_clean_tells_of_all_that_it_removes(real: Registry, pair: tuple[Session, Session]) -> None:
    pair[1].stop()
    pair[0].stop()
    told = clean(real, dry_run=True)
    assert clean(real) == told == ["a", "b"]


# ---- restarts beside the end of the parent


def test_a_child_is_not_started_again_by_a_holder_whose_parent_has_ended(real: Registry) -> None:
    parent, child = real.start("a", SLEEP), real.start("b", STUBBORN, parent="a")
    child.wait_for("ready", DEADLINE)
    parent.stop()  # the child has a second between asking and forcing
    with pytest.raises(SessionNotRunning, match="session 'a'"):
        real.restart("b")
    assert not child.info().running


def test_a_child_that_is_restarted_while_it_ends_with_its_parent_watches_the_new_one(real: Registry) -> None:
    parent, child = real.start("a", SLEEP), real.start("b", STUBBORN, parent="a")
    child.wait_for("ready", DEADLINE)
    real.restart("a")
    real.restart("b")
    assert child.info().running
    parent.stop()
    until_state(child, Exited)


def test_a_child_whose_parent_has_been_removed_is_to_be_started_anew(
    real: Registry, pair: tuple[Session, Session]
) -> None:
    call(real, "stop a")
    real.start("a", SLEEP)  # which takes the name from the one that has ended, and its record goes
    with pytest.raises(UsageMistake, match="'b' ends with a session that was removed: start it anew"):
        real.restart("b")


def test_a_restart_by_label_leaves_children_running_beside_their_parents(real: Registry) -> None:
    for name, parent in (("a", None), ("b", "a"), ("c", "b")):
        real.start(name, SLEEP, labels={"crew": "x"}, parent=parent)
    assert [session.name for session in call(real, "restart --label crew=x")] == ["a", "b", "c"]
    with pytest.raises(WaitTimeout):
        real.get("c").wait(0.5)
    assert [real.get(name).info().running for name in "abc"] == [True, True, True]


def test_c11_the_shell_next_to_a_session_ends_as_soon_as_it_is_asked(
    real: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.setenv("HOME", str(tmp_path))
    real.start("a", SLEEP)
    child = real.child_shell("a")
    child.send("echo $((6 * 7))\r")
    child.wait_for("^42$", DEADLINE)
    state = child.stop()
    assert isinstance(state, Exited) and state.signal != signal.SIGKILL
