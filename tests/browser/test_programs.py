"""Programs that people use in terminals, used by the keyboard."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence

import pictures
import pytest
from lab import BOTH, Lab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

Open = Callable[[Sequence[str]], Lab]


def needs(program: str) -> pytest.MarkDecorator:
    """Skip a test where a program is not installed."""
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"needs {program}")


@BOTH
def test_python(opened: Open) -> None:
    lab = opened(["%session start py python3"])
    lab.run(1)
    lab.wait_text(">>>")
    lab.type("print(6 * 7)\n")
    lab.wait_text("\n42\n")
    assert lab.bar("name") == "py"
    assert lab.bar("program") == "python3"
    lab.wait_bar("badge", "running")
    lab.page.keyboard.press("ArrowUp")
    lab.wait_view("view.text().endsWith('>>> print(6 * 7)')")
    lab.page.keyboard.press("Control+c")
    lab.wait_view("view.text().endsWith('KeyboardInterrupt\\n>>>')")  # it takes no keys before
    pictures.both(lab.page, f"python-{lab.frontend}")
    lab.page.keyboard.press("Control+d")
    lab.wait_bar("badge", "exited 0")


@needs("vim")
@BOTH
def test_vim(opened: Open) -> None:
    lab = opened(["!rm -f note.txt", "%session start vi vim -u NONE -n note.txt"])
    lab.run(1)
    lab.run(2)
    lab.wait_text("~\n~")
    lab.wait_fitted()
    lab.type("ihello world\nsecond line")
    lab.page.keyboard.press("Escape")
    lab.wait_text("hello world\nsecond line\n~")
    pictures.take(lab.page, f"vim-{lab.frontend}")
    lab.page.keyboard.type("gg0dw:wq\n")
    lab.wait_bar("badge", "exited 0")
    assert (lab.path.parent / "note.txt").read_text() == "world\nsecond line\n"


@needs("less")
def test_less_fills_the_height_and_scrolls(opened: Open) -> None:
    lab = opened(["!seq 1 500 > numbers.txt", "%session start pages less numbers.txt"])
    lab.run(1)
    lab.run(2)
    lab.wait_text("numbers.txt")
    lab.wait_view("view.rows === 24 && view.term.rows >= 23")  # more than what scrolls has
    lab.wait_fitted()
    lab.wait_view("[':', 'numbers.txt'].some((end) => view.text().endsWith(`\\n${view.term.rows - 1}\\n${end}`))")
    rows = lab.view("view.term.rows")
    lab.type(" ")
    lab.wait_text(f"\n{2 * rows - 2}\n:")
    lab.page.keyboard.type("/^400\n")
    lab.wait_text("\n401\n402\n")
    pictures.take(lab.page, "less")
    lab.page.keyboard.press("g")
    lab.wait_text("\n2\n3\n")
    lab.page.keyboard.press("q")
    lab.wait_bar("badge", "exited 0")


@needs("htop")
@BOTH
def test_htop(opened: Open) -> None:
    lab = opened(["%session start top htop"])
    lab.run(1)
    lab.wait_text("F10Quit")
    lab.wait_text("Load average")
    pictures.both(lab.page, f"htop-{lab.frontend}")
    lab.focus()
    lab.wait_fitted()
    lab.wait_view(
        "(() => { const { buffer, rows } = view.term, bottom = buffer.active.getLine(buffer.active.baseY + rows - 1);"
        " return bottom.translateToString().includes('F10Quit'); })()"
    )  # it has drawn for that size
    lab.page.keyboard.press("F5")  # a tree
    lab.wait_text("F5List")
    lab.page.keyboard.press("F1")
    lab.wait_text("Released under")
    lab.page.keyboard.type(" ")
    lab.wait_text("F10Quit")
    lab.page.keyboard.press("F10")
    lab.wait_bar("badge", "exited 0")
