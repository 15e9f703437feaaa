"""Agents in a page: what they do, who answers, and what they leave, in the title bar, the table and the saved notebook."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pictures
import pytest
from lab import BOTH, Lab
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

Open = Callable[[Sequence[str]], Lab]

NOTEBOOKS = Path(__file__).parent.parent.parent / "notebooks"


def cells(*more: str, script: str = "plot") -> list[str]:
    """A cell that starts the demo agent in a directory of its own, and others."""
    begin = (
        f'import os, tempfile; os.environ["SESSION_MAGICS_TOOLS"] = {str(NOTEBOOKS / "tools.json")!r}; '
        "work = tempfile.mkdtemp()"
    )
    start = f"--tool demo -- --script {script} --speed 4"
    return [begin, f'get_ipython().run_line_magic("session", f"start a --cwd {{work}} {start}")', *more]


@BOTH
def test_a_question_is_in_the_title_bar_and_answered_there_by_hand(opened: Open, frontend: str) -> None:
    lab = opened(cells())
    lab.run(1)
    lab.run(2)
    lab.wait_bar("badge", "waiting: Do you want to create data.csv?")
    assert lab.page.locator(".sm-bar").first.get_attribute("data-mood") == "waiting"
    pictures.both(lab.page, "agent-asks")
    lab.type("1")
    lab.wait_bar("badge", "waiting: Do you want to create analysis.py?")


def test_approval_has_a_badge_and_answers_and_the_end_is_told(opened: Open) -> None:
    lab = opened(
        cells(
            "%session approve a --allow 'Edit(**)' --allow 'python3 *' --minutes 5",
            "%session list",
            "%session attachments a",
            "%session send a /exit",
        )
    )
    lab.run(1)
    lab.run(2)
    lab.wait_bar("badge", "waiting")
    lab.run(3)
    lab.wait_bar("badge", "auto-approve")
    lab.wait_text("The plot is ready")
    lab.run(4)
    lab.wait_table("list.querySelector('.sm-col-state .sm-badge')?.textContent.includes('auto')")
    pictures.both(lab.page, "agent-approved")
    lab.run(5)
    expect(lab.page.locator(".jp-OutputArea img[src^='data:image/png']")).to_have_count(1)
    lab.run(6)
    lab.wait_bar("badge", "finished after")
    lab.wait_bar("badge", "1 attachment")
    lab.wait_output(2, "finished after")
    assert "finished after" in str(lab.save()["cells"][2]["outputs"])
