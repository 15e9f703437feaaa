from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from lab import Lab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

Open = Callable[[Sequence[str]], Lab]


def saved(lab: Lab, cell: int) -> str:
    """What the notebook keeps of a cell: streams alone, as text."""
    outputs = lab.outputs(cell)
    assert {output["output_type"] for output in outputs} <= {"stream"}
    return "".join("".join(output["text"]) for output in outputs)


def test_a_quick_cell_is_text(opened: Open) -> None:
    lab = opened(["%%sh_session\necho quick"])
    lab.run(1)
    assert saved(lab, 1) == "quick\n"
    assert lab.page.locator(".sm").count() == 0


def test_a_longer_cell_is_a_terminal_while_it_runs_and_text_after(opened: Open) -> None:
    lab = opened(["%%sh_session\nfor n in 1 2 3 4 5 6 7 8; do echo step $n; sleep 0.4; done"])
    lab.start(1)
    lab.wait_text("step 1\nstep 2\nstep 3")
    lab.wait_ran(1)
    assert saved(lab, 1) == "".join(f"step {n}\n" for n in range(1, 9))
    assert lab.page.locator(".sm").count() == 0


def test_a_prompt_is_answered_in_the_terminal(opened: Open) -> None:
    lab = opened(["%%sh_session\nread -p 'Name? ' name; echo \"Hello, $name\""])
    lab.start(1)
    lab.wait_bar("badge", "waiting for input")
    assert lab.page.locator(".jp-Stdin-input").count() == 0
    lab.type("Ada\n")
    lab.wait_ran(1)
    assert saved(lab, 1) == "Name? Ada\nHello, Ada\n"


def test_a_cell_with_an_editor(opened: Open) -> None:
    lab = opened(["%%sh_session\nvim -u NONE -n edited.txt; cat edited.txt"])
    lab.start(1)
    lab.wait_text("~\n~")
    lab.type("ifrom a cell")
    lab.page.keyboard.press("Escape")
    lab.page.keyboard.type(":wq\n")
    lab.wait_ran(1)
    assert "from a cell\n" in saved(lab, 1)


def test_a_cell_can_be_interrupted_by_its_button(opened: Open) -> None:
    lab = opened(["%%sh_session\nwhile :; do echo on; sleep 0.2; done"])
    lab.start(1)
    lab.wait_text("on\non\non\non\non")
    lab.press("interrupt")
    lab.wait_ran(1)
    assert "on\non\n" in "".join("".join(one.get("text", "")) for one in lab.outputs(1))
    assert lab.page.locator(".sm").count() == 0
