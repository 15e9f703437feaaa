"""Terminals after a reload, in a second tab, after a restart of the kernel, without any kernel, and in the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pictures
import pytest
from lab import BOTH, PANEL, Lab
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

Open = Callable[[Sequence[str]], Lab]

COLOURS = r"""printf "\033[1;3%dmline %d\033[0m of \033[48;5;%dmmany\033[0m ✓ 漢字\n" $((n % 8)) $n $n"""
TALK = f"""%session start -- talk bash -c 'for n in {{1..200}}; do {COLOURS}; done; cat'"""
LABEXTENSION = "**/extensions/session-magics/**"
WIDGET_BYTES = 2048
"""What a terminal may add to a saved notebook."""


def everything(lab: Lab) -> str:
    """Text, colours and cursor of a terminal."""
    return str(lab.view("view.serialize.serialize()"))


@BOTH
def test_a_reload_and_a_second_tab_replay_exactly(opened: Open) -> None:
    lab = opened([TALK])
    lab.run(1)
    lab.wait_text("line 200")
    lab.type("first\n")
    lab.wait_line("first\nfirst")
    text, all_of_it = lab.text(), everything(lab)
    assert text.count("\n") == 201
    lab.save()
    lab.reload()
    lab.wait_line("first\nfirst")
    assert (lab.text(), everything(lab)) == (text, all_of_it)
    other = lab.second_tab()
    other.wait_line("first\nfirst")
    assert (other.text(), everything(other)) == (text, all_of_it)
    other.type("second\n")
    lab.wait_text("second\nsecond")
    lab.type("third\n")
    for one in (lab, other):
        one.wait_line("third\nthird")
    assert everything(lab) == everything(other)


def test_a_replay_types_nothing(opened: Open) -> None:
    asks = r"""%session start asks -- bash --norc -c 'printf "\033[c\033[6n\033[>cready\n"; cat -v'"""
    lab = opened([asks])
    lab.run(1)
    lab.wait_text("ready")
    lab.type("first\n")
    lab.wait_text("first\nfirst")
    before = lab.text()
    lab.save()
    lab.reload()
    lab.wait_text("first\nfirst")
    lab.type("second\n")
    lab.wait_text("second\nsecond")
    assert lab.text() == before.rstrip() + "\nsecond\nsecond"


@BOTH
def test_a_session_outlives_the_kernel(opened_alone: Open) -> None:
    lab = opened_alone(["%session start -- talk sh -c 'echo hello; cat'", "%session show talk"])
    lab.run(1)
    lab.wait_text("hello")
    lab.type("before\n")
    lab.wait_text("before\nbefore")
    lab.kernel("restart")
    lab.page.wait_for_selector(".jp-OutputArea-output pre:has-text('hello')")
    lab.wait_count(0)
    pictures.take(lab.page, f"kernel-restarted-{lab.frontend}")
    lab.run(0)
    lab.run(2)
    lab.wait_text("hello\nbefore\nbefore")
    lab.type("after\n")
    lab.wait_text("after\nafter")


@BOTH
def test_the_page_itself_leaves_text_where_the_kernel_restarts(opened_alone: Open) -> None:
    """Where the server is not the kernel's own, it has no labextension of ours."""
    lab = opened_alone(["%session start -- talk sh -c 'echo hello; cat'"])
    lab.run(1)
    lab.wait_text("hello")
    lab.save()
    lab.page.route(LABEXTENSION, lambda route: route.abort())
    lab.reload()
    assert lab.page.evaluate("() => globalThis._JUPYTERLAB?.['session-magics'] === undefined")
    lab.wait_text("hello")
    lab.kernel("restart")
    lab.page.wait_for_selector(".jp-OutputArea-output pre:has-text('hello')")
    lab.wait_count(0)
    lab.page.unroute(LABEXTENSION)


@BOTH
def test_a_terminal_without_its_kernel_is_text(opened_alone: Open) -> None:
    lab = opened_alone(["%session start -- job sh -c 'echo hello; exit 3'"])
    lab.run(1)
    lab.wait_output(1, "exited 3")
    lab.save()
    lab.page.evaluate("async () => { await window.jupyterapp.shell.currentWidget.context.sessionContext.shutdown(); }")
    lab.reload()
    lab.page.wait_for_selector(".jp-OutputArea-output pre:has-text('exited 3')")
    assert "hello" in lab.page.locator(".jp-OutputArea-output").first.inner_text()
    assert lab.page.locator("text=Error displaying widget").count() == 0
    pictures.take(lab.page, f"without-kernel-{lab.frontend}")


@BOTH
def test_a_terminal_adds_little_to_the_notebook_and_has_its_text(opened: Open) -> None:
    lab = opened(["pass", "%session start -- job sh -c 'echo hello; exit 3'"])
    lab.run(1)
    lab.save()
    before = lab.path.stat().st_size
    lab.run(2)
    lab.wait_output(2, "exited 3")
    saved = lab.save()
    output = saved["cells"][2]["outputs"][0]
    assert "hello" in "".join(output["data"]["text/plain"])
    assert lab.path.stat().st_size - before < WIDGET_BYTES
    assert "widgets" not in saved["metadata"]


def test_shell_cells_have_shell_colours(opened: Open) -> None:
    lab = opened(["%%sh_session\nif true; then echo $HOME; fi", "x = 1"])
    kinds = "() => window.jupyterapp.shell.currentWidget.content.widgets.map((one) => one.model.mimeType)"
    lab.page.wait_for_function(f"() => ({kinds})()[1] === 'text/x-sh'")
    assert lab.page.evaluate(kinds)[2] == "text/x-ipython"
    # A page that has loaded no language yet, in which Python's comes later than the shell's.
    fresh = lab.second_tab().page.locator(".jp-CodeCell .cm-content")
    expect(fresh.nth(1)).to_have_attribute("data-language", "shell")
    expect(fresh.nth(2)).to_have_attribute("data-language", "python")


def test_programs_that_end_at_once_are_saved_with_their_end(opened: Open) -> None:
    start = "for n in range(15): display(get_ipython().run_line_magic('session', f'start -- t{n} sh -c \"exit 3\"'))"
    lab = opened([start])
    lab.run(1)
    lab.page.wait_for_function(
        f"() => JSON.stringify({PANEL}.content.widgets[1].model.toJSON().outputs).split('exited 3').length > 15"
    )
