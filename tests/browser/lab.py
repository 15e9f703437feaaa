"""Driving a notebook in JupyterLab or Notebook 7: a page, the cells of the notebook, the terminals in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, TimeoutError, expect
from servers import Server

WAIT_MS = 60_000
"""Milliseconds until a test gives up waiting for what happens in a moment on a machine without other work."""
OPEN_MS = 120_000
"""The same for a page to be loaded."""

VIEWS = "[...document.querySelectorAll('.sm-outer')].map((one) => one.__session_magics).filter((one) => one?.el.isConnected)"
"""The terminals of a page, from the top."""
PANEL = "window.jupyterapp.shell.currentWidget"
READY = """(name) => {
  const panel = window.jupyterapp?.shell.currentWidget, session = panel?.context?.sessionContext;
  return panel?.context?.path === name && session?.isReady && session.session?.kernel?.status === 'idle' &&
    panel.content.widgets.length && panel.isVisible;
}"""
BOTH = pytest.mark.parametrize("frontend", ["lab", "notebook"])
"""For tests of what JupyterLab and Notebook 7 may do differently."""


class Lab:
    """One page that shows one notebook."""

    def __init__(self, page: Page, server: Server, path: Path, frontend: str = "lab") -> None:
        self.page, self.server, self.path, self.frontend = page, server, path, frontend
        self.open()

    def open(self) -> None:
        """Open the notebook, in the JupyterLab that the page has if it has one."""
        if self.frontend == "lab" and self.page.evaluate("() => Boolean(window.jupyterapp)"):
            self.page.evaluate(
                "async (path) => { await window.jupyterapp.commands.execute('docmanager:open', { path }); }",
                self.path.name,
            )
            self._ready()
        else:
            self.reload()

    def reload(self) -> None:
        """Load the page anew."""
        place = f"lab/tree/{self.path.name}?reset" if self.frontend == "lab" else f"notebooks/{self.path.name}"
        self.page.goto(f"{self.server.address}/{place}")
        self._ready()

    def _ready(self) -> None:
        self.page.wait_for_function(READY, arg=self.path.name, timeout=OPEN_MS)

    def second_tab(self) -> Lab:
        """The same notebook in another page of the browser."""
        return Lab(self.page.context.new_page(), self.server, self.path, self.frontend)

    def close(self) -> None:
        """Close the notebook; its kernel goes on."""
        self.page.evaluate(f"() => {{ if ({PANEL}?.context) {PANEL}.dispose(); }}")

    # ---- cells

    def start(self, cell: int) -> None:
        """Begin to run a cell.

        The notebook must not have the keyboard then, nor be given it: it would take it some time later, once it has
        scrolled, and from the terminal that a test types into by then.
        """
        self.page.evaluate(
            f"""(i) => {{ {PANEL}.content.activeCellIndex = i;
                 if ({PANEL}.node.contains(document.activeElement)) document.activeElement.blur();
                 window.jupyterapp.commands.execute('notebook:run-cell', {{ activate: false }}); }}""",
            cell,
        )

    def run(self, cell: int) -> None:
        """Run a cell to its end."""
        self.start(cell)
        self.wait_ran(cell)

    def wait_ran(self, cell: int) -> None:
        """Wait for the end of a cell that was started."""
        self.page.wait_for_function(
            f"""(i) => {{ const {{ model }} = {PANEL}.content.widgets[i];
                 return model.executionCount !== null && model.executionState !== 'running'; }}""",
            arg=cell,
            timeout=WAIT_MS,
        )

    def running(self, cell: int) -> bool:
        """Whether a cell runs, as its prompt shows."""
        return bool(self.page.evaluate(f"(i) => {PANEL}.content.widgets[i].model.executionState === 'running'", cell))

    def wait_running(self, cell: int) -> None:
        """Wait until a cell that was started runs."""
        self.page.wait_for_function(
            f"(i) => {PANEL}.content.widgets[i].model.executionState === 'running'", arg=cell, timeout=WAIT_MS
        )

    def outputs(self, cell: int) -> list[dict[str, Any]]:
        """The outputs of a cell as they would be saved."""
        return list(self.page.evaluate(f"(i) => {PANEL}.content.widgets[i].model.toJSON().outputs", cell))

    def output_text(self, cell: int) -> str:
        """The text of a cell whose outputs are streams alone."""
        outputs = self.outputs(cell)
        assert {output["output_type"] for output in outputs} <= {"stream"}, outputs
        return "".join("".join(output["text"]) for output in outputs)

    def wait_output(self, cell: int, wanted: str) -> None:
        """Wait until what a cell would save contains a text."""
        self.page.wait_for_function(
            f"([i, wanted]) => JSON.stringify({PANEL}.content.widgets[i].model.toJSON().outputs).includes(wanted)",
            arg=[cell, wanted],
            timeout=WAIT_MS,
        )

    def wait_table(self, condition: str) -> None:
        """Wait for a JavaScript condition on the first table, named ``list``, which is renewed only while it is in sight.

        What is above it may grow and move it away, so it is brought there with each look.
        """
        self.page.wait_for_function(
            f"""() => {{ const list = document.querySelector('.sm-list');
                 list?.scrollIntoView({{ block: 'nearest' }}); return list && ({condition}); }}""",
            timeout=WAIT_MS,
        )

    def save(self) -> dict[str, Any]:
        """Save, and read what is on disk."""
        self.page.evaluate("async () => { await window.jupyterapp.commands.execute('docmanager:save'); }")
        return dict(json.loads(self.path.read_text()))

    def kernel(self, action: str) -> None:
        """Have the kernel do something: "restart", "shutdown", "interrupt"."""
        self.page.evaluate(
            f"async (action) => {{ await {PANEL}.context.sessionContext.session.kernel[action](); }}", action
        )

    def execute(self, code: str) -> None:
        """Run code in the kernel beside the cells."""
        self.page.evaluate(
            f"""async (code) => {{ const {{ kernel }} = {PANEL}.context.sessionContext.session;
                 await kernel.requestExecute({{ code, stop_on_error: false }}).done; }}""",
            code,
        )

    # ---- terminals, counted from the top

    def text(self, terminal: int = 0) -> str:
        """All text of a terminal."""
        return str(self.page.evaluate(f"(n) => {VIEWS}[n]?.text() ?? ''", terminal))

    def wait_fitted(self, terminal: int = 0) -> None:
        """Wait until the session has the size of a terminal: a program that is told of it loses keys of that moment."""
        self.wait_view(
            """(() => { const { owner, size } = view.model.get('facts'), fit = view.fit.proposeDimensions();
                 return owner === view.id && fit.rows === size[0] && fit.cols === size[1] &&
                   view.term.rows === size[0] && view.term.cols === size[1]; })()""",
            terminal=terminal,
        )

    def wait_text(self, wanted: str, terminal: int = 0, timeout: int = WAIT_MS) -> None:
        """Wait until a terminal shows a text."""
        self.wait_view("view.text().includes(wanted)", wanted, terminal, timeout=timeout)

    def wait_line(self, wanted: str, terminal: int = 0) -> None:
        """Wait until a terminal ends with a text and its cursor stands at the begin of the next line."""
        self.wait_view("view.text().endsWith(wanted) && view.term.buffer.active.cursorX === 0", wanted, terminal)

    def wait_view(self, condition: str, wanted: object = None, terminal: int = 0, timeout: int = WAIT_MS) -> Any:
        """Wait for a JavaScript condition on a terminal, named ``view``; ``wanted`` is handed to it. Its value then."""
        try:
            return self.page.wait_for_function(
                f"([n, wanted]) => {{ const view = {VIEWS}[n]; return view && ({condition}); }}",
                arg=[terminal, wanted],
                timeout=timeout,
            ).json_value()
        except TimeoutError:
            focused = self.page.evaluate("() => document.activeElement?.className")
            shown = self.text(terminal)[-3000:]
            raise AssertionError(f"not {condition} with {wanted!r} (focus: {focused}): {shown!r}") from None

    def view(self, expression: str, terminal: int = 0) -> Any:
        """The value of a JavaScript expression on a terminal, named ``view``."""
        return self.page.evaluate(f"(n) => {{ const view = {VIEWS}[n]; return {expression}; }}", terminal)

    def focus(self, terminal: int = 0) -> None:
        """Give the keyboard to a terminal, once it is there."""
        self.wait_view("true", terminal=terminal)
        self.view("view.term.focus()", terminal)

    def type(self, text: str, terminal: int = 0) -> None:
        """Type into a terminal by the keyboard."""
        self.focus(terminal)
        self.page.keyboard.type(text)

    def press(self, action: str, terminal: int = 0) -> None:
        """Press one of the title bar's buttons."""
        self.page.locator(f".sm button[data-action={action}]").nth(terminal).click()

    def bar(self, part: str, terminal: int = 0) -> str:
        """The text of a part of the title bar."""
        return str(self.page.locator(f".sm-bar .sm-{part}").nth(terminal).inner_text())

    def wait_bar(self, part: str, wanted: str, terminal: int = 0, timeout: int = WAIT_MS) -> None:
        """Wait until a part of the title bar has a text."""
        self.page.wait_for_function(
            "([n, part, wanted]) => document.querySelectorAll(`.sm-bar .sm-${part}`)[n]?.textContent.includes(wanted)",
            arg=[terminal, part, wanted],
            timeout=timeout,
        )

    def wait_count(self, count: int) -> None:
        """Wait until there are so many terminals."""
        expect(self.page.locator(".sm")).to_have_count(count)
