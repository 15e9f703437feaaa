#!/usr/bin/env python3
"""Measure ten demo agents that stream at once, each shown live in one notebook of a real JupyterLab.

    python tests/bench/agents.py

Run by hand, on an idle machine. Exit status 1 if a target was missed.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from browser import PANEL, Bench, laboratory, percentile
from report import Figure, median, ratio, run

NOTEBOOKS = Path(__file__).parent.parent.parent / "notebooks"
AGENTS = 10
SECONDS = 20
"""How long the kernel and the page are watched."""
STREAMING = 600
"""Seconds that the agents would stream: longer than they are watched."""
CPU_LIMIT = 10.0
"""Percent of a core that the kernel may use meanwhile."""

PID, PASS, START, LIST = 1, 2, 3, 4
CELLS = (
    "import os; print(os.getpid())",
    "pass",
    f"""
os.environ["SESSION_MAGICS_TOOLS"] = {str(NOTEBOOKS / "tools.json")!r}
for n in range({AGENTS}):
    display(get_ipython().run_line_magic(
        "session", f"start agent{{n}} --tool demo -- --script chatty --seconds {STREAMING}"))
""",
    "%session list",
)
WATCH = f"""async ([cell, seconds]) => {{
  const gaps = [], cells = [], notebook = {PANEL}.content, end = performance.now() + seconds * 1000;
  let last = performance.now(), over = false;
  const frame = (now) => {{ gaps.push(now - last); last = now; if (!over) requestAnimationFrame(frame); }};
  requestAnimationFrame(frame);
  while (performance.now() < end) {{
    await new Promise((done) => setTimeout(done, 500));
    notebook.activeCellIndex = cell;
    const began = performance.now();
    await window.jupyterapp.commands.execute("notebook:run-cell");
    cells.push(performance.now() - began);
  }}
  over = true;
  return {{ gaps, cells }};
}}"""


def streaming(bench: Bench) -> Iterator[Figure]:
    """The kernel's use of a core, a `pass` cell, and the page's frames, while ten agents stream into the page."""
    lab = bench.open(CELLS)
    lab.run(PID)
    kernel = psutil.Process(int(lab.output_text(PID)))
    alone = watched(bench, kernel)
    lab.run(START)
    for number in range(AGENTS):
        lab.wait_text("I compare the rows", number)
    shown = watched(bench, kernel)
    lab.run(LIST)
    listed = watched(bench, kernel)
    texts = [bench.server.registry.get(f"agent{number}").info().log_bytes for number in range(AGENTS)]
    yield Figure("kernel, nothing streams", alone["cpu"], "%")
    yield Figure(f"kernel, {AGENTS} agents stream into views", shown["cpu"], "%", CPU_LIMIT)
    yield Figure("kernel, the same and a live table", listed["cpu"], "%", CPU_LIMIT)
    yield Figure("bytes that an agent prints", statistics.mean(texts) / 1000, "KB")
    for name, taken in (("nothing streams", alone), ("agents stream", shown), ("agents stream, live table", listed)):
        yield median(f"`pass` in the page, {name}", taken["cells"], "ms")
        yield Figure(f"page, {name}: frame gap, 99 of 100", percentile(taken["gaps"], 99), "ms")
        yield Figure(f"page, {name}: longest frame gap", max(taken["gaps"]), "ms")
    yield ratio("`pass`: agents stream / nothing streams", shown["cells"], alone["cells"])
    bench.done(lab)


def watched(bench: Bench, kernel: psutil.Process) -> dict[str, Any]:
    """What the kernel and the page do for a while, in which a `pass` cell is run twice a second."""
    before, began = cpu_seconds(kernel), time.monotonic()
    taken: dict[str, Any] = bench.page.evaluate(WATCH, [PASS, SECONDS])
    taken["cpu"] = (cpu_seconds(kernel) - before) / (time.monotonic() - began) * 100
    return taken


def cpu_seconds(process: psutil.Process) -> float:
    return sum(process.cpu_times()[:2])


GROUPS: dict[str, Callable[[Bench], Iterator[Figure]]] = {"streaming": streaming}


def main() -> int:
    with laboratory() as bench:
        try:
            return run(GROUPS, GROUPS, bench)
        finally:
            bench.server.clean()  # also after a failure: agents outlive their kernel


if __name__ == "__main__":
    sys.exit(main())
