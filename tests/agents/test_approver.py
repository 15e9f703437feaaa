"""What comes between a decision and its keys: then nothing is typed."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from agent_screens import write_agent
from approvals import GRANT
from rounds import DEADLINE, until
from session_magics import Command, Registry, Session
from session_magics.agents.approval import STILL
from session_magics.agents.approver import Approver, Told
from session_magics.agents.audit import Record, Trail
from session_magics.agents.standing import RecordWriter, clock

ORDER = replace(GRANT, until=clock() + 600)


class Going:
    """What ``Told`` is, without its signal handlers."""

    def __init__(self) -> None:
        self.fd, self._writing = os.pipe()
        self.off = False

    def close(self) -> None:
        os.close(self.fd)
        os.close(self._writing)


class BusyTrail(Trail):
    """Writes an answer down, and lets something happen before anything else can."""

    def __init__(self, directory: Path, going: Going, meanwhile: Callable[[], object]) -> None:
        super().__init__(directory)
        self._going, self._meanwhile = going, meanwhile
        self.written: list[Record] = []

    def append(self, record: Record) -> None:
        super().append(record)
        self.written.append(record)
        if record["kind"] == "decision" and record["decision"]["kind"] == "answer":
            self._meanwhile()
        if record["kind"] == "outcome" or (record["kind"] == "decision" and record["decision"]["kind"] == "refuse"):
            self._going.off = True


@pytest.fixture
def going() -> Iterator[Going]:
    made = Going()
    yield made
    made.close()


@pytest.fixture
def session(real: Registry, tmp_path: Path) -> Session:
    body = 'ask("git status")\nos.read(0, 9)\nshow("another key", "")\ntime.sleep(300)'
    found = real.start("a", Command((str(write_agent(tmp_path, body)),)))
    found.wait_for("proceed", DEADLINE)
    return found


def answer(session: Session, going: Going, meanwhile: Callable[[], object], **order: Any) -> tuple[str, list[Record]]:
    """Why the approver ended, and what it wrote down."""
    wanted = replace(ORDER, **({"until": clock() + 600} | order))
    trail = BusyTrail(session.directory, going, meanwhile)
    record = RecordWriter(session.directory, wanted)
    with contextlib.closing(trail):
        return Approver(session, wanted, cast(Told, going), record, trail).run(), trail.written


def unsent(written: list[Record]) -> bool:
    outcomes = [one for one in written if one["kind"] == "outcome"]
    return [one["sent"] for one in outcomes] == [False]


def test_nothing(session: Session, going: Going) -> None:
    reason, written = answer(session, going, lambda: None)
    assert reason == "switched off" and written[1]["sent"] and written[1]["gone"]
    assert "got '1' for git status" in session.snapshot()


def test_somebody_answers(session: Session, going: Going) -> None:
    def meanwhile() -> None:
        session.send("3")
        until(lambda: "got '3'" in session.snapshot())

    _, written = answer(session, going, meanwhile)
    assert unsent(written) and "another key" not in session.snapshot()


def test_it_is_told_to_go(session: Session, going: Going) -> None:
    reason, written = answer(session, going, lambda: setattr(going, "off", True))
    assert reason == "switched off" and unsent(written)


def test_the_program_is_stopped(session: Session, going: Going) -> None:
    pid = session.info().pid or 0
    _, written = answer(session, going, lambda: os.kill(pid, signal.SIGSTOP))
    os.kill(pid, signal.SIGCONT)
    assert unsent(written)


def test_the_program_ends(session: Session, going: Going) -> None:
    reason, written = answer(session, going, session.stop)
    assert unsent(written) and reason


def test_the_terminal_changes_its_size(session: Session, going: Going) -> None:
    _, written = answer(session, going, lambda: session.resize(30, 90))
    assert unsent(written)


def test_its_time_is_over(session: Session, going: Going) -> None:
    reason, written = answer(session, going, lambda: None, until=clock() + STILL / 2)
    assert reason == "its time is over" and [one["kind"] for one in written] == ["decision", "off"]
    assert "Do you want to proceed?" in session.snapshot()


class Seeing(Approver):
    """Lets something happen once, after the first look at which it can."""

    happens: Callable[[], object] | None = None

    def can_happen(self) -> bool:
        """Whether it has seen a question that cannot be answered yet."""
        return self._view is not None and self._view.doing.prompt is not None

    def _look(self) -> str:
        off = super()._look()
        if self.happens is not None and self.can_happen():
            self.happens()
            self.happens = None
        return off


class SeeingItGo(Seeing):
    def can_happen(self) -> bool:
        return self._memory.pending and self._memory.gone


def watched(
    kind: type[Seeing], session: Session, going: Going, happens: Callable[[], object]
) -> tuple[str, list[Record]]:
    """As ``answer``, for an approver that lets something happen."""
    with contextlib.closing(BusyTrail(session.directory, going, lambda: None)) as trail:
        order = replace(ORDER, until=clock() + 600)
        approver = kind(session, order, cast(Told, going), RecordWriter(session.directory, order), trail)
        approver.happens = happens
        return approver.run(), trail.written


def test_a_question_that_comes_back_ends_it(real: Registry, tmp_path: Path, going: Going) -> None:
    body = 'ask("git status")\nwhile not os.path.exists("go"): time.sleep(.01)\nask("git status")\ntime.sleep(300)'
    session = real.start("a", Command((str(write_agent(tmp_path / "bin", body)),), cwd=str(tmp_path)))

    def happens() -> None:
        (tmp_path / "go").touch()
        until(lambda: "╯" in session.snapshot())

    reason, written = watched(SeeingItGo, session, going, happens)
    assert "came back at once" in reason
    assert [one["decision"]["kind"] for one in written if one["kind"] == "decision"] == ["answer", "off"]


@pytest.mark.parametrize("touched", [True, False])
def test_somebody_who_has_been_at_the_terminal_is_left_to_answer(
    real: Registry, tmp_path: Path, going: Going, touched: bool
) -> None:
    body = 'box("git status")\nwhile not os.path.exists("go"): time.sleep(.01)\nos.read(0, 9)\ntime.sleep(300)'
    session = real.start("a", Command((str(write_agent(tmp_path / "bin", body)),), cwd=str(tmp_path)))

    def happens() -> None:
        if touched:
            session.resize(30, 100)
        (tmp_path / "go").touch()

    _, written = watched(Seeing, session, going, happens)
    said = written[0]["decision"]
    assert said["kind"] == ("refuse" if touched else "answer")
    assert not touched or said["reason"] == "somebody is at the terminal"


def test_the_log_of_what_is_done_cannot_be_written(session: Session, going: Going) -> None:
    def full() -> None:
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        answer(session, going, full)
    assert "Do you want to proceed?" in session.snapshot()
