"""One server, one browser, one JupyterLab and few kernels for all browser tests; each test has its own notebook.

A notebook that ``opened`` opens runs in a kernel that other tests have used, after all their sessions are gone;
``opened_alone`` starts a kernel for it, for tests that restart or end theirs. After a test that failed, page and
kernel are replaced.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

import session_magics

if find_spec("playwright") is None or find_spec("jupyterlab") is None or find_spec("notebook") is None:
    collect_ignore_glob = ["test_*.py"]  # the group browser is not installed
else:
    import pictures
    from lab import WAIT_MS, Lab
    from play import Play
    from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
    from servers import LOAD, Server, serve, write_notebook

PATIENT = "import session_magics.display.live as live; live.ANSWER_LIMIT = 60.0"
"""A page that is slow to show a terminal would have a question put beside it."""
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-renderer-backgrounding"]
SIZE = {"width": 1300, "height": 1000}
IDLE_LIMIT = 20.0
"""Seconds for a kernel to come to rest once its sessions are gone."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(f"pictures: {pictures.directory()}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report


FAILED = pytest.StashKey[bool]()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium: the system's if there is one, else playwright's own."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    expect.set_options(timeout=WAIT_MS)  # its own five seconds are few on a busy machine
    with sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=program, args=FLAGS)
        except Exception as error:
            pytest.skip(f"no browser: {error}")
        yield started
        started.close()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server, with the extension of the front end, which an editable installation does not install."""
    folder = tmp_path_factory.mktemp("jupyter")
    extensions = folder / "share" / "labextensions"
    extensions.mkdir(parents=True)
    (extensions / "session-magics").symlink_to(Path(session_magics.__file__).parent / "labextension")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(folder / "share"))
        with serve(folder) as running:
            yield running


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page of a browser that knows nothing yet."""
    context = browser.new_context(viewport=SIZE)  # type: ignore[arg-type]
    context.set_default_timeout(WAIT_MS)
    yield context.new_page()
    context.close()


@pytest.fixture
def play(page: Page) -> Play:
    """A page without a kernel, which shows nothing yet."""
    return Play(page)


class Desk:
    """The pages and the kernel that tests share, made when they are needed."""

    def __init__(self, browser: Browser, server: Server) -> None:
        self._browser, self._server = browser, server
        self._contexts: dict[str, BrowserContext] = {}
        self._kernel = ""
        self.loaded: set[str] = set()
        """Kernels that have loaded the extension."""

    def page(self, frontend: str) -> Page:
        """The page of a front end."""
        context = self._contexts.get(frontend)
        if context is None:
            context = self._contexts[frontend] = self._browser.new_context(viewport=SIZE)  # type: ignore[arg-type]
            context.set_default_timeout(WAIT_MS)
            context.grant_permissions(["clipboard-read", "clipboard-write"])
        return context.pages[0] if context.pages else context.new_page()

    def kernel(self) -> str:
        """A kernel that runs nothing."""
        self._kernel = self._kernel or self._server.start_kernel()
        return self._kernel

    def clear(self) -> None:
        """Have no sessions, one page for each front end, and a kernel at rest."""
        self._server.clean()
        if self._kernel and not self._server.settled(self._kernel, IDLE_LIMIT):
            self._renew_kernel()
        for context in self._contexts.values():
            for page in context.pages[1:]:
                page.close()

    def renew(self) -> None:
        """Throw everything away."""
        for context in self._contexts.values():
            context.close()
        self._contexts.clear()
        self._renew_kernel()

    def _renew_kernel(self) -> None:
        if self._kernel:
            self._server.end_kernel(self._kernel)
        self._kernel = ""


@pytest.fixture(scope="session")
def desk(browser: Browser, server: Server) -> Iterator[Desk]:
    """See Desk."""
    made = Desk(browser, server)
    yield made
    made.renew()
    server.clean()


@pytest.fixture
def frontend() -> str:
    """The front end of a test; parametrize it with BOTH where that matters."""
    return "lab"


def _opener(
    server: Server, desk: Desk, frontend: str, request: pytest.FixtureRequest, own: Callable[[], str]
) -> Iterator[Callable[[Sequence[str]], Lab]]:
    numbers, labs = itertools.count(), list[Lab]()

    def open_notebook(cells: Sequence[str]) -> Lab:
        name = "".join(one if one.isalnum() else "_" for one in request.node.name)
        path = server.folder / f"{name}{next(numbers)}.ipynb"
        kernel = own()
        write_notebook(path, [LOAD, *cells])
        server.bind(path, kernel)
        lab = Lab(desk.page(frontend), server, path, frontend)
        labs.append(lab)
        if kernel not in desk.loaded:
            lab.run(0)
            lab.execute(PATIENT)
            desk.loaded.add(kernel)
        return lab

    yield open_notebook
    if request.node.stash.get(FAILED, True):
        if labs:
            pictures.take(labs[-1].page, f"failed-{request.node.name}")
        server.clean()
        desk.renew()
        return
    for lab in labs:
        lab.close()
    desk.clear()


@pytest.fixture
def opened(
    server: Server, desk: Desk, frontend: str, request: pytest.FixtureRequest
) -> Iterator[Callable[[Sequence[str]], Lab]]:
    """Open a notebook with these cells in a shared kernel; before them is one that loads the extension, which the kernel has done."""
    yield from _opener(server, desk, frontend, request, desk.kernel)


@pytest.fixture
def opened_alone(
    server: Server, desk: Desk, frontend: str, request: pytest.FixtureRequest
) -> Iterator[Callable[[Sequence[str]], Lab]]:
    """The same with a kernel of its own, which is ended after the test."""
    kernels: list[str] = []

    def own() -> str:
        kernels.append(server.start_kernel())
        return kernels[-1]

    yield from _opener(server, desk, frontend, request, own)
    for kernel in kernels:
        server.end_kernel(kernel)
