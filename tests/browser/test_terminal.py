"""The terminal of a session: its title bar, its size, its keyboard."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import pictures
import pytest
from lab import BOTH, Lab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

Open = Callable[[Sequence[str]], Lab]

# They are there for two seconds, which are soon over for a page that has to wait.
NOTICES = """() => {
  const element = document.querySelector('.sm-notice'), notices = window.notices = [];
  new MutationObserver(() => notices.push(element.textContent)).observe(element, { childList: true });
}"""
SHOUT = """%session start -- shout sh -c 'while read line; do echo "got $line"; done'"""


def test_two_views_are_in_step(opened: Open) -> None:
    lab = opened([SHOUT, "%session show shout --read-only --rows 8"])
    lab.run(1)
    lab.run(2)
    lab.type("one\n")
    lab.wait_text("got one")
    lab.wait_text("got one", 1)
    lab.page.keyboard.type("two\n")
    lab.wait_text("got two")
    lab.wait_text("got two", 1)
    assert lab.text(0) == lab.text(1)
    lab.type("never", 1)
    lab.type("three\n")
    lab.wait_text("got three", 1)
    pictures.both(lab.page, "two-views")
    assert "never" not in lab.text()
    assert lab.page.locator(".sm").nth(1).locator("button[data-action=stop]").count() == 0


def test_the_end_is_shown_and_restart_begins_anew(opened: Open) -> None:
    lab = opened(["%session start -- job sh -c 'echo working; read answer; exit 3'"])
    lab.run(1)
    lab.wait_bar("badge", "waiting for input")
    lab.type("\n")
    lab.wait_bar("badge", "exited 3")
    lab.wait_output(1, "exited 3")
    pictures.both(lab.page, "ended")
    lab.press("restart")
    lab.wait_bar("badge", "waiting for input")
    lab.wait_view("view.text().split('working').length === 3")  # what it prints and how it stands come apart


def test_hidden_input_is_announced(opened: Open) -> None:
    lab = opened(["""%session start -- ask bash -c 'read -s -p "Password: " word; echo; echo "${#word} letters"'"""])
    lab.run(1)
    lab.wait_bar("badge", "hidden")
    lab.type("secret\n")
    lab.wait_text("6 letters")
    assert "secret" not in lab.text()


def test_the_leave_key_gives_the_keyboard_back(opened: Open) -> None:
    lab = opened(["%session start py python3"])
    lab.run(1)
    lab.wait_text(">>>")
    lab.type("1")
    lab.page.keyboard.press("Control+Shift+Enter")
    assert lab.page.evaluate("() => !document.activeElement.closest('.sm')")


def test_the_program_learns_its_size(opened: Open) -> None:
    # Its size at the beginning too: the page may have told it before it has set its trap.
    lab = opened(["%session start -- size sh -c 'trap \"stty size\" WINCH; stty size; while :; do sleep 0.1; done'"])
    lab.run(1)
    lab.wait_view(r"/^\d+ \d+$/m.test(view.text())")
    lab.wait_fitted()
    before = lab.view("view.term.rows")
    lab.press("full")
    lab.wait_view("view.term.rows > wanted", before)
    lab.wait_view("view.text().endsWith(`\\n${view.term.rows} ${view.term.cols}`)")


def test_text_is_found_and_copied(opened: Open) -> None:
    lab = opened(["%session start -- list sh -c 'seq 1 300; read stay'"])
    lab.run(1)
    lab.wait_text("\n300")
    lab.wait_bar("badge", "waiting for input")
    lab.wait_view("view.fit.proposeDimensions().rows === view.term.rows")
    lab.wait_view("view.screen.scrollTop === 0")  # no row is hidden above, none is empty below
    lab.press("find")
    lab.page.locator(".sm-find input").fill("23")
    lab.page.wait_for_selector(".sm-find span:has-text('of 13')")
    pictures.both(lab.page, "find")
    lab.page.keyboard.press("Escape")
    assert copied(lab, "selection copied") == "23"
    lab.view("view.term.clearSelection()")
    assert copied(lab, "all text copied").split() == [str(number) for number in range(1, 301)]
    lab.press("clear")
    lab.wait_view("!view.text().includes('299')")


def copied(lab: Lab, notice: str) -> str:
    """What the copy button puts on the clipboard."""
    lab.page.evaluate(NOTICES)
    lab.press("copy")
    lab.page.wait_for_function("(notice) => window.notices.includes(notice)", arg=notice)
    return str(lab.page.evaluate("() => navigator.clipboard.readText()"))


def test_twenty_terminals_in_a_page(opened: Open) -> None:
    start = "for n in range(20): display(get_ipython().run_line_magic('session', f'start t{n} sh -c \"echo I am {n}; cat\"'))"
    lab = opened([start])
    began = time.monotonic()
    lab.run(1)
    for number in range(20):
        lab.wait_text(f"I am {number}", number)
    print(f"20 terminals: {time.monotonic() - began:.1f} s")
    lab.type("typed\n", 19)
    lab.wait_text("typed\ntyped", 19)
    pictures.take(lab.page, "twenty")


@BOTH
def test_a_renewed_text_leaves_the_terminal_as_it_is(opened: Open) -> None:
    # JupyterLab makes a new view when an output is updated, and forgets the old one.
    lab = opened([r"%session start -- talk sh -c 'seq 1 100; echo $((40 + 2))nd; cat'"])
    lab.run(1)
    lab.wait_text("42nd")
    before = lab.view("view.id")
    lab.view("view.term.options.scrollback = 12345")
    lab.wait_output(1, "42nd")
    lab.type("typed\n")
    lab.wait_text("typed\ntyped")
    assert lab.view("[view.id, view.term.options.scrollback]") == [before, 12345]
    lab.wait_bar("badge", "waiting for input")


def test_a_program_that_has_ended_gives_its_empty_rows_back(opened: Open) -> None:
    lab = opened(["%session start -- job sh -c 'echo one; echo two; read x; echo three; echo four; exit 3'"])
    lab.run(1)
    lab.wait_text("two")
    height = "view.screen.offsetHeight / view.height.row"
    assert lab.view(height) > 19
    lab.type("\n")
    lab.wait_bar("badge", "exited 3")
    lab.wait_view(f"{height} < 7 && view.text() === wanted", "one\ntwo\n\nthree\nfour")
    lab.press("restart")
    lab.wait_view(f"{height} > 19")


@BOTH
def test_the_keyboard_stays_where_it_was_when_the_text_is_renewed(opened: Open) -> None:
    # The view moves to another place of the page then, and what leaves the page for a moment loses the keyboard.
    lab = opened(["%session start -- talk sh -c 'read x; echo over'"])
    lab.run(1)
    lab.focus()
    lab.view("window.moved = view.el")
    lab.type("\n")
    lab.wait_bar("badge", "exited 0")
    lab.wait_view("view.el !== window.moved")
    lab.wait_view("document.activeElement === view.term.textarea")
    lab.press("find")
    lab.execute("get_ipython().run_line_magic('session', 'restart talk')")
    lab.wait_view("view.model.get('facts').state === 'running'")
    lab.view("window.moved = view.el")
    lab.execute("get_ipython().run_line_magic('session', 'stop talk')")
    lab.wait_view("view.el !== window.moved")
    lab.wait_view("document.activeElement === view.find.field")
