"""The table of sessions in a real kernel: a widget where a page shows one, text elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import LiveKernel
from live import live_kernel
from page import Page, PageModel

pytest.importorskip("anywidget")
pytestmark = pytest.mark.kernel


@pytest.fixture(scope="module")
def shared(client_loop: None) -> Iterator[LiveKernel]:
    with live_kernel() as live:
        yield live


def listed(kernel: LiveKernel, page: Page) -> tuple[PageModel, dict[str, Any]]:
    """The model of a table that a cell has just displayed, and the bundle of its output."""
    page.execute("%session list")
    page.until(lambda: page.outputs and page.models)
    return page.models[-1], dict(page.outputs[-1][1]["data"])


def rows(model: PageModel) -> list[dict[str, Any]]:
    return next((one["rows"] for one in reversed(model.messages) if one["t"] == "rows"), [])


def test_a_page_gets_a_table_with_its_text_twin(shared: LiveKernel) -> None:
    shared.run("%session start web -- sh -c 'echo well; sleep 100'", allow_stdin=False)
    page = Page(shared.cells.client)
    model, data = listed(shared, page)
    assert "web" in data["text/plain"] and "NAME" in data["text/plain"]
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == model.comm_id
    assert model.state["kind"] == "table" and model.state["snapshot"] == data["text/plain"]
    page.send(model, {"t": "seen", "view": "v", "seen": True})
    page.until(lambda: [row["last"] for row in rows(model)] == ["well"])
    page.send(model, {"t": "stop", "view": "v", "id": rows(model)[0]["id"], "now": True})
    page.until(lambda: rows(model)[0]["state"] == "exited")
    shared.run("%session remove web", allow_stdin=False)


def test_a_terminal_opens_from_the_table_while_a_cell_runs(shared: LiveKernel, tmp_path: Path) -> None:
    over = tmp_path / "over"
    shared.run("%session start web -- sh -c 'echo well; read word; echo $word; sleep 100'", allow_stdin=False)
    page = Page(shared.cells.client)
    model, _ = listed(shared, page)
    page.send(model, {"t": "seen", "view": "v", "seen": True})
    page.until(lambda: rows(model))
    page.execute(f"import os, time\nwhile not os.path.exists({str(over)!r}): time.sleep(0.02)")
    page.send(model, {"t": "show", "view": "v", "id": rows(model)[0]["id"]})
    page.until(lambda: any(one["t"] == "shown" for one in model.messages))
    shown = next(one for one in model.messages if one["t"] == "shown")
    terminal = next(one for one in page.models if one.comm_id == shown["model"])
    page.sync(terminal)
    page.until(lambda: b"well" in terminal.data)
    page.send(terminal, {"t": "in", "view": "v", "d": "typed\r"})
    page.until(lambda: terminal.data.count(b"typed") == 2)
    over.touch()
    shared.run("%session stop web --now\n%session remove web", allow_stdin=False)


def test_text_where_none_is_wanted(shared: LiveKernel) -> None:
    page = Page(shared.cells.client)
    cell = page.execute("%config SessionMagics.display = 'text'\n%session list")
    page.until(lambda: ("idle", cell) in page.statuses)
    assert not page.models
    shared.run("%config SessionMagics.display = 'auto'")


def test_text_where_nobody_is(kernel: LiveKernel) -> None:
    outcome = kernel.run("%session list", allow_stdin=False)
    assert outcome.text == "no sessions\n"
    assert kernel.run("import sys; print('anywidget' in sys.modules)").text == "False\n"
