"""A notebook server of an account, and its notebooks in a headless browser."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from accounts import Account

sys.path.insert(0, str(Path(__file__).parent.parent / "browser"))
from lab import OPEN_MS, PANEL, READY
from servers import free_port, wait_answers

RUN_MS = 300_000
"""Milliseconds for a whole notebook."""
RAN = f"""() => {PANEL}.context.sessionContext.session.kernel.status === 'idle' &&
  {PANEL}.content.widgets.every(({{ model }}) => model.type !== 'code' || model.executionCount !== null ||
    !model.sharedModel.getSource())"""
CLEAR_AND_RUN_ALL = """async () => {
  await window.jupyterapp.commands.execute('editmenu:clear-all');
  await window.jupyterapp.commands.execute('notebook:run-all-cells');
}"""


@dataclass(frozen=True)
class Desk:
    """JupyterLab as it opens for a user."""

    address: str
    page: Page

    def open(self, path: str) -> float:
        """Open a notebook by the address that Binder's badge has; the seconds until its kernel is ready."""
        began = time.monotonic()
        self.page.goto(f"{self.address}/lab/tree/{path}?reset")
        self.page.wait_for_function(READY, arg=path, timeout=OPEN_MS)
        return time.monotonic() - began

    def run_all(self) -> float:
        """Clear all outputs and run all cells; the seconds until the last has ended."""
        began = time.monotonic()
        self.page.evaluate(CLEAR_AND_RUN_ALL)
        self.page.wait_for_function(RAN, timeout=RUN_MS)
        return time.monotonic() - began

    def cells(self) -> list[dict[str, Any]]:
        """The cells as they would be saved."""
        return list(self.page.evaluate(f"() => {PANEL}.content.widgets.map(({{ model }}) => model.toJSON())"))

    def create(self, kernel: str) -> None:
        """Make a notebook for a kernel, as a click in the launcher does."""
        self.page.goto(f"{self.address}/lab?reset")
        self.page.wait_for_function("() => window.jupyterapp?.restored", timeout=OPEN_MS)
        self.page.evaluate(
            """async (kernelName) => { await window.jupyterapp.restored;
                 await window.jupyterapp.commands.execute('notebook:create-new', { kernelName }); }""",
            kernel,
        )
        path = self.page.evaluate(f"() => {PANEL}.context.path")
        self.page.wait_for_function(READY, arg=path, timeout=OPEN_MS)

    def type_cell(self, text: str) -> None:
        """Put a text into the first cell."""
        self.page.evaluate(f"(text) => {PANEL}.content.widgets[0].model.sharedModel.setSource(text)", text)


@contextlib.contextmanager
def desk(user: Account, command: str, path: str) -> Iterator[tuple[Desk, float]]:
    """Start JupyterLab by a command, as it stands, and open a browser; the seconds until the server answers come along.

    What the command does not say (no browser of its own, which port, no token) is in the user's configuration.
    """
    port = free_port()
    server = {"open_browser": False, "port": port, "port_retries": 0}
    settings = {
        "ServerApp": server,
        "IdentityProvider": {"token": ""},
        "LabApp": {"expose_app_in_browser": True},
    }
    user.write(user.home / ".jupyter/jupyter_server_config.json", json.dumps(settings))
    log, began = user.home.parent / "server.log", time.monotonic()
    with log.open("wb") as output:
        process = user.start(command, env={"PATH": path}, output=output)
    address = f"http://127.0.0.1:{port}"
    wait_answers(f"{address}/api", process, log)
    answered = time.monotonic() - began
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            yield Desk(address, browser.new_page(viewport={"width": 1300, "height": 1000})), answered
            browser.close()
    finally:
        process.terminate()
        process.wait()


def failures(cells: list[dict[str, Any]]) -> list[str]:
    """The errors of cells, but of those that are tagged to fail."""
    return [
        f"{output['ename']}: {output['evalue']}"
        for cell in cells
        for output in cell.get("outputs", [])
        if output["output_type"] == "error" and "raises-exception" not in cell["metadata"].get("tags", [])
    ]
