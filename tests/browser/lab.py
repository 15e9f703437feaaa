"""Driving a real JupyterLab in a browser: its server, a page, the cells of a notebook, a terminal widget in it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from session_magics import Registry

START_LIMIT = 40.0
WAIT_MS = 30_000

FOLDERS: dict[str, Path] = {}
"""The folder that each server shows."""

READY = """() => {
  const at = window.jupyterapp?.shell.currentWidget;
  const session = at?.context?.sessionContext;
  return session?.isReady && session.session?.kernel?.status === 'idle';
}"""
VIEWS = "[...document.querySelectorAll('.sm-outer')].map((one) => one.__session_magics).filter((one) => one?.el.isConnected)"


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def server(folder: Path, application: str = "lab") -> Iterator[str]:
    """JupyterLab over a folder; gives its address."""
    port = free_port()
    command = [
        sys.executable, "-m", "jupyter", application, "--no-browser", "--allow-root", f"--port={port}",
        "--ServerApp.port_retries=0", "--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True",
        "--LabApp.expose_app_in_browser=True", f"--ServerApp.root_dir={folder}",
    ]  # fmt: skip
    home = folder / "home"
    settings = home / ".jupyter" / "lab" / "user-settings" / "@jupyterlab" / "apputils-extension"
    settings.mkdir(parents=True)
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false"}')
    env = dict(os.environ, HOME=str(home), SESSION_MAGICS_HOME=str(folder / "sessions"))
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder)
    try:
        address = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + START_LIMIT
        while True:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{address}/api").read()
                break
            assert process.poll() is None and time.monotonic() < deadline, (folder / "server.log").read_text()
            time.sleep(0.1)
        yield address
    finally:
        process.terminate()
        process.wait(20)


def notebook(path: Path, cells: Sequence[str]) -> None:
    """Write a notebook of code cells."""
    written = [
        {"cell_type": "code", "id": f"c{n}", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
        for n, source in enumerate(cells)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    content = {"cells": written, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(content))


class Lab:
    """One page that shows one notebook."""

    def __init__(self, page: Page, address: str, path: Path) -> None:
        self.page, self.address, self.path = page, address, path
        self.open()

    def open(self) -> None:
        """Open the notebook, or reload the page."""
        self.page.goto(f"{self.address}/lab/tree/{self.path.name}?reset")
        self.page.wait_for_function(READY, timeout=60_000)

    def start(self, cell: int) -> None:
        """Begin to run a cell."""
        self.page.evaluate(
            """(i) => { const at = window.jupyterapp.shell.currentWidget; at.content.activeCellIndex = i;
                 window.jupyterapp.commands.execute('notebook:run-cell'); }""",
            cell,
        )

    def run(self, cell: int) -> None:
        """Run a cell to its end."""
        self.start(cell)
        self.wait_ran(cell)

    def wait_ran(self, cell: int) -> None:
        """Wait for the end of a cell that was started."""
        self.page.wait_for_function(
            """(i) => { const cell = window.jupyterapp.shell.currentWidget.content.widgets[i];
                 return cell.model.executionCount !== null && cell.model.executionState !== 'running'; }""",
            arg=cell,
            timeout=WAIT_MS,
        )

    def outputs(self, cell: int) -> list[dict[str, Any]]:
        """The outputs of a cell as they would be saved."""
        return list(
            self.page.evaluate(
                "(i) => window.jupyterapp.shell.currentWidget.content.widgets[i].model.toJSON().outputs", cell
            )
        )

    def save(self) -> dict[str, Any]:
        """Save, and read what is on disk."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
        return dict(json.loads(self.path.read_text()))

    def theme(self, name: str) -> None:
        """Change the theme: "JupyterLab Light" or "JupyterLab Dark"."""
        self.page.evaluate("(t) => window.jupyterapp.commands.execute('apputils:change-theme', {theme: t})", name)
        self.page.wait_for_function(
            "(dark) => document.body.dataset.jpThemeLight === String(!dark)", arg="Dark" in name
        )

    def picture(self, name: str) -> None:
        """Keep a picture of the page where the environment asks for it."""
        if folder := os.environ.get("SCREENSHOTS"):
            self.page.screenshot(path=f"{folder}/{name}.png")

    def shut_down(self) -> None:
        """End the sessions and the kernel."""
        self.page.evaluate(
            "() => { window.jupyterapp.shell.currentWidget.context.sessionContext.shutdown(); return null; }"
        )
        registry = Registry(FOLDERS[self.address] / "sessions")
        registry.stop_all(now=True)
        for info in registry.infos():
            if not info.running and "@" not in info.name:
                registry.remove(info.name, force=True)

    def execute(self, code: str) -> None:
        """Run code in the kernel beside the cells."""
        self.page.evaluate(
            """async (code) => { const kernel = window.jupyterapp.shell.currentWidget.context.sessionContext.session.kernel;
                 await kernel.requestExecute({ code, stop_on_error: false }).done; }""",
            code,
        )

    # ---- terminals, counted from the top

    def text(self, terminal: int = 0) -> str:
        """All text of a terminal."""
        return str(self.page.evaluate(f"(n) => {VIEWS}[n]?.text() ?? ''", terminal))

    def wait_text(self, wanted: str, terminal: int = 0, timeout: int = WAIT_MS) -> None:
        """Wait until a terminal shows a text."""
        try:
            self.page.wait_for_function(
                f"([n, wanted]) => {VIEWS}[n]?.text().includes(wanted)", arg=[terminal, wanted], timeout=timeout
            )
        except Exception:
            raise AssertionError(f"{wanted!r} did not appear in {self.text(terminal)!r}") from None

    def focus(self, terminal: int = 0) -> None:
        """Give the keyboard to a terminal, once it is there."""
        self.page.wait_for_function(f"(n) => {VIEWS}[n]", arg=terminal, timeout=WAIT_MS)
        self.page.evaluate(f"(n) => {VIEWS}[n].term.focus()", terminal)

    def type(self, text: str, terminal: int = 0) -> None:
        """Type a line into a terminal by the keyboard."""
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
