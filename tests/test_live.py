from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import LiveKernel
from live import live_kernel
from page import Page
from session_magics import Registry

pytest.importorskip("anywidget")
pytestmark = pytest.mark.kernel

STEPS = "for n in 1 2 3; do echo step $n; sleep 0.3; done"
STEPS_TEXT = "step 1\nstep 2\nstep 3\n"
WIDGETS = "import sys; print([name for name in ('anywidget', 'ipywidgets') if name in sys.modules])"


@pytest.fixture(scope="module")
def plain(client_loop: None) -> Iterator[LiveKernel]:
    """A kernel of which nobody has asked for a terminal yet."""
    with live_kernel() as live:
        yield live


def shown(kernel: LiveKernel, code: str, **step: object) -> tuple[bool, str]:
    """Whether a cell has only streams for outputs, and its visible text."""
    outcome = kernel.run(code, **step)
    return not any(output["display"] for output in outcome.record.outputs), outcome.text


def test_a_quick_cell_is_text_and_imports_no_widgets(plain: LiveKernel) -> None:
    code = "from session_magics.magics import cells; print(cells.PATIENCE); cells.PATIENCE = 60.0"
    patience = plain.run(code).text  # the shell may take long to start
    assert shown(plain, "%%sh_session\necho quick") == (True, "quick\n")
    assert plain.run(WIDGETS).text == "[]\n"
    plain.run(f"cells.PATIENCE = {patience}")


@pytest.mark.parametrize(
    ("code", "allow_stdin"),
    [
        (f"%%sh_session\n{STEPS}", False),
        (f"%%capture captured\nget_ipython().run_cell_magic('sh_session', '', '{STEPS}')", True),
        (f"%config SessionMagics.display = 'text'\nget_ipython().run_cell_magic('sh_session', '', '{STEPS}')", True),
    ],
    ids=["nobody", "capture", "config"],
)
def test_a_longer_cell_stays_text_where_no_terminal_is_wanted(plain: LiveKernel, code: str, allow_stdin: bool) -> None:
    only_text, text = shown(plain, code, allow_stdin=allow_stdin)
    plain.run("%config SessionMagics.display = 'auto'")
    assert only_text
    if "capture" in code:
        text = plain.run("print(captured.stdout, end='')").text
    assert text == STEPS_TEXT
    assert plain.run(WIDGETS).text == "[]\n"


def test_a_longer_cell_stays_text_where_no_page_answers(kernel: LiveKernel) -> None:
    assert shown(kernel, f"%%sh_session\n{STEPS}") == (True, STEPS_TEXT)


def test_a_page_that_answers_gets_a_terminal_and_text_in_the_end(kernel: LiveKernel) -> None:
    kernel.run("%%sh_session\n:")
    page = Page(kernel.cells.client)
    cell = page.execute("%%sh_session --size 30x90\necho before; read word; echo after $word; (exit 3)")
    page.until(lambda: page.models)
    model = page.models[0]
    page.sync(model)
    page.until(lambda: "display_data" in [kind for kind, _ in page.outputs])
    page.until(lambda: b"before" in model.data)
    page.send(model, {"t": "in", "view": "v", "d": "typed\r"})
    page.until(lambda: ("idle", cell) in page.statuses)
    [(_, notice), (_, text)] = page.outputs
    assert (notice["name"], text["name"]) == ("stderr", "stdout")
    assert "--size had no effect" in notice["text"]
    assert text["text"] == "before\ntyped\nafter typed\n"


def test_a_cell_can_be_a_terminal_from_its_first_byte_on(kernel: LiveKernel) -> None:
    kernel.run("%config SessionMagics.display = 'terminal'")
    page = Page(kernel.cells.client)
    page.execute("%%sh_session\necho well; read word")
    page.until(lambda: page.models)
    page.sync(page.models[0])
    page.until(lambda: b"well" in page.models[0].data)
    page.send(page.models[0], {"t": "in", "view": "v", "d": "on\r"})
    page.until(lambda: "".join(content.get("text", "") for _, content in page.outputs) == "well\non\n")


def test_the_age_in_a_cells_terminal_is_that_of_its_command(kernel: LiveKernel, root: Path) -> None:
    kernel.run("%%sh_session\n:")
    [shell] = Registry(root).infos()
    page = Page(kernel.cells.client)
    before = time.time()
    page.execute("%%sh_session\nread word")
    page.until(lambda: page.models)
    facts = page.models[0].state["facts"]
    assert facts["command"] == "read word" and facts["since"] >= before > shell.created
    page.send(page.models[0], {"t": "in", "view": "v", "d": "on\r"})
    page.until(lambda: page.statuses[-1][0] == "idle")


def test_a_silent_command_gets_a_terminal_too_and_can_be_interrupted_there(kernel: LiveKernel) -> None:
    kernel.run("%%sh_session\n:")
    page = Page(kernel.cells.client)
    cell = page.execute("%%sh_session\nsleep 600")
    page.until(lambda: page.models)
    page.sync(page.models[0])
    page.until(lambda: [kind for kind, _ in page.outputs] == ["display_data"])
    page.send(page.models[0], {"t": "interrupt", "view": "v"})
    page.until(lambda: ("idle", cell) in page.statuses)
    assert [content["text"] for _, content in page.outputs] == ["\n"]  # bash's own
