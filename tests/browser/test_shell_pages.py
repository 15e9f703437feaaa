"""A notebook of the shell kernel in JupyterLab: what stands in its cells is shell, and all that the magic does works."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pictures
import pytest
from lab import PANEL, Lab
from playwright.sync_api import expect
from servers import Server, write_notebook

from session_magics.kernel import specs

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.fixture
def opened_shell(server: Server, desk: Any) -> Iterator[Callable[[Sequence[str]], Lab]]:
    """Open a notebook with these cells in a bash kernel of its own."""
    labs: list[Lab] = []
    specs.install(server.folder.parent / "share" / "kernels", ["session-bash"])

    def open_notebook(cells: Sequence[str]) -> Lab:
        path = server.folder / f"shell{len(labs)}.ipynb"
        write_notebook(path, cells, "session-bash")
        labs.append(Lab(desk.page("lab"), server, path))
        return labs[-1]

    yield open_notebook
    for lab in labs:
        pictures.take(lab.page, "shell-kernel-end")
        lab.kernel("shutdown")
        lab.close()
    desk.clear()


def test_a_shell_notebook_is_at_home_in_the_page(opened_shell: Callable[[Sequence[str]], Lab]) -> None:
    lab = opened_shell(
        [
            "# a comment\ncd /tmp\ngreet() {\n  echo \"hello ${1:-you}\"\n}\nfor one in 1 2; do greet $one; done",
            "for n in 1 2 3 4; do echo step $n; sleep 0.3; done; read go; greet $go",
            "sleep 600",
            "%session start web --wait-for Serving -- python3 -u -m http.server 0\ngreet below",
            "%session",
            "cd /us",
        ]
    )  # fmt: skip
    kinds = lab.page.evaluate(f"() => {PANEL}.content.widgets.map((cell) => cell.model.mimeType)")
    assert set(kinds) == {"text/x-sh"}
    lab.run(0)
    lab.wait_output(0, "hello 2")
    lab.page.locator(".jp-CodeCell .cm-content").nth(5).click()
    lab.page.keyboard.press("End")
    lab.page.keyboard.press("Tab")
    expect(lab.page.locator(".jp-Completer-item")).to_have_count(1)  # and not the cell's other word, cd
    lab.page.keyboard.press("Tab")
    expect(lab.page.locator(".jp-CodeCell .cm-content").nth(5)).to_have_text("cd /usr/")
    lab.start(1)
    lab.wait_text("step 4")
    lab.wait_bar("badge", "waiting for input")
    pictures.take(lab.page, "shell-kernel-live")
    lab.type("Ada\n")
    lab.wait_ran(1)
    lab.wait_output(1, "hello Ada")
    assert "application/vnd.jupyter.widget-view+json" not in str(lab.outputs(1))
    lab.start(2)
    lab.wait_running(2)
    lab.wait_bar("badge", "running")
    lab.page.evaluate("async () => { await window.jupyterapp.commands.execute('notebook:interrupt-kernel'); }")
    lab.wait_output(2, "CellInterrupted")
    lab.run(3)
    lab.wait_output(3, "hello below")
    lab.wait_text("Serving HTTP")
    lab.run(4)
    lab.page.locator(".sm-list").get_by_text("web", exact=True).first.wait_for()
    pictures.take(lab.page, "shell-kernel-session")
