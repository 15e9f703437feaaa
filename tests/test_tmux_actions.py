"""What a session's tmux may be told to do (row C11)."""

from __future__ import annotations

import subprocess

import pytest

from panes import NEEDED
from rounds import alive, until, until_state
from session_magics import Command, Exited, Registry, Session, SessionError, SessionNotRunning, UsageMistake
from session_magics.backends.tmux import ACTIONS
from session_magics.holder import processes
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_verb

pytestmark = NEEDED


@pytest.fixture
def session(real: Registry) -> Session:
    return real.start("t", Command(("sleep", "1000")), backend="tmux")


def act(real: Registry, words: str) -> None:
    Verbs(real, lambda text: None).call(parse_verb(f"tmux {words}"))


def asked(session: Session, *words: str) -> str:
    answer = subprocess.run(["tmux", "-S", "tmux", *words], cwd=session.directory, capture_output=True, text=True)
    return answer.stdout.strip()


def panes(session: Session) -> int:
    return len(asked(session, "list-panes", "-s").splitlines())


def test_c11_there_are_ten_actions() -> None:
    assert len(ACTIONS) == 10


@pytest.mark.parametrize("action", ["split-horizontally", "split-vertically", "new-window"])
def test_c11_another_pane_is_opened_and_closed_again(real: Registry, session: Session, action: str) -> None:
    act(real, f"t {action}")
    assert panes(session) == 2
    act(real, "t kill-pane")
    assert panes(session) == 1 and session.info().running


def test_c11_the_front_changes(real: Registry, session: Session) -> None:
    def front() -> str:
        return asked(
            session, "display-message", "-p", "#{window_index} #{pane_id} #{window_zoomed_flag} #{pane_in_mode}"
        )

    first = front()
    act(real, "t new-window")
    second = front()
    assert first.split()[0] != second.split()[0]
    for action in ("previous-window", "next-window"):
        act(real, f"t {action}")
        assert front() == (first if action == "previous-window" else second)
    act(real, "t split-vertically")
    third = front()
    act(real, "t next-pane")
    assert front() == second != third
    act(real, "t zoom")
    assert front().split()[2] == "1"
    act(real, "t copy-mode")
    assert front().split()[3] == "1"


def test_the_tree_needs_a_terminal_and_is_shown_there(real: Registry, session: Session) -> None:
    act(real, "t tree")
    assert asked(session, "display-message", "-p", "#{pane_mode}") == "tree-mode"


def test_what_was_opened_goes_with_the_session(real: Registry, session: Session) -> None:
    for action in ("split-horizontally", "new-window"):
        act(real, f"t {action}")
    pids = [int(pid) for pid in asked(session, "list-panes", "-s", "-F", "#{pane_pid}").split()]
    ticks = {pid: processes.start_tick(pid) for pid in pids}
    assert len(ticks) == 3
    session.stop()
    until_state(session, Exited)
    until(lambda: not any(alive(pid, tick) for pid, tick in ticks.items()))


def test_the_program_itself_is_ended_by_stop_alone(real: Registry, session: Session) -> None:
    with pytest.raises(UsageMistake, match="session stop t"):
        act(real, "t kill-pane")
    assert session.info().running


def test_c11_what_is_not_listed_is_refused_in_this_order(real: Registry, session: Session) -> None:
    with pytest.raises(SessionError, match="no session named 'nobody'"):
        act(real, "nobody kill-server")
    with pytest.raises(UsageMistake, match="did you mean 'kill-pane'"):
        act(real, "t kill-pan")
    with pytest.raises(UsageMistake, match="is no action"):
        act(real, "t 'run-shell touch'")
    real.start("n", Command(("sleep", "1000")))
    with pytest.raises(UsageMistake, match="not held by tmux"):
        act(real, "n kill-server")
    session.stop()
    with pytest.raises(SessionNotRunning):
        act(real, "t kill-server")
