"""A terminal in a page without a kernel: the keyboard's way through it, and what those learn who do not see it."""

from __future__ import annotations

import pytest
from play import AXE, Play
from playwright.sync_api import Page, expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

COLOURS = "\n".join(
    f"\x1b[3{n}mplain {n}\x1b[0m \x1b[9{n}mbright {n}\x1b[0m \x1b[2;3{n}mfaint\x1b[0m" for n in range(8)
)
BUTTONS = [
    "Screen reader mode (Alt+Shift+F1)", "Interrupt web", "Stop web", "Restart web", "Copy the text of web", "Find in web",
    "Clear this view of web", "Full height for web",
]  # fmt: skip
TERMINAL = "Terminal of web. Ctrl+Shift+Enter leaves it, Alt+Shift+F1 turns screen reader mode on or off"
VIEW = "document.querySelector('.sm-outer').__session_magics"
CONTRASTS = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const light = (...colours) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((c) => c / 255).map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const back = getComputedStyle(document.querySelector('.sm-screen')).backgroundColor;
  return [...document.querySelectorAll('.xterm-rows span')].filter((one) => one.textContent.trim()).map((one) => {
    const [high, low] = [light(back, getComputedStyle(one).color), light(back)].sort((a, b) => b - a);
    return [one.textContent, (high + 0.05) / (low + 0.05)];
  });
}"""
# What is begun and not ended, counted from before the bundle comes.
BOOKS = """() => {
  const books = window.books = new Map();
  const note = (what, by) => books.set(what, (books.get(what) ?? 0) + by);
  for (const target of [window, document, document.body, MediaQueryList.prototype]) {
    const { addEventListener, removeEventListener } = target, known = new Set();
    const name = `${target.constructor.name} listener`;
    target.addEventListener = function (kind, listener, ...rest) {
      if (!known.has(listener)) note(`${name} ${kind}`, 1);
      known.add(listener);
      return addEventListener.call(this, kind, listener, ...rest);
    };
    target.removeEventListener = function (kind, listener, ...rest) {
      if (known.delete(listener)) note(`${name} ${kind}`, -1);
      return removeEventListener.call(this, kind, listener, ...rest);
    };
  }
  for (const kind of ['ResizeObserver', 'MutationObserver', 'IntersectionObserver']) {
    window[kind] = class extends window[kind] {
      observe(...all) { if (!this.counted) note(kind, 1); this.counted = true; super.observe(...all); }
      disconnect() { if (this.counted) note(kind, -1); this.counted = false; super.disconnect(); }
    };
  }
  const { setInterval, clearInterval } = window;
  window.setInterval = (...all) => { note('interval', 1); return setInterval(...all); };
  window.clearInterval = (id) => { if (id !== undefined) note('interval', -1); clearInterval(id); };
}"""


@pytest.fixture
def play(page: Page) -> Play:
    return Play(page)


def test_the_keyboard_goes_in_and_out_both_ways(play: Play) -> None:
    play.terminal("ready")
    play.page.locator("#before").focus()
    assert play.walk("Tab", 9) == [*BUTTONS, TERMINAL]
    play.page.keyboard.press("Tab")
    play.page.keyboard.press("Shift+Tab")
    assert play.focused() == TERMINAL
    assert [one["d"] for one in play.sent("in")] == ["\t", "\x1b[Z"]
    assert play.walk("Control+Shift+Enter", 1) == ["Interrupt web"]
    assert play.walk("Tab", 8)[5:] == ["Full height for web", "Height of web", "after"]
    assert play.walk("Shift+Tab", 2) == ["Height of web", TERMINAL]
    assert play.walk("Control+Shift+Enter", 1) == ["Interrupt web"]
    assert play.walk("Shift+Tab", 2) == [BUTTONS[0], "before"]


def test_the_leave_key_on_a_button_leads_back_in(play: Play) -> None:
    play.terminal("ready")
    play.page.get_by_role("button", name="Copy the text of web").focus()
    assert play.walk("Control+Shift+Enter", 1) == [TERMINAL]
    assert play.sent("in") == []


def test_tab_passes_a_terminal_that_takes_no_keys(play: Play) -> None:
    play.terminal("ready", traits={"read_only": True})
    play.page.locator("#before").focus()
    names = play.walk("Tab", 8)
    assert names[-3:] == ["Output of web, read-only", "Height of web", "after"]
    assert "Stop web" not in names


def test_screen_reader_mode_is_one_choice_for_all_terminals_and_is_kept(play: Play) -> None:
    play.terminal("first")
    play.terminal("second")
    button = play.page.get_by_role("button", name="Screen reader mode").first
    assert button.bounding_box()["width"] <= 1  # type: ignore[index]
    button.focus()
    assert button.bounding_box()["width"] > 60  # type: ignore[index]
    button.press("Enter")
    expect(play.page.locator(".xterm-accessibility-tree")).to_have_count(2)
    expect(play.page.locator(".sm-notice").first).to_have_text("screen reader mode on")
    expect(play.page.locator(".sm-notice").last).to_have_text("")
    play.load()
    play.terminal("third")
    expect(play.page.get_by_role("button", name="Screen reader mode")).to_have_attribute("aria-pressed", "true")
    expect(play.page.locator(".xterm-accessibility-tree [role=listitem]").first).to_have_text("third")
    play.page.evaluate(f"() => {VIEW}.term.focus()")
    play.page.keyboard.press("Alt+Shift+F1")
    expect(play.page.locator(".xterm-accessibility-tree")).to_have_count(0)
    assert play.sent("in") == []


def test_a_page_without_storage_has_the_mode_too(play: Play) -> None:
    play.page.evaluate(
        "() => Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('denied'); } })"
    )
    play.terminal("ready")
    play.page.get_by_role("button", name="Screen reader mode").press("Enter")
    expect(play.page.locator(".xterm-accessibility-tree")).to_have_count(1)
    assert play.errors == []


def test_states_are_told_and_the_time_is_not(play: Play) -> None:
    play.terminal("ready")
    said = play.page.locator(".sm-bar .sm-hidden[role=status]")
    expect(said).to_have_text("")
    play.page.evaluate("() => shown.model.set('facts', { ...shown.model.get('facts'), waiting: 'input' })")
    expect(said).to_have_text("web: waiting for input")
    play.page.evaluate(
        "() => shown.model.set('facts', { ...shown.model.get('facts'), waiting: '', state: 'exited', text: 'exited 3', code: 3 })"
    )
    expect(said).to_have_text("web: exited 3")
    assert play.page.locator(".sm-elapsed").evaluate("(one) => one.closest('[role=status], [aria-live]')") is None


def test_a_button_that_can_do_nothing_keeps_the_keyboard(play: Play) -> None:
    play.terminal("ready")
    play.page.get_by_role("button", name="Stop web").press("Enter")
    assert play.sent("stop") == [{"t": "stop", "now": False}]
    assert play.focused() == "Stop web now"
    play.page.evaluate(
        "() => shown.model.set('facts', { ...shown.model.get('facts'), state: 'exited', text: 'exited 0', code: 0 })"
    )
    assert play.focused() == "Stop web"
    assert play.walk("Tab", 1) + play.walk("Shift+Tab", 1) == ["Restart web", "Stop web"]
    play.page.keyboard.press("Enter")
    assert len(play.sent("stop")) == 1


def test_the_height_follows_keys_and_pointer(play: Play) -> None:
    play.terminal("ready")
    grip, screen = play.page.get_by_role("separator", name="Height of web"), play.page.locator(".sm-screen")
    expect(grip).to_have_attribute("aria-valuenow", "12")
    before = screen.bounding_box()
    grip.press("ArrowDown")
    grip.press("PageDown")
    expect(grip).to_have_attribute("aria-valuenow", "23")
    after = screen.bounding_box()
    assert before and after and after["height"] > 1.8 * before["height"]
    grip.press("Home")
    expect(grip).to_have_attribute("aria-valuenow", "3")
    box = grip.bounding_box()
    assert box
    play.page.mouse.move(box["x"] + 200, box["y"] + 3)
    play.page.mouse.down()
    play.page.mouse.move(box["x"] + 200, box["y"] + 103)
    play.page.mouse.up()
    assert abs(screen.bounding_box()["height"] - 172) <= 2  # type: ignore[index]


def test_find_is_opened_and_closed_by_keys(play: Play) -> None:
    play.terminal("one two one")
    play.page.evaluate(f"() => {VIEW}.term.focus()")
    play.page.keyboard.press("Control+Shift+F")
    assert play.focused() == "Find in the terminal"
    play.page.keyboard.type("one")
    expect(play.page.locator(".sm-find [role=status]")).to_contain_text("of 2")
    assert play.walk("Tab", 3) == ["Previous match (Shift+Enter)", "Next match (Enter)", "Close Find (Escape)"]
    play.page.keyboard.press("Escape")
    expect(play.page.get_by_role("search")).to_be_hidden()
    assert play.focused() == TERMINAL


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_colour_can_be_read(page: Page, theme: str) -> None:
    play = Play(page, theme)
    play.terminal(COLOURS)
    play.page.wait_for_function("() => document.querySelectorAll('.xterm-rows span').length > 16")
    contrasts = play.page.evaluate(CONTRASTS)
    assert len(contrasts) >= 16
    assert {text: round(found, 2) for text, found in contrasts if found < 4.5 and "faint" not in text} == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_found_by_the_accessibility_checker(page: Page, theme: str) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: npm ci in session_magics/frontend")
    play = Play(page, theme)
    page.evaluate(AXE.read_text())
    states = [
        {"waiting": "input"},
        {"state": "exited", "text": "exited 3", "code": 3},
        {"state": "unknown", "text": "unknown"},
    ]
    for state in states:
        play.terminal("ready", state)
    page.get_by_role("button", name="Find in web").first.click()
    check = "async () => (await axe.run()).violations.map((one) => [one.id, one.nodes.map((node) => node.html)])"
    assert page.evaluate(check) == []
    page.get_by_role("button", name="Screen reader mode").first.press("Enter")
    assert page.evaluate(check) == []


def test_who_wants_no_motion_has_none(play: Play) -> None:
    play.page.emulate_media(reduced_motion="reduce")
    play.terminal("ready", {"waiting": "input"})
    assert play.page.locator(".sm-dot").evaluate("(one) => getComputedStyle(one).animationName") == "none"
    assert play.page.evaluate(f"() => {VIEW}.term.options.cursorBlink") is False


@pytest.mark.parametrize("shown", ["play.terminalModel()", "play.tableModel()"], ids=["terminal", "table"])
def test_a_closed_view_leaves_nothing_behind(play: Play, shown: str) -> None:
    play.page.evaluate(BOOKS)
    begun, left = play.page.evaluate(
        f"""async () => {{
          window.shown = show({shown});
          shown.model.message({{ t: 'rows', at: play.AT, rows: play.rows(5) }});
          while (shown.model.sent.length < 1) await new Promise((done) => setTimeout(done, 10));
          const open = () => [...books].filter(([, count]) => count);
          const begun = open();
          shown.close();
          return [begun, open()]; }}"""
    )
    assert len(begun) > 3
    assert left == []
    assert play.page.evaluate("() => shown.model.listeners.size") == 0
    assert play.page.evaluate("() => shown.model.sent.at(-1).t") == "bye"


def test_a_view_made_again_takes_the_terminal_over(play: Play) -> None:
    play.terminal("ready")
    play.page.evaluate(
        """() => { const el = document.createElement('div'); shown.el.remove(); document.querySelector('#place').append(el);
             window.second = { el, close: views.render({ model: shown.model.proxy(), el }) }; shown.close(); }"""
    )
    assert play.page.locator(".sm-outer").count() == 1
    assert len(play.sent("sync")) == 1
    play.page.evaluate("() => shown.model.set('facts', { ...shown.model.get('facts'), text: 'renewed' })")
    expect(play.page.locator(".sm-badge")).to_have_text("renewed")
    play.page.evaluate("() => second.close()")
    assert play.page.evaluate("() => shown.model.listeners.size") == 0
