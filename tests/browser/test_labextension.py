from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from lab import Lab

import session_magics

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]

Open = Callable[[Sequence[str]], Lab]


@pytest.fixture(scope="module", autouse=True)
def installed() -> Iterator[None]:
    """The extension where JupyterLab finds it, which an editable installation does not do."""
    place = Path(sys.prefix) / "share" / "jupyter" / "labextensions" / "session-magics"
    if place.exists():
        yield
        return
    shutil.copytree(Path(session_magics.__file__).parent / "labextension", place)
    yield
    shutil.rmtree(place)


def test_a_terminal_without_its_kernel_is_text(opened: Open) -> None:
    lab = opened(["%session start -- job sh -c 'echo hello; exit 3'"])
    lab.run(1)
    lab.page.wait_for_function(
        """() => JSON.stringify(window.jupyterapp.shell.currentWidget.content.widgets[1].model.toJSON().outputs)
             .includes('exited 3')"""
    )
    lab.save()
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.sessionContext.shutdown()")
    lab.open()
    lab.page.wait_for_selector(".jp-OutputArea-output pre:has-text('exited 3')")
    assert "hello" in lab.page.locator(".jp-OutputArea-output").first.inner_text()
    assert lab.page.locator("text=Error displaying widget").count() == 0


def test_a_terminal_becomes_text_when_its_kernel_restarts(opened: Open) -> None:
    lab = opened(["%session start -- job sh -c 'echo hello; exit 3'"])
    lab.run(1)
    lab.wait_bar("badge", "exited 3")
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.restart()")
    lab.page.wait_for_selector(".jp-OutputArea-output pre:has-text('hello')")
    assert lab.page.locator(".sm").count() == 0


def test_shell_cells_have_shell_colours(opened: Open) -> None:
    lab = opened(["%%sh_session\nif true; then echo $HOME; fi", "x = 1"])
    kinds = "() => window.jupyterapp.shell.currentWidget.content.widgets.map((one) => one.model.mimeType)"
    lab.page.wait_for_function(f"() => ({kinds})()[1] === 'text/x-sh'")
    assert lab.page.evaluate(kinds)[2] == "text/x-ipython"
