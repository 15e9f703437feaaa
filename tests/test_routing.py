from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import LiveKernel
from live import live_kernel
from page import LIMIT, Page, PageModel
from session_magics.display.busy import RESTATE_AFTER

pytest.importorskip("anywidget")
old = importlib.metadata.version("ipykernel").startswith("6.")
pytestmark = [pytest.mark.kernel, pytest.mark.skipif(old, reason="ipykernel 6 has no threads: see test_kernels.py")]

# Without echo, as echo and output of one terminal may come in pieces, each within the other.
CAT = "%session start --wait-for ready cat -- sh -c 'stty -echo; echo ready; exec cat'"
SUBSHELLS = "len(get_ipython().kernel.shell_channel_thread.manager.list_subshell())"


@pytest.fixture(scope="module")
def kernel(client_loop: None) -> Iterator[LiveKernel]:
    """One for all."""
    with live_kernel() as live:
        yield live


@pytest.fixture
def page(kernel: LiveKernel) -> Iterator[Page]:
    """The page of a kernel, which shows one terminal."""
    page = Page(kernel.cells.client)
    page.execute(CAT)
    page.until(lambda: page.models)
    page.sync(page.models[0])
    page.until(lambda: page.models[0].position >= 0)
    yield page
    kernel.run("%session remove --force cat")


Gate = tuple[str, Callable[[], None]]


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """Python for a cell that waits, and what ends its waiting."""
    path = tmp_path / "gate"
    yield f"import os, time\nwhile not os.path.exists({str(path)!r}): time.sleep(0.02)", path.touch
    path.touch()


def test_keys_arrive_while_a_cell_runs(page: Page, gate: Gate) -> None:
    model = page.models[0]
    cell = page.execute(gate[0])
    page.until(lambda: ("busy", cell) in page.statuses)
    for number in range(20):
        page.send(model, {"t": "in", "view": "v", "d": f"key {number}\n"})
        page.until(lambda: model.data.endswith(f"key {number}\r\n".encode()))  # noqa: B023
    assert ("idle", cell) not in page.statuses
    gate[1]()


def test_the_page_goes_on_showing_that_a_cell_runs(page: Page, gate: Gate) -> None:
    cell = page.execute(gate[0])
    page.until(lambda: ("busy", cell) in page.statuses)
    page.statuses.clear()
    nudge = page.send(page.models[0], {"t": "nudge"})
    page.until(lambda: ("idle", nudge) in page.statuses and page.statuses[-1] == ("busy", cell))
    gate[1]()
    page.until(lambda: ("idle", cell) in page.statuses)
    assert page.statuses[-1] == ("idle", cell)


def test_messages_are_no_cells_to_ipython(page: Page, kernel: LiveKernel) -> None:
    kernel.run("ran = []; get_ipython().events.register('pre_execute', lambda: ran.append(1))")
    for _ in range(5):
        page.send(page.models[0], {"t": "nudge"})
    page.send(page.models[0], {"t": "in", "view": "v", "d": "x\n"})
    page.until(lambda: b"x\r\n" in page.models[0].data)
    assert kernel.run("print(len(ran))").text == "1\n"


def test_cells_run_in_their_own_thread_as_before(page: Page, kernel: LiveKernel) -> None:
    assert kernel.run("import threading; print(threading.current_thread().name)").text == "MainThread\n"
    assert kernel.run("print('printed')").text == "printed\n"


def test_a_cell_that_runs_cells_is_busy_to_its_end(page: Page, gate: Gate) -> None:
    cell = page.execute(f"get_ipython().run_cell('1'); print('ran')\n{gate[0]}")
    page.until(lambda: any(content.get("text") == "ran\n" for _, content in page.outputs))
    page.statuses.clear()
    page.send(page.models[0], {"t": "nudge"})
    page.until(lambda: ("busy", cell) in page.statuses)
    gate[1]()


def test_the_thread_is_made_anew_when_a_page_deletes_it(page: Page, gate: Gate) -> None:
    client, model = page.client, page.models[0]

    def control(kind: str, content: dict[str, str]) -> dict[str, list[str]]:
        client.control_channel.send(client.session.msg(kind, content))
        return dict(client.get_control_msg(timeout=LIMIT)["content"])

    for subshell in control("list_subshell_request", {})["subshell_id"]:
        assert control("delete_subshell_request", {"subshell_id": subshell})["status"] == "ok"
    cell = page.execute(gate[0])
    page.until(lambda: ("busy", cell) in page.statuses)
    page.send(model, {"t": "in", "view": "v", "d": "key\n"})
    page.until(lambda: model.data == b"ready\r\nkey\r\n")
    assert ("idle", cell) not in page.statuses
    gate[1]()


def test_unloading_ends_the_thread_and_loading_again_makes_another(page: Page, kernel: LiveKernel) -> None:
    assert kernel.run(f"print({SUBSHELLS})").text == "1\n"
    for count in (2, 3):
        kernel.run("%unload_ext session_magics")
        page.send(page.models[0], {"t": "nudge"})
        assert kernel.run(f"print({SUBSHELLS})").text == "0\n"
        kernel.run("%load_ext session_magics")
        page.execute("%session show cat")
        page.until(lambda: len(page.models) == count)  # noqa: B023
        page.sync(page.models[-1])
    page.until(lambda: page.models[-1].position >= 0)
    assert kernel.run(f"print({SUBSHELLS})").text == "1\n"


def test_what_a_button_shows_leaves_the_kernel_idle(kernel: LiveKernel) -> None:
    page = Page(kernel.cells.client)
    made = kernel.run(
        "from comm import create_comm; from IPython.display import display\n"
        "button = create_comm(target_name='button')\n"
        "button.on_msg(lambda _: display(get_ipython().run_line_magic('session', 'start cat -- cat')))\n"
        "print(button.comm_id)"
    )
    page.send(PageModel(made.text.strip(), {}), {})
    page.until(lambda: page.models)
    page.sync(page.models[0])
    page.until(lambda: page.models[0].position >= 0)
    page.statuses.clear()
    nudge = page.send(page.models[0], {"t": "nudge"})
    page.until(lambda: ("idle", nudge) in page.statuses)
    restated = time.monotonic() + 5 * sum(RESTATE_AFTER)
    page.until(lambda: time.monotonic() > restated)
    assert page.statuses[-1][0] == "idle"
    kernel.run("%session remove --force cat")
