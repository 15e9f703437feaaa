"""The demo agent of the notebooks on a terminal of a test: how it is started, answered and left, and what it keeps."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from terminals import Terminal

AGENT = Path(__file__).parent.parent / "notebooks" / "demo_agent.py"
FAST = ("--speed", "0")
ID = "4f8a2c1e-0d63-4b9a-9c55-1f2e3d4c5b6a"
CREATE, EDIT, RUN = "Do you want to create", "Do you want to make this edit to", "Do you want to proceed?"
PLOTTED = "The plot is ready"
AT_REST = "? for shortcuts"

Start = Callable[..., Terminal]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts the agent in a directory of the test's own, which is also the home."""
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:

        def begin(*arguments: str, size: tuple[int, int] = (40, 90)) -> Terminal:
            command = (sys.executable, str(AGENT), *arguments)
            return stack.enter_context(Terminal(command, size, env={"HOME": str(tmp_path)}))

        yield begin


def kept(id: str) -> dict[str, object]:
    return dict(json.loads(Path(".demo-agent", f"{id}.json").read_text()))


def plain(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The agent without a terminal."""
    return subprocess.run(
        (sys.executable, str(AGENT), *arguments), stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


def answer_all(terminal: Terminal, key: str = "1") -> None:
    """Answer the three questions of the plot."""
    for question in (f"{CREATE} data.csv?", f"{CREATE} analysis.py?", RUN):
        terminal.until(question)
        terminal.type(key)


def leave(terminal: Terminal) -> None:
    terminal.until(AT_REST, gone="esc to interrupt")
    terminal.type("/exit\r")
    assert terminal.wait() == 0
    assert terminal.restored
    assert not terminal.switched()
