"""Kernels that several tests share, each with session names of its own; and front ends of a few lines."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

import leaks
from conftest import LiveKernel, Outcome

# Seconds for what comes after the reply to a cell, such as the output of a background command.
LATER = 30.0


@contextmanager
def live_kernel(env: Mapping[str, str] = MappingProxyType({}), target: str = "session") -> Iterator[LiveKernel]:
    """A kernel on a registry root of its own; at the end nothing that it started may be left."""
    root = Path(tempfile.mkdtemp(prefix="sm"))
    live = LiveKernel(root, env, target)
    try:
        live.start()
        yield live
    finally:
        live.stop()
        left = leaks.outlived(leaks.processes_of(root))
        found = [leaks.describe(process) for process in left]
        for process in left:
            leaks.kill(process)
        shutil.rmtree(root, ignore_errors=True)
    assert not found


def until(live: LiveKernel, condition: Callable[[], object], limit: float = LATER) -> None:
    """Let the kernel's messages come in, by cells that do nothing, until something holds."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        live.run("import time; time.sleep(0.05)")


def run_with(live: LiveKernel, code: str, *acts: tuple[str, Callable[[], object]], **step: object) -> Outcome:
    """Run a cell; as soon as its output has a text, do the action beside that text, one by one.

    Prompts count as ``‹Name? ›`` behind the output. Questions stay open until an action answers them.
    """
    cells, waiting = live.cells, list(acts)

    def then_act(handler: Callable[[object], None]) -> Callable[[object], None]:
        def handle(message: object) -> None:
            handler(message)
            seen = cells.current.text() + "".join(f"‹{prompt}›" for prompt, _ in cells.current.asked)
            while waiting and waiting[0][0] in seen:
                waiting.pop(0)[1]()

        return handle

    cells._iopub, cells._stdin = then_act(cells._iopub), then_act(cells._stdin)
    try:
        outcome = live.run(code, stdin=["⟪wait⟫"] * 9, **step)
    finally:
        del cells._iopub, cells._stdin
    assert not waiting, f"never seen: {waiting[0][0]!r} in {outcome.text!r}"
    return outcome


def answer(live: LiveKernel, text: str) -> Callable[[], object]:
    """The action of answering the open question."""
    return lambda: live.cells.client.input(text)
