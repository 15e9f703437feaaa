"""Terminals that a live table shows below its rows, in a page without a kernel: they open, close, and leave nothing."""

from __future__ import annotations

import pytest
from play import Play
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def test_a_terminal_opens_below_and_closes_again(play: Play) -> None:
    play.table(3)
    play.page.evaluate("() => play.models.set('r1', play.terminalModel({}, 'I am web'))")
    play.page.get_by_role("button", name="Show the terminal of web").click()
    assert play.sent("show") == [{"t": "show", "id": "r1"}]
    play.page.wait_for_function(
        "() => document.querySelector('.sm-shown .sm-outer')?.__session_magics.text() === 'I am web'"
    )
    show = play.page.get_by_role("button", name="Show the terminal of web")
    expect(show).to_have_attribute("aria-expanded", "true")
    show.click()
    expect(play.page.locator(".sm-shown .sm")).to_have_count(0)
    assert play.page.evaluate("() => play.models.get('r1').sent.at(-1).t") == "bye"
    assert play.page.evaluate("() => play.models.get('r1').listeners.size") == 0
    play.page.get_by_role("button", name="Show the terminal of web").click()
    play.page.get_by_role("button", name="Close this view of web").click()
    expect(play.page.locator(".sm-shown .sm")).to_have_count(0)
    play.page.get_by_role("button", name="Show the terminal of web").click()
    expect(play.page.locator(".sm-shown .sm")).to_have_count(1)
    play.rows("play.rows(3).slice(1)")
    expect(play.page.locator(".sm-shown .sm")).to_have_count(0)


def test_a_terminal_that_does_not_come_is_not_shown_as_open(play: Play) -> None:
    play.table(3)
    show = play.page.get_by_role("button", name="Show the terminal of web")
    show.click()
    expect(show).to_have_attribute("aria-expanded", "true")
    play.page.evaluate(
        "() => shown.model.message({ t: 'notice', view: shown.model.sent.at(-1).view, id: 'r1', text: 'web is gone' })"
    )
    expect(show).to_have_attribute("aria-expanded", "false")
    expect(play.page.locator(".sm-list .sm-notice")).to_have_text("web is gone")


def test_without_a_widget_manager_nothing_is_shown_below(play: Play) -> None:
    play.page.evaluate("() => { window.shown = show(new play.FakeModel({ kind: 'table', snapshot: '' }, null)); }")
    play.rows("play.rows(1)")
    assert play.page.locator("tbody button").count() == 2


def test_a_view_made_again_takes_over_and_a_closed_one_leaves_nothing(play: Play) -> None:
    play.table(3)
    play.page.evaluate("() => play.models.set('r1', play.terminalModel({}, 'I am web'))")
    play.page.get_by_role("button", name="Show the terminal of web").click()
    play.page.get_by_role("button", name="CPU").click()
    play.page.wait_for_function("() => document.querySelector('.sm-shown .sm-outer')")
    play.page.evaluate(
        """() => { shown.el.remove(); const el = document.createElement('div'); document.querySelector('#place').append(el);
             window.second = { el, close: views.render({ model: shown.model.proxy(), el }) }; shown.close(); }"""
    )
    assert play.page.evaluate("() => new Set(shown.model.sent.map((one) => one.view)).size") == 1
    expect(play.page.locator(".sm-shown .sm")).to_have_count(1)
    play.rows("play.rows(4)")
    assert play.column("name")[:2] == ["train", "agent-1"]
    play.page.evaluate("() => second.close()")
    assert play.sent("bye") == [{"t": "bye"}]
    assert play.page.evaluate("() => shown.model.listeners.size + play.models.get('r1').listeners.size") == 0
    assert play.page.evaluate("() => second.el.childElementCount") == 0
