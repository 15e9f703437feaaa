"""The built bundle in a page without a kernel: views of models that act as a kernel would (frontend/test/play.js)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

ADDRESS = "http://localhost/play"
"""Nobody is asked for it; only a page with an address has a storage and may use the clipboard."""
PACKAGE = Path(__file__).parents[2] / "session_magics"
BUNDLE = PACKAGE / "static" / "page.js"
MODELS = PACKAGE / "frontend" / "test" / "play.js"
AXE = PACKAGE / "frontend" / "node_modules" / "axe-core" / "axe.min.js"

# The colours of JupyterLab's two themes, as far as our style takes them.
THEMES = {
    "light": "--jp-layout-color1: #fff; --jp-layout-color2: #eee; --jp-border-color2: #e0e0e0; --jp-brand-color1: #1976d2;"
    "--jp-ui-font-color1: rgba(0, 0, 0, 0.87)",
    "dark": "--jp-layout-color1: #212121; --jp-layout-color2: #424242; --jp-border-color2: #616161; --jp-brand-color1: #1976d2;"
    "--jp-ui-font-color1: #fff",
}
PAGE = """<!doctype html><html lang="en"><head><title>Sessions</title><style>:root {{ {colours} }} .out {{ margin: 9px }}
 body {{ margin: 16px; background: var(--jp-layout-color1); color: var(--jp-ui-font-color1) }}</style></head>
 <body data-jp-theme-light="{light}"><main><h1>Sessions</h1><button class="out" id="before">before</button>
 <div id="place"></div><button class="out" id="after">after</button></main></body></html>"""

LOAD = """async ([bundle, models]) => {
  const load = (code) => import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
  window.views = await load(bundle);
  window.play = await load(models);
  window.show = (model) => {
    const el = document.createElement("div");
    document.querySelector("#place").append(el);
    return { model, el, close: views.render({ model: model.proxy(), el }) };
  };
}"""


class Play:
    """A page that shows one view, ``shown``, of one model."""

    def __init__(self, page: Page, theme: str = "light") -> None:
        self.page = page
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        body = PAGE.format(colours=THEMES[theme], light=str(theme == "light").lower())
        page.route(ADDRESS, lambda route: route.fulfill(body=body, content_type="text/html"))
        self.load()

    def load(self) -> None:
        """Open the page, or reload it."""
        self.page.goto(ADDRESS)
        self.page.evaluate(LOAD, [BUNDLE.read_text(), MODELS.read_text()])

    def stop_clock(self) -> None:
        """Have the page's time stand still but for ``page.clock.run_for``."""
        self.page.clock.install(time=0)
        self.page.clock.pause_at(1000)

    def table(self, rows: int | None = None, traits: dict[str, Any] | None = None) -> None:
        """Show a table, with so many rows."""
        self.page.evaluate("(traits) => { window.shown = show(play.tableModel(traits)); }", traits or {})
        if rows is not None:
            self.rows(f"play.rows({rows})")

    def rows(self, rows: str, later: int = 0) -> None:
        """Send rows, given in JavaScript, so many seconds later than the first."""
        self.page.evaluate(f"() => shown.model.message({{ t: 'rows', at: play.AT + {later}, rows: {rows} }})")

    def terminal(
        self, text: str = "", facts: dict[str, Any] | None = None, traits: dict[str, Any] | None = None
    ) -> None:
        """Show a terminal that has printed a text, and wait until it is there."""
        self.page.evaluate(
            "([facts, text, traits]) => { window.shown = show(play.terminalModel(facts, text, traits)); }",
            [facts or {}, text, traits or {}],
        )
        self.page.wait_for_function(
            "(text) => [...document.querySelectorAll('.sm-outer')].at(-1).__session_magics.text().includes(text)",
            arg=re.sub(r"\x1b\[[\d;]*m", "", text.split("\n")[0]),
        )

    def player(self, events: list[list[Any]], settings: dict[str, Any] | None = None) -> None:
        """Show a recording, and wait until it is there."""
        self.page.evaluate(
            "async ([events, settings]) => { window.shown = show(await play.playerModel(events, settings)); }",
            [events, settings or {}],
        )
        self.page.wait_for_function(
            "() => [...document.querySelectorAll('.sm-outer')].at(-1).__session_magics.playback"
        )

    def sent(self, kind: str) -> list[dict[str, Any]]:
        """The messages of one kind that the view has sent, without its name."""
        sent = self.page.evaluate("() => shown.model.sent.map(({ view, ...rest }) => rest)")
        return [message for message in sent if message["t"] == kind]

    def focused(self) -> str:
        """What the element with the keyboard is called."""
        return str(
            self.page.evaluate(
                "() => { const at = document.activeElement; return at.ariaLabel || at.textContent.trim() || at.tagName; }"
            )
        )

    def walk(self, key: str, steps: int) -> list[str]:
        """Press a key so often; what has the keyboard after each."""
        names = []
        for _ in range(steps):
            self.page.keyboard.press(key)
            names.append(self.focused())
        return names

    def column(self, key: str) -> list[str]:
        """The texts of a column, from the top."""
        return self.page.locator(f".sm-list tbody .sm-col-{key}").all_inner_texts()
