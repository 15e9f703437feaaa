"""Cells and widgets on each version of ipykernel that is laid out by tests/run, and on the one that is installed."""

from __future__ import annotations

import importlib.metadata
import os
import queue
import shlex
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from conftest import LiveKernel
from live import live_kernel, run_with
from page import LIMIT, Page, PageModel

pytest.importorskip("anywidget")
pytestmark = pytest.mark.kernel

HERE = Path(__file__).parent
INSTALLED = importlib.metadata.version("ipykernel")
LISTED = [line for line in (HERE / "ipykernels.txt").read_text().split() if line[0].isdigit()]
KEYS = 20
BLOCKING = {
    "cell": "%%sh_session\n{until}",
    "wait": "%session wait gate",
    "tail": "%session tail gate -f",
    "stop": "%session stop gate --grace 60",
    "python": "import os, time\nwhile not os.path.exists({gate!r}): time.sleep(0.02)",
}
"""Cells that end once there is a file; of those that name a session, it runs till then and ignores TERM."""


@pytest.fixture(scope="module", params=dict.fromkeys([*LISTED, INSTALLED]))
def live(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveKernel]:
    """A kernel of one version, which loads the extension while it starts, as a person's configuration has it."""
    place = HERE.parent / ".venv" / "kernels" / request.param
    profile = tmp_path_factory.mktemp("ipython") / "profile_default"
    profile.mkdir()
    (profile / "ipython_kernel_config.py").write_text("c.InteractiveShellApp.extensions = ['session_magics']\n")
    env = {"IPYTHONDIR": str(profile.parent)}
    if request.param != INSTALLED:
        if not place.is_dir():
            pytest.skip(f"ipykernel {request.param} is not there: tests/run puts it into {place}")
        env["PYTHONPATH"] = os.pathsep.join([str(place), *filter(None, [os.environ.get("PYTHONPATH")])])
    with live_kernel(env) as live:
        assert live.run("import ipykernel; print(ipykernel.__version__)").text == f"{request.param}\n"
        assert live.run(f"%run {HERE}/unhurried.py").status == "ok"
        yield live


@pytest.fixture(scope="module")
def page(live: LiveKernel) -> Page:
    """A page that shows a terminal without echo in which ``cat`` runs, with one view.

    Echo and output of the same terminal may come in pieces, each within the other.
    """
    page = Page(live.cells.client)
    page.execute("%session start --wait-for ready cat -- sh -c 'stty -echo; echo ready; exec cat'")
    page.until(lambda: page.models)
    page.sync(page.models[0])
    page.until(lambda: page.models[0].position >= 0)
    return page


def type_line(page: Page, model: PageModel, line: str) -> None:
    """Type a line, and wait until the terminal shows it: at once, and once."""
    before = model.data
    page.send(model, {"t": "in", "view": "v", "d": f"{line}\n"})
    page.until(lambda: len(model.data) >= len(before) + len(line) + 2)  # a cell that blocks never ends by itself
    assert model.data == before + f"{line}\r\n".encode()


def test_a_cell_is_what_it_is_everywhere(live: LiveKernel) -> None:
    assert live.run("%%sh_session\necho hello; cd /").text == "hello\n"
    failed = live.run("%%sh_session\npwd; (exit 3)")
    assert (failed.text, "status 3" in failed.error) == ("/\n", True)
    asked = live.run("%%sh_session\nread -p 'Name? ' name; echo \"<$name>\"", stdin=["Ada"])
    assert asked.record.asked == [("Name? ", False)]
    assert asked.text.endswith("<Ada>\n")
    stopped = run_with(live, "%%sh_session\necho go; sleep 600", ("go", lambda: live.cells.interrupt(False)))
    assert "interrupted" in stopped.error
    background = live.run("%%sh_session later --bg\nsleep 0.1; echo done")
    assert background.status == "ok"
    waited = live.run("%session wait later done --timeout 25")
    assert (waited.status, live.run("%session stop later").status) == ("ok", "ok")


@pytest.mark.parametrize("blocking", BLOCKING)
def test_keys_arrive_while_a_cell_runs(live: LiveKernel, page: Page, tmp_path: Path, blocking: str) -> None:
    if blocking == "python" and not has_subshells(live):
        pytest.skip("this version has no subshells: keys wait for the end of cells that are not ours")
    model, gate = page.models[0], tmp_path / "gate"
    until = f"trap '' TERM; echo ready; until [ -e {shlex.quote(str(gate))} ]; do sleep 0.02; done"
    live.run(f"seen = []\ngate = %session start gate --wait-for ready -- sh -c {shlex.quote(until)}")
    page.statuses.clear()
    cell = page.execute(BLOCKING[blocking].format(until=until, gate=str(gate)))
    later: list[str] = []
    for number in range(KEYS):
        if number % 5 == 0:
            later.append(page.execute(f"seen.append({number})"))
        type_line(page, model, f"key {number}")
    page.until(lambda: page.statuses[-1] == ("busy", cell))
    assert ("idle", cell) not in page.statuses
    gate.touch()
    page.until(lambda: ("idle", later[-1]) in page.statuses)
    ends = [cause for state, cause in page.statuses if state == "idle" and cause in (cell, *later)]
    assert ends == [cell, *later]
    assert live.run("print(seen)").text == f"{list(range(0, KEYS, 5))}\n"
    type_line(page, model, "after")
    live.run("%session stop gate\n%session remove gate")


def test_all_at_once_is_handled_once_and_in_order(live: LiveKernel, page: Page) -> None:
    model = page.models[0]
    live.run("seen = []")
    page.statuses.clear()
    before = len(model.data)
    for number in range(KEYS):
        page.execute("%%sh_session\n:")
        page.send(model, {"t": "in", "view": "v", "d": f"at {number}\n"})
        last = page.execute(f"seen.append({number})")
        page.send(model, {"t": "in", "view": "v", "d": f"by {number}\n"})
    lines = [f"{word} {number}" for number in range(KEYS) for word in ("at", "by")]
    page.until(lambda: ("idle", last) in page.statuses and model.data.count(b"\n", before) >= len(lines))
    type_line(page, model, "after")
    shown = model.data[before:].decode().split("\r\n")
    assert shown == [*lines, "after", ""]
    assert live.run("print(seen)").text == f"{list(range(KEYS))}\n"


def test_what_the_kernel_has_taken_before_a_magic_waits_is_handled_too(live: LiveKernel, page: Page) -> None:
    if has_subshells(live):
        pytest.skip("this version takes messages in a thread of its own")
    live.run("gate = %session start gate -- cat\nstream = get_ipython().kernel.shell_stream")
    page.statuses.clear()
    page.execute("while not stream.socket.poll(10): pass\nstream.flush()\n%session wait gate")
    page.until(lambda: "busy" in dict(page.statuses))
    later = page.execute("1")
    type_line(page, page.models[0], "early")
    live.cells.manager.interrupt_kernel()
    page.until(lambda: ("idle", later) in page.statuses)
    live.run("%session stop gate --now\n%session remove gate")


def test_what_is_asked_about_a_cell_of_ours_does_not_wait_for_one_that_runs(
    live: LiveKernel, page: Page, tmp_path: Path
) -> None:
    client, gate = live.cells.client, tmp_path / "gate"
    (tmp_path / "first_file").touch()
    live.run(f"%%sh_session\ncd {shlex.quote(str(tmp_path))}; greet() {{ :; }}")
    complete(live, "%%sh_session\n")  # what it has is remembered for while it is busy
    page.statuses.clear()
    cell = page.execute("%%sh_session\nuntil [ -e gate ]; do sleep 0.02; done; cd /")
    page.until(lambda: ("busy", cell) in page.statuses)
    later = client.execute("import os")
    assert complete(live, "%%sh_session\ncat first_")["matches"] == ["first_file"]
    assert complete(live, "%%sh_session\ngree")["matches"] == ["greet"]
    assert complete(live, "%session sta")["matches"] == ["start"]
    assert replied(live, client.inspect("%%sh_session\nexport", 16))["found"]
    assert replied(live, client.is_complete("%%sh_session\nfor x in 1; do"))["status"] == "incomplete"
    python = [client.complete("os.getcw"), client.inspect("os"), client.is_complete("if 1:")]
    last = client.complete("%%sh_session\ngree")
    assert client.get_shell_msg(timeout=LIMIT)["parent_header"]["msg_id"] == last
    page.until(lambda: ("idle", last) in page.statuses and page.statuses[-1] == ("busy", cell))
    assert not {("idle", cell), *(("busy", one) for one in (later, *python))} & set(page.statuses)
    gate.touch()
    replies = [client.get_shell_msg(timeout=LIMIT) for _ in (cell, later, *python)]
    assert [one["parent_header"]["msg_id"] for one in replies] == [cell, later, *python]
    assert [one.removeprefix("os.") for one in replies[2]["content"]["matches"]] == ["getcwd", "getcwdb"]
    page.until(lambda: ("idle", python[-1]) in page.statuses)
    with pytest.raises(queue.Empty):
        client.get_shell_msg(timeout=0.05)


def complete(live: LiveKernel, cell: str) -> Mapping[str, Any]:
    """The completions at the end of a cell."""
    return replied(live, live.cells.client.complete(cell, len(cell)))


def replied(live: LiveKernel, request: str) -> Mapping[str, Any]:
    """The content of the next reply, which must be that to the request."""
    reply = live.cells.client.get_shell_msg(timeout=LIMIT)
    assert reply["parent_header"]["msg_id"] == request
    content: Mapping[str, Any] = reply["content"]
    return content


def has_subshells(live: LiveKernel) -> bool:
    """Whether the kernel can handle messages in threads of their own."""
    return live.run("print(hasattr(get_ipython().kernel, 'shell_channel_thread'))").text == "True\n"


def test_an_interrupted_wait_loses_nothing(live: LiveKernel, page: Page) -> None:
    code = "print('go', flush=True)\n%session wait cat"
    outcome = run_with(live, code, ("go", lambda: (time.sleep(0.3), live.cells.interrupt(False))))
    assert "KeyboardInterrupt" in outcome.error
    type_line(page, page.models[0], "between cells")
    assert live.run("print('goes on')").text == "goes on\n"
