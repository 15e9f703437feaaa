"""The line that tells how far something is."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import LiveKernel
from page import Page
from rounds import DEADLINE, until
from session_magics import Registry
from session_magics.verbs import progress
from session_magics.verbs.progress import BAR, Progress, bar


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER", 0.02)
    monkeypatch.setattr(progress, "EVERY", 0.01)


def test_what_is_soon_over_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "AFTER", DEADLINE)
    shown: list[tuple[str, bool]] = []
    with Progress(lambda *line: shown.append(line), lambda seconds, over: "on"):
        pass
    assert shown == []


def test_a_line_is_shown_when_it_changes_and_at_the_end(quick: None) -> None:
    shown: list[tuple[str, bool]] = []
    words = ["one"]
    with Progress(lambda *line: shown.append(line), lambda seconds, over: "over" if over else words[-1]):
        until(lambda: shown)
        words.append("two")
        until(lambda: len(shown) == 2)
    assert shown == [("one", False), ("two", False), ("over", True)]


def test_an_error_ends_it_too(quick: None) -> None:
    shown: list[tuple[str, bool]] = []
    with pytest.raises(KeyboardInterrupt), Progress(lambda *line: shown.append(line), lambda *_: "on"):
        until(lambda: shown)
        raise KeyboardInterrupt
    assert shown[-1] == ("on", True)
    assert not any(thread.name == "session progress" for thread in threading.enumerate())


def test_where_nobody_looks_there_is_no_thread() -> None:
    with Progress(None, lambda seconds, over: "on"):
        assert not any(thread.name == "session progress" for thread in threading.enumerate())


@given(st.integers(0, 400), st.integers(0, 400))
def test_a_bar_has_one_width_and_never_lies(done: int, rest: int) -> None:
    shown = bar(done, done + rest)
    assert len(shown) == BAR
    assert ("╌" in shown) == (rest > 0) or rest * BAR < done + rest


@pytest.mark.kernel
def test_a_long_wait_tells_how_long_and_what_the_program_is_at(kernel: LiveKernel, root: Path) -> None:
    kernel.run("%session start job --wait-for 'step one' -- sh -c 'echo step one; read word; exit 3'")
    page = Page(kernel.cells.client)
    cell = page.execute("%session wait job")
    page.until(lambda: any(kind == "display_data" for kind, _ in page.outputs))
    [content] = [content for kind, content in page.outputs if kind == "display_data"]
    assert re.fullmatch(r"waiting for the end of job · \d+s · step one", content["data"]["text/plain"])
    Registry(root).get("job").send("\n")
    page.until(lambda: ("idle", cell) in page.statuses)
    told = [one["text/plain"] for one in page.updates if one["text/plain"].startswith("wait")]  # not the session's view
    assert told[-1].startswith("waited ")


@pytest.mark.kernel
def test_a_long_wait_without_a_person_shows_its_value_alone(kernel: LiveKernel) -> None:
    kernel.run("%session start job -- sh -c 'sleep 1.5; exit 3'")
    assert kernel.run("%session wait job", allow_stdin=False).text == "3\n"


@pytest.mark.kernel
def test_a_slow_stop_shows_who_is_left(kernel: LiveKernel, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    stubborn = f"trap '' TERM; echo up; until [ -e {gate} ]; do sleep 0.1; done"
    kernel.run(f'%session start --wait-for up stubborn -- sh -c "{stubborn}"')
    kernel.run("%session start easy -- sleep 100")
    page = Page(kernel.cells.client)
    cell = page.execute("%session stop --all --grace 50")
    left = re.compile(rf"stopped 1 of 2 {bar(1, 2)} \d+s · not yet: stubborn")

    def lines() -> list[str]:
        shown = [content["data"] for kind, content in page.outputs if kind == "display_data"]
        told = [data["text/plain"] for data in (*shown, *page.updates)]
        return [line for line in told if line.startswith("stopped")]  # the others are of the two terminals

    page.until(lambda: any(map(left.fullmatch, lines())))
    gate.touch()
    page.until(lambda: ("idle", cell) in page.statuses)
    assert lines()[-1].startswith("stopped 2 of 2 in ")
