from __future__ import annotations

from collections.abc import Iterator

import pytest

from conftest import LiveKernel
from page import Page

pytest.importorskip("anywidget")
pytestmark = pytest.mark.kernel

CAT = "%session start -- cat cat"


@pytest.fixture
def page(kernel: LiveKernel) -> Iterator[Page]:
    """The page of a kernel, which shows one terminal."""
    page = Page(kernel.cells.client)
    page.execute(CAT)
    page.until(lambda: page.models)
    page.sync(page.models[0])
    page.until(lambda: page.models[0].position >= 0)
    yield page
    kernel.run("%session stop --all --now")


def test_keys_arrive_while_a_cell_runs(page: Page) -> None:
    model = page.models[0]
    cell = page.execute("import time; time.sleep(3)")
    page.until(lambda: ("busy", cell) in page.statuses)
    for number in range(20):
        page.send(model, {"t": "in", "view": "v", "d": f"key {number}\n"})
        page.until(lambda: f"key {number}\n".encode() * 2 in model.data.replace(b"\r", b""), 2.0)  # noqa: B023
    assert ("idle", cell) not in page.statuses


def test_the_page_goes_on_showing_that_a_cell_runs(page: Page) -> None:
    cell = page.execute("import time; time.sleep(1)")
    page.until(lambda: ("busy", cell) in page.statuses)
    page.statuses.clear()
    page.send(page.models[0], {"t": "nudge"})
    page.until(lambda: ("busy", cell) in page.statuses)
    assert page.statuses[-2][0] == "idle"
    page.until(lambda: ("idle", cell) in page.statuses)
    assert page.statuses[-1] == ("idle", cell)


def test_messages_are_no_cells_to_ipython(page: Page, kernel: LiveKernel) -> None:
    kernel.run("ran = []; get_ipython().events.register('pre_execute', lambda: ran.append(1))")
    for _ in range(5):
        page.send(page.models[0], {"t": "nudge"})
    page.send(page.models[0], {"t": "in", "view": "v", "d": "x\n"})
    page.until(lambda: b"x" in page.models[0].data)
    assert kernel.run("print(len(ran))").text == "1\n"


def test_cells_run_in_their_own_thread_as_before(page: Page, kernel: LiveKernel) -> None:
    assert kernel.run("import threading; print(threading.current_thread().name)").text == "MainThread\n"
    assert kernel.run("print('printed')").text == "printed\n"
