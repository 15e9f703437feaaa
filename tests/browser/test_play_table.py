"""The live table of sessions in a page without a kernel: what it shows, asks for and can be done by the keyboard alone."""

from __future__ import annotations

from itertools import groupby

import pytest
from play import AXE, Play
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def test_the_rows_are_shown(play: Play) -> None:
    play.table(12)
    assert play.column("name")[:3] == ["web", "train", "agent-1"]
    assert play.column("state")[4:8] == ["exited 3", "exited 0", "backing-off", "lost"]
    assert play.column("age")[:6] == ["12 min", "2 h", "41 s", "3 d", "5 min", "1 min"]
    assert play.column("cpu")[:5] == ["0 %", "398 %", "12 %", "1 %", ""]
    assert play.column("memory")[:2] == ["20 MB", "6.4 GB"]
    assert play.column("ports")[10] == "8888, 8889, 45123"
    expect(play.page.locator(".sm-counts")).to_have_text("8 running, 4 ended")
    assert play.page.get_by_role("rowheader", name="web").count() == 1
    play.rows("play.rows(12)", later=60)
    assert play.column("age")[:3] == ["13 min", "2 h", "1 min"]
    assert play.errors == []


def test_text_stands_where_nothing_has_come_yet_and_a_hint_where_there_is_nothing(play: Play) -> None:
    play.table(traits={"snapshot": "NAME  STATE"})
    expect(play.page.locator(".sm-still")).to_have_text("NAME  STATE")
    play.rows("[]")
    expect(play.page.locator(".sm-still")).to_have_count(0)
    expect(play.page.locator(".sm-empty")).to_contain_text("no sessions")
    expect(play.page.locator(".sm-empty code")).to_have_text("%session start NAME -- PROGRAM")
    expect(play.page.locator("table")).to_be_hidden()
    play.rows("play.rows(1)")
    expect(play.page.locator(".sm-empty")).to_be_hidden()


def test_it_says_whether_it_is_seen(play: Play) -> None:
    play.table(1)
    play.page.wait_for_function("() => shown.model.sent.some((one) => one.t === 'seen' && one.seen)")
    play.page.evaluate("() => { shown.el.style.display = 'none'; }")
    play.page.wait_for_function("() => shown.model.sent.at(-1).seen === false")
    play.page.evaluate("() => { shown.el.style.display = ''; }")
    play.page.wait_for_function("() => shown.model.sent.at(-1).seen === true")
    said = [one["seen"] for one in play.sent("seen")]
    assert [seen for seen, _ in groupby(said)] == [True, False, True]  # again and again, where it took long


def test_it_says_so_too_where_nobody_sees_it(play: Play) -> None:
    play.page.evaluate("() => { document.querySelector('#place').style.display = 'none'; }")
    play.table(1)
    play.page.wait_for_function("() => shown.model.sent.length === 1")
    assert play.sent("seen") == [{"t": "seen", "seen": False}]


def test_a_sign_of_life_comes_every_five_seconds_and_old_rows_look_old(play: Play) -> None:
    play.stop_clock()
    play.table(1)
    play.page.wait_for_function("() => shown.model.sent.length === 1")
    play.page.clock.run_for(5000)
    assert [one["seen"] for one in play.sent("seen")] == [True, True]
    expect(play.page.locator(".sm-stale")).to_have_count(0)
    play.page.clock.run_for(5000)
    expect(play.page.locator(".sm-stale")).to_have_count(1)
    expect(play.page.locator(".sm-notice")).to_contain_text("not renewed since")
    play.rows("play.rows(1)")
    expect(play.page.locator(".sm-stale")).to_have_count(0)


def test_any_column_sorts_both_ways_and_back(play: Play) -> None:
    play.table(12)
    button, title = play.page.get_by_role("button", name="Name"), play.page.locator("th.sm-col-name").first
    kernel = play.column("name")
    button.click()
    expect(title).to_have_attribute("aria-sort", "ascending")
    assert play.column("name") == sorted(kernel)
    button.press("Enter")
    expect(title).to_have_attribute("aria-sort", "descending")
    assert play.column("name") == sorted(kernel, reverse=True)
    button.press("Enter")
    assert title.get_attribute("aria-sort") is None
    assert play.column("name") == kernel
    play.page.get_by_role("button", name="CPU").click()
    assert play.column("name")[:2] == ["train", "agent-1"]
    assert play.column("cpu")[-1] == ""


def test_the_filter_finds_words_and_labels(play: Play) -> None:
    play.table(12)
    filter = play.page.get_by_role("searchbox", name="Filter sessions")
    for typed, names in {
        "pytest": ["tests"],
        "python3 epoch": ["train"],
        "crew=a": ["web", "train"],
        "label:gpu=0": ["train"],
        "label:crew": ["web", "train", "agent-1"],
        "killed by the holder": [],
    }.items():
        filter.fill(typed)
        assert play.column("name") == names, typed
    expect(play.page.locator(".sm-empty")).to_contain_text("no session matches")
    filter.fill("crew")
    expect(play.page.locator(".sm-counts")).to_have_text("3 of 12 shown")
    expect(play.page.locator(".sm-bar .sm-hidden[role=status]")).to_have_text("3 of 12 shown")
    filter.press("Escape")
    assert len(play.column("name")) == 12


def test_buttons_say_what_they_want(play: Play) -> None:
    play.table(12)
    name = play.page.get_by_role("button", name="Stop web", exact=True)
    name.click()
    assert play.sent("stop") == [{"t": "stop", "id": "r1", "now": False}]
    play.rows("play.rows(12).map((row) => row.id === 'r1' ? { ...row, busy: 'stopping' } : row)")
    play.page.get_by_role("button", name="Stop web now").click()
    assert play.sent("stop")[1] == {"t": "stop", "id": "r1", "now": True}
    play.page.get_by_role("button", name="Restart tests").click()
    assert play.sent("restart") == [{"t": "restart", "id": "r5"}]
    play.page.get_by_role("button", name="Remove tests").click()
    assert play.sent("remove") == [{"t": "remove", "id": "r5"}]


def test_a_press_meant_for_stop_does_not_remove(play: Play) -> None:
    play.stop_clock()
    play.table(12)
    stop = play.page.locator("tbody tr").first.locator("button").last
    stop.focus()
    play.rows("play.rows(12).map((row) => row.id === 'r1' ? { ...row, state: 'exited', text: 'exited 0' } : row)")
    play.page.keyboard.press("Enter")
    assert play.sent("remove") == []
    play.page.clock.run_for(1000)
    play.page.keyboard.press("Enter")
    assert play.sent("remove") == [{"t": "remove", "id": "r1"}]


def test_a_reader_may_look_only(play: Play) -> None:
    play.table(2, {"read_only": True})
    assert play.page.locator("tbody button").count() == 2
    assert play.page.get_by_role("button", name="Show the terminal of web").count() == 1


def test_the_keyboard_reaches_everything(play: Play) -> None:
    play.table(3)
    play.page.locator("#before").focus()
    titles = ["Name", "State", "Program", "Directory", "Age", "CPU", "Memory", "Ports", "Last line"]
    first = ["Show the terminal of web", "Restart web", "Stop web"]
    assert play.walk("Tab", 14) == ["Filter sessions", *titles, *first, "after"]
    assert play.walk("Shift+Tab", 1) == ["Stop web"]
    assert play.walk("ArrowDown", 3) == ["Stop train", "Stop agent-1", "Stop agent-1"]
    assert play.walk("ArrowLeft", 1) == ["Restart agent-1"]
    assert play.walk("Home", 1) == ["Restart web"]
    assert play.walk("End", 1) == ["Restart agent-1"]
    assert play.walk("ArrowUp", 1) == ["Restart train"]
    assert play.walk("Tab", 2) == ["Stop train", "after"]
    assert play.walk("Shift+Tab", 4) == ["Stop train", "Restart train", "Show the terminal of train", "Last line"]


def test_it_says_whether_it_has_the_keyboard(play: Play) -> None:
    play.table(3)
    play.page.get_by_role("searchbox").focus()
    play.page.keyboard.press("Tab")
    play.page.locator("#before").focus()
    assert play.sent("focus") == [{"t": "focus", "on": True}, {"t": "focus", "on": False}]


def test_keys_do_not_reach_the_notebook(play: Play) -> None:
    play.table(3)
    play.page.evaluate(
        "() => { window.leaked = []; document.addEventListener('keydown', (event) => leaked.push(event.key)); }"
    )
    play.page.get_by_role("searchbox").press("b")
    play.page.get_by_role("button", name="Stop web").press("d")
    assert play.page.evaluate("() => leaked") == []


def test_focus_selection_and_scroll_outlive_new_rows_and_orders(play: Play) -> None:
    play.table(60)
    play.page.get_by_role("button", name="CPU").click()
    button = play.page.get_by_role("button", name="Restart db-27", exact=True)
    button.focus()
    play.page.evaluate(
        "() => getSelection().selectAllChildren(document.activeElement.closest('tr').querySelector('.sm-col-program'))"
    )
    element = button.element_handle()
    play.page.mouse.move(5, 5)
    before = play.column("name").index("db-27")
    for tick in range(1, 6):
        play.rows(
            f"play.rows(60, {tick}).map((row, n) => ({{ ...row, cpu: (n * {31 + 2 * tick}) % 101 }}))", later=tick
        )
        assert play.focused() == "Restart db-27"
        assert play.page.evaluate("(one) => one === document.activeElement", element)
        assert play.page.evaluate("() => getSelection().toString()") == "postgres -D data -p 5433 -k /tmp"
    cpu = [int(text.split()[0]) for text in play.column("cpu")]
    assert cpu == sorted(cpu, reverse=True)
    assert play.column("name").index("db-27") != before


def test_rows_stand_still_under_the_pointer(play: Play) -> None:
    play.table(12)
    play.page.get_by_role("button", name="CPU").click()
    play.page.locator("tbody tr").nth(3).hover()
    before = play.column("name")
    play.rows("play.rows(13, 30).slice(1)")
    assert play.column("name") == [*(name for name in before if name != "web"), "web-12"]
    play.page.mouse.move(5, 5)
    cpu = [int(text.split()[0]) for text in play.column("cpu") if text]
    assert cpu == sorted(cpu, reverse=True)


def test_the_keyboard_goes_to_the_next_row_when_its_own_is_gone(play: Play) -> None:
    play.table(3)
    play.page.get_by_role("button", name="Restart train").focus()
    play.rows("play.rows(3).filter((row) => row.name !== 'train')")
    assert play.focused() == "Restart agent-1"
    play.rows("play.rows(1)")
    assert play.focused() == "Restart web"
    play.rows("[]")
    assert play.focused() == "Sessions"


def test_state_changes_are_told_and_nothing_else(play: Play) -> None:
    play.table(3)
    said = play.page.locator(".sm-bar .sm-hidden[role=status]")
    play.rows("play.rows(3, 5)", later=5)
    expect(said).to_have_text("")
    play.rows("play.rows(3).map((row) => row.id === 'r1' ? { ...row, state: 'exited', text: 'exited 3' } : row)")
    expect(said).to_have_text("web exited 3")
    play.page.evaluate("() => shown.model.message({ t: 'notice', view: 'another', text: 'not here' })")
    play.page.evaluate("() => shown.model.message({ t: 'notice', text: 'web does not stop' })")
    expect(play.page.locator(".sm-list .sm-notice")).to_have_text("web does not stop")


@pytest.mark.parametrize("width", [320, 400, 600, 800, 1280])
def test_it_fits_into_any_width(play: Play, width: int) -> None:
    play.page.set_viewport_size({"width": width, "height": 700})
    play.table(12)
    assert play.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    assert play.page.evaluate(
        "() => { const at = document.querySelector('.sm-rows'); return at.scrollWidth <= at.clientWidth; }"
    )
    assert play.page.locator("tbody .sm-col-name").first.bounding_box()["width"] >= 70  # type: ignore[index]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_found_by_the_accessibility_checker(page: Page, theme: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: npm ci in session_magics/frontend")
    play = Play(page, theme)
    page.evaluate(AXE.read_text())
    for rows in (None, 12, 0):
        play.table(rows)
    page.evaluate("() => document.querySelectorAll('.sm-list')[1].classList.add('sm-stale')")
    found = page.evaluate(
        "async () => (await axe.run()).violations.map((one) => [one.id, one.nodes.map((node) => node.html)])"
    )
    assert found == []


def test_two_hundred_rows_cost_little(play: Play) -> None:
    play.table(200)
    first, median = play.page.evaluate(
        """async () => {
             const measured = (tick, model) => {
               const message = { t: 'rows', at: play.AT + tick, rows: play.rows(200, tick) };
               const began = performance.now();
               model.message(message);
               return performance.now() - began;
             };
             const pause = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
             const first = [], later = [];
             for (let tick = 1; tick <= 7; tick++) {
               later.push(measured(tick, shown.model));
               await pause();
               const fresh = show(play.tableModel({}));
               first.push(measured(tick, fresh.model));
               fresh.close();
               fresh.el.remove();
               await pause();
             }
             return [first, later].map((times) => times.sort((a, b) => a - b)[3]); }"""
    )
    print(f"200 rows: {median:.2f} ms, made anew {first:.2f} ms")
    assert median < first / 4
