"""A front end besides JupyterLab and Notebook 7: voila."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pictures
import pytest
from lab import OPEN_MS, VIEWS
from playwright.sync_api import Browser, Page
from servers import LOAD, Server, write_notebook

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

SHOUT = """%session start -- shout sh -c 'while read line; do echo "got $line"; done'"""


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """A page of its own; sessions and kernels that it leads to are ended after it."""
    before = {kernel["id"] for kernel in server.call("GET", "api/kernels")}
    context = browser.new_context(viewport={"width": 1300, "height": 1000})
    context.set_default_timeout(OPEN_MS)
    yield context.new_page()
    context.close()
    server.clean()
    for kernel in server.call("GET", "api/kernels"):
        if kernel["id"] not in before:
            server.end_kernel(kernel["id"])


def shows(page: Page, text: str) -> None:
    """Wait until the first terminal of a page shows a text."""
    page.wait_for_function(f"(wanted) => {VIEWS}[0]?.text().includes(wanted)", arg=text, timeout=OPEN_MS)


def talk(page: Page) -> None:
    """Type into the first terminal and see the answer."""
    page.wait_for_selector(".sm-badge:has-text('waiting for input')", timeout=OPEN_MS)
    page.evaluate(f"() => {VIEWS}[0].term.focus()")
    page.keyboard.type("hello\n")
    shows(page, "got hello")


@pytest.mark.skipif(find_spec("voila") is None, reason="needs voila")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_voila_shows_a_terminal_that_takes_keys(server: Server, page: Page, theme: str) -> None:
    path = server.folder / "voila.ipynb"
    write_notebook(path, [LOAD, SHOUT, "%%sh_session\nprintf '\\033[35mcolour\\033[0m\\n'"])
    page.goto(f"{server.address}/voila/render/{path.name}?theme={theme}", timeout=OPEN_MS)
    talk(page)
    assert "colour" in page.locator("body").inner_text()
    assert page.locator("text=Error displaying widget").count() == 0
    pictures.take(page, f"voila-{theme}")
