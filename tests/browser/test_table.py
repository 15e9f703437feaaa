"""The live table of sessions in JupyterLab."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pictures
import pytest
from lab import BOTH, Lab
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

Open = Callable[[Sequence[str]], Lab]

STARTS = """%session start --label crew=a -- web sh -c 'while read line; do echo "got $line"; done'
%session start -- job sh -c 'echo working; exit 3'"""
OPENED = "document.querySelector('.sm-shown .sm-outer')?.__session_magics"


def listed(opened: Open, line: str = "%session list") -> Lab:
    lab = opened([STARTS, line])
    lab.run(1)
    lab.run(2)
    lab.wait_table("list.querySelector('tbody tr')")
    return lab


@BOTH
def test_sessions_are_listed_stopped_and_removed(opened: Open) -> None:
    lab = listed(opened)
    table = lab.page.locator(".sm-list")
    web, job = (
        table.get_by_role("row").filter(has=lab.page.get_by_role("rowheader", name=name)) for name in ("web", "job")
    )
    expect(job.locator(".sm-col-state")).to_have_text("exited 3")
    expect(job.locator(".sm-col-last")).to_have_text("working")
    expect(web.locator(".sm-col-cpu")).to_have_text("0 %")
    expect(web.locator(".sm-col-memory")).to_contain_text("B")
    pictures.both(lab.page, f"table-{lab.frontend}")
    table.get_by_role("button", name="Stop web").click()
    expect(web.locator(".sm-col-state")).to_contain_text("killed")
    table.get_by_role("button", name="Remove job").click()
    expect(job).to_have_count(0)
    lab.wait_bar("badge", "removed")  # of its terminal, which keeps its text
    assert "working" in lab.text()
    table.get_by_role("button", name="Restart web").click()
    expect(web.locator(".sm-col-state")).to_have_text("running")


def test_a_terminal_in_the_table_outlives_the_renewal_of_the_text_that_is_saved(opened: Open) -> None:
    lab = listed(opened)
    lab.page.get_by_role("button", name="Show the terminal of web").click()
    lab.page.wait_for_function(f"() => {OPENED}")
    lab.page.evaluate(f"() => {OPENED}.term.focus()")
    lab.page.keyboard.type("one\n")
    lab.page.wait_for_function(f"() => {OPENED}.text().includes('got one')")
    lab.page.keyboard.press("Control+Shift+Enter")
    lab.page.evaluate("() => { window.first = document.querySelector('.sm-list'); }")
    lab.execute("get_ipython().run_line_magic('session', 'stop web')")
    lab.wait_output(2, "killed by signal")
    lab.page.wait_for_function("() => document.querySelector('.sm-list') === window.first")
    lab.page.wait_for_function(f"() => {OPENED}.text().includes('got one')")
    saved = lab.save()
    (output,) = saved["cells"][2]["outputs"]
    lines = "".join(output["data"]["text/plain"]).split("\n")
    assert lines[0].split()[:2] == ["NAME", "STATE"]
    assert any(line.startswith("web ") for line in lines)
    assert "widgets" not in saved["metadata"]


def test_a_table_of_a_label_says_so(opened: Open) -> None:
    lab = listed(opened, "%session list --label crew=a")
    expect(lab.page.locator(".sm-list .sm-labels")).to_have_text("crew=a")
    expect(lab.page.locator(".sm-list tbody .sm-col-name")).to_have_text(["web"])


@BOTH
def test_the_keyboard_alone_walks_through_the_table_and_a_terminal(opened: Open) -> None:
    lab = listed(opened, "%session list --label crew=a")  # one row alone, which Tab leads to
    web = lab.page.get_by_role("row").filter(has=lab.page.get_by_role("rowheader", name="web"))
    expect(web.locator(".sm-col-state")).to_have_text("running")
    lab.page.locator(".sm-list .sm-filter").focus()
    walk(lab, "Tab", "Show the terminal of web")
    lab.page.keyboard.press("Enter")
    lab.page.wait_for_function(f"() => {OPENED}")
    walk(lab, "Tab", "Terminal of web")
    lab.page.keyboard.type("by keys\n")
    lab.page.wait_for_function(f"() => {OPENED}.text().includes('got by keys')")
    pictures.both(lab.page, f"table-terminal-{lab.frontend}")
    lab.page.keyboard.press("Control+Shift+Enter")
    assert lab.page.evaluate("() => !document.activeElement.closest('.sm-shown')")
    lab.page.locator(".sm-list .sm-filter").focus()
    walk(lab, "Tab", "Stop web")
    lab.page.keyboard.press("Enter")
    expect(web.locator(".sm-col-state")).to_contain_text("killed")


def walk(lab: Lab, key: str, label: str, limit: int = 60) -> None:
    """Press a key until something whose label begins so has the keyboard."""
    seen = []
    for _ in range(limit):
        lab.page.keyboard.press(key)
        seen.append(lab.page.evaluate("() => document.activeElement.getAttribute('aria-label') ?? ''"))
        if seen[-1].startswith(label):
            return
    raise AssertionError(f"{label!r} did not come: {seen}")
