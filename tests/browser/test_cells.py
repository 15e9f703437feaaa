"""What a %%sh_session cell shows while its command runs, and what is left of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pictures
import pytest
from lab import BOTH, Lab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

Open = Callable[[Sequence[str]], Lab]


def test_a_quick_cell_is_text(opened: Open) -> None:
    lab = opened(["%%sh_session\necho quick"])
    lab.run(1)
    assert lab.output_text(1) == "quick\n"
    lab.wait_count(0)


@BOTH
def test_a_longer_cell_is_a_terminal_while_it_runs_and_text_after(opened: Open) -> None:
    lab = opened(["%%sh_session\nfor n in 1 2 3 4 5 6; do echo step $n; sleep 0.4; done; read go; echo over"])
    lab.start(1)
    lab.wait_text("step 1\nstep 2\nstep 3")
    lab.wait_bar("badge", "waiting for input")
    pictures.both(lab.page, f"cell-{lab.frontend}")
    lab.type("\n")
    lab.wait_ran(1)
    assert lab.output_text(1) == "".join(f"step {n}\n" for n in range(1, 7)) + "\nover\n"
    lab.wait_count(0)
    pictures.take(lab.page, f"cell-ended-{lab.frontend}")


@BOTH
def test_a_prompt_is_answered_in_the_terminal(opened: Open) -> None:
    lab = opened(["%%sh_session\nread -p 'Name? ' name; echo \"Hello, $name\""])
    lab.start(1)
    lab.wait_bar("badge", "waiting for input")
    assert lab.page.locator(".jp-Stdin-input").count() == 0
    lab.type("Ada\n")
    lab.wait_ran(1)
    assert lab.output_text(1) == "Name? Ada\nHello, Ada\n"


@BOTH
def test_nothing_of_a_password_is_in_the_page_or_the_notebook(opened: Open) -> None:
    lab = opened(["%%sh_session\nread -s -p 'Password: ' word; echo; echo ${#word} letters; read -p 'Go on? ' go"])
    lab.start(1)
    lab.wait_bar("badge", "waiting for input (hidden)")
    pictures.take(lab.page, f"password-{lab.frontend}")
    lab.type("xyzzy\n")
    lab.wait_text("5 letters\nGo on?")
    assert "xyzzy" not in lab.text() + lab.page.content()
    assert lab.page.evaluate(
        "() => [...document.querySelectorAll('input, textarea')].every((one) => one.value !== 'xyzzy')"
    )
    lab.type("\n")
    lab.wait_ran(1)
    lab.save()
    assert "5 letters" in lab.path.read_text()
    assert "xyzzy" not in lab.path.read_text() + lab.page.content()


def test_a_cell_with_an_editor(opened: Open) -> None:
    lab = opened(["%%sh_session\nrm -f edited.txt; vim -u NONE -n edited.txt; cat edited.txt"])
    lab.start(1)
    lab.wait_text("~\n~")
    lab.wait_fitted()
    lab.type("ifrom a cell")
    lab.page.keyboard.press("Escape")
    lab.page.keyboard.type(":wq\n")
    lab.wait_ran(1)
    assert "from a cell\n" in lab.output_text(1)


@BOTH
def test_a_cell_can_be_interrupted_by_its_button(opened: Open) -> None:
    lab = opened(["%%sh_session\nwhile :; do echo on; sleep 0.2; done"])
    lab.start(1)
    lab.wait_text("on\non\non\non\non")
    lab.press("interrupt")
    lab.wait_ran(1)
    assert "on\non\n" in "".join("".join(one.get("text", "")) for one in lab.outputs(1))
    lab.wait_count(0)
