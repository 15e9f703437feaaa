"""A JupyterLab for all browser tests of a run, and a page for each."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("playwright") is None or find_spec("jupyterlab") is None:
    collect_ignore_glob = ["test_*.py"]  # the group browser is not installed
else:
    import lab as driver
    from playwright.sync_api import Browser, Page, sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SIZE = {"width": 1300, "height": 1000}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium: the system's if there is one, else playwright's own."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=program, args=FLAGS)
        except Exception as error:
            pytest.skip(f"no browser: {error}")
        yield started
        started.close()


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a JupyterLab."""
    folder = tmp_path_factory.mktemp("lab")
    with driver.server(folder) as address:
        driver.FOLDERS[address] = folder
        yield address


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of a browser that knows nothing yet."""
    context = browser.new_context(viewport=SIZE)  # type: ignore[arg-type]
    yield context.new_page()
    context.close()


@pytest.fixture
def opened(address: str, page: Page, request: pytest.FixtureRequest) -> Iterator[Callable[[Sequence[str]], driver.Lab]]:
    """Open a notebook with these cells, the first of which loads the extension and has run."""
    numbers = itertools.count()
    labs: list[driver.Lab] = []

    def open_notebook(cells: Sequence[str]) -> driver.Lab:
        path: Path = driver.FOLDERS[address] / f"{request.node.name}{next(numbers)}.ipynb"
        driver.notebook(path, ["%load_ext session_magics", *cells])
        lab = driver.Lab(page, address, path)
        lab.run(0)
        labs.append(lab)
        return lab

    yield open_notebook
    for lab in labs:
        lab.picture(request.node.name)
        lab.shut_down()
