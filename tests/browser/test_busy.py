"""Terminals while a cell that is not theirs runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from lab import BOTH, PANEL, Lab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

Open = Callable[[Sequence[str]], Lab]

BLOCK = "import pathlib, time\npathlib.Path('go').unlink(missing_ok=True)\nwhile not pathlib.Path('go').exists(): time.sleep(0.02)\npathlib.Path('go').unlink()"
"""A cell that blocks until ``go`` is called."""


def go(lab: Lab, cell: int) -> None:
    """End the cell that blocks, which must have been running until now."""
    assert lab.running(cell)
    (lab.path.parent / "go").touch()
    lab.wait_ran(cell)


@BOTH
def test_keys_arrive_while_another_cell_runs(opened: Open) -> None:
    shout = """%session start -- shout sh -c 'while read line; do echo "got $line"; done'"""
    lab = opened([shout, BLOCK, "%session start -- noise sh -c 'while sleep 0.3; do echo .; done'"])
    lab.run(1)
    lab.run(3)
    lab.wait_text(".", 1)
    lab.start(2)
    lab.wait_running(2)
    for number in range(20):
        lab.type(f"k{number}\n")
        lab.wait_text(f"got k{number}")
    go(lab, 2)


@BOTH
def test_stop_works_while_another_cell_runs(opened: Open) -> None:
    lab = opened(["%session start -- web sleep 1000", BLOCK])
    lab.run(1)
    lab.wait_bar("badge", "running")
    lab.start(2)
    lab.wait_running(2)
    lab.press("stop")
    lab.wait_bar("badge", "killed by signal")
    go(lab, 2)


@BOTH
def test_the_first_terminal_of_a_kernel_takes_keys_while_a_cell_runs(opened_alone: Open) -> None:
    lab = opened_alone(["display(get_ipython().run_line_magic('session', 'start -- echo cat'))\n" + BLOCK])
    lab.start(1)
    lab.wait_bar("badge", "waiting for input")
    lab.type("typed\n")
    lab.wait_text("typed\ntyped")
    go(lab, 1)


def test_the_page_shows_that_the_cell_still_runs(opened: Open) -> None:
    lab = opened(["%session start -- echo cat", BLOCK])
    lab.run(1)
    lab.wait_bar("badge", "waiting for input")
    lab.start(2)
    lab.wait_running(2)
    status = f"{PANEL}.context.sessionContext.session.kernel.status"
    for number in range(10):
        lab.type(f"{number}\n")
        lab.wait_text(f"{number}\n{number}")
        lab.page.wait_for_function(f"() => {status} === 'busy'")
    go(lab, 2)
    lab.page.wait_for_function(f"() => {status} === 'idle'")
