#!/usr/bin/env python3
"""Measure the live terminals in a real JupyterLab, beside JupyterLab's own terminal; run by hand, on an idle machine.

    python tests/bench/browser.py
    python tests/bench/browser.py --only echo flood

Both sides are taken in one interleaved run in one page. Exit status 1 if a target was missed.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "browser"))

from lab import PANEL, Lab
from playwright.sync_api import Browser, sync_playwright
from servers import LOAD, Server, serve, write_notebook

from report import Figure, median, run
from session_magics import Command

KEYS = 70
"""Keys typed on each side; the first ten are warming up."""
WARM = 10
RATE_MB = 6
"""Megabytes to be rendered: fewer than a view may be behind before it is taken to the end."""
RATE_RUNS = 5
FLOOD_MB = 100
FLOOD_RUNS = 7
CATCH_UP_MS = 60_000
HEAP_LIMIT = 100.0
"""Megabytes that the page may take after floods: JupyterLab itself and two terminals' scrollback."""
START_RUNS = 8
MANY = 20
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-renderer-backgrounding"]
SCRIPT = (Path(__file__).parent / "browser.js").read_text("utf-8")
SIDES = ("ours", "theirs")


class Bench:
    """A page with a notebook, in a JupyterLab of its own."""

    def __init__(self, browser: Browser, server: Server, work: Path) -> None:
        self.server, self.work = server, work
        context = browser.new_context(viewport={"width": 1300, "height": 1000})
        self.page = context.new_page()
        self.wire = context.new_cdp_session(self.page)
        self._numbers = itertools.count()
        self._kernel = server.start_kernel()

    def open(self, cells: Sequence[str]) -> Lab:
        """Open a notebook; the extension is loaded."""
        number = next(self._numbers)
        path = self.server.folder / f"bench{number}.ipynb"
        write_notebook(path, [LOAD, *cells])
        self.server.bind(path, self._kernel)
        lab = Lab(self.page, self.server, path)
        if number == 0:
            lab.run(0)
            self.page.evaluate(SCRIPT)
        return lab

    def done(self, lab: Lab) -> None:
        """Close the notebook and JupyterLab's terminal, and end the sessions."""
        lab.close()
        self.page.evaluate("() => { for (const one of [...window.jupyterapp.shell.widgets('main')]) one.dispose(); }")
        self.server.clean()

    def call(self, function: str, *given: object) -> Any:
        """The value of one of the functions of ``browser.js``."""
        return self.page.evaluate(f"(given) => bench.{function}(...given)", list(given))

    def wait(self, function: str, *given: object) -> None:
        """Wait until one of them says so."""
        call = f"(given) => bench.{function}(...given)"
        self.page.wait_for_function(call, arg=list(given), timeout=CATCH_UP_MS)

    def heap(self) -> float:
        """Megabytes that the page's objects take, garbage collected."""
        self.wire.send("HeapProfiler.collectGarbage")
        return float(self.wire.send("Runtime.getHeapUsage")["usedSize"]) / 1e6

    def jupyter_terminal(self) -> None:
        """Open JupyterLab's own terminal beside the notebook, with a shell that is ready."""
        self.page.evaluate(
            f"""async () => {{
              const {{ commands, shell }} = window.jupyterapp, notebook = {PANEL};
              const made = await commands.execute('terminal:create-new');
              shell.add(made, 'main', {{ mode: 'split-right', ref: notebook.id }});
              shell.activateById(notebook.id); }}"""
        )
        self.wait("ready")


def echo(bench: Bench) -> Iterator[Figure]:
    """A key typed until its echo is drawn, milliseconds; `cat` on both sides."""
    lab = bench.open(["%session start -- echo cat"])
    lab.run(1)
    lab.wait_bar("badge", "waiting for input")
    bench.jupyter_terminal()
    bench.call("until", "theirs", "echo re''ady; cat\r", "ready")
    times = bench.call("echo", KEYS)
    for side, target in zip(SIDES, (20.0, None), strict=True):
        taken = times[side][WARM:]
        yield median(f"echo, {side}: median", taken, "ms", target)
        yield Figure(f"echo, {side}: p95", percentile(taken, 95), "ms")
    bench.done(lab)


def rate(bench: Bench) -> Iterator[Figure]:
    """Coloured lines from a program through to the screen, megabytes a second; `cat` of a file on both sides."""
    file = coloured(bench.work / "rate", RATE_MB)
    lab = bench.open(["%session start -- rate bash --norc -i"])
    lab.run(1)
    lab.wait_text("bash-")
    bench.jupyter_terminal()
    rates: dict[str, list[float]] = {side: [] for side in SIDES}
    for number, side in itertools.product(range(RATE_RUNS), SIDES):
        took = bench.call("until", side, f"cat {file}; echo e''nd{number}\r", f"end{number}")
        rates[side].append(file.stat().st_size / 1000 / took)
    for side in SIDES:
        yield median(f"rate, {side}", rates[side], "MB/s")
    yield Figure("rate, theirs : ours", statistics.median(rates["theirs"]) / statistics.median(rates["ours"]), "×")
    bench.done(lab)


def flood(bench: Bench) -> Iterator[Figure]:
    """100 MB from a session: the program's time with and without a view, and the page meanwhile."""
    file, times, script = coloured(bench.work / "flood", FLOOD_MB), bench.work / "times", bench.work / "flood.sh"
    took = f'begin=$EPOCHREALTIME; cat {file}; echo "$name $begin $EPOCHREALTIME" >> {times}'
    script.write_text(f"while read name; do {took}; echo; echo over; done")
    lab = bench.open([f"%session start -- seen bash {script}", "%session start -- echo cat"])
    for cell in (1, 2):
        lab.run(cell)
        lab.wait_bar("badge", "waiting for input", cell - 1)
    registry = bench.server.registry
    unseen = registry.start("unseen", Command(("bash", str(script)), str(bench.work)))
    sessions = {"with": registry.get("seen"), "without": unseen}
    heaps, echoes = [bench.heap()], list[float]()
    for number in range(FLOOD_RUNS):
        for name in ("with", "without") if number % 2 else ("without", "with"):
            done = len(taken(times)[name])
            bench.page.evaluate("() => { bench.pressed = bench.echoWhile(1); }")
            sessions[name].send(f"{name}\n")
            while len(taken(times)[name]) == done:
                bench.page.wait_for_timeout(50)
            bench.page.evaluate("() => { bench.over = true; }")
            pressed = bench.page.evaluate("() => bench.pressed")
            if name == "with":
                echoes += pressed
                bench.wait("caughtUp", 0)
        heaps.append(bench.heap())
    seconds = taken(times)
    for name, values in seconds.items():
        yield median(f"100 MB, {name} a view", values, "s")
    slower = statistics.median(seconds["with"]) / statistics.median(seconds["without"])
    yield Figure("100 MB, with : without a view", slower, "×", 1.05)
    yield Figure("echo in another terminal meanwhile: median", statistics.median(echoes), "ms")
    yield Figure("echo in another terminal meanwhile: p95", percentile(echoes, 95), "ms", 250, f"n={len(echoes)}")
    all_heaps = " ".join(f"{one:.0f}" for one in heaps)
    yield Figure("heap before and after each 100 MB, highest", max(heaps), "MB", HEAP_LIMIT, all_heaps)
    bench.done(lab)


def opening(bench: Bench) -> Iterator[Figure]:
    """From the start of a cell until its terminal shows the program's first line, milliseconds; 20 in a page."""
    lab = bench.open([f"%session start -- one{n} sh -c 'echo here; cat'" for n in range(START_RUNS)])
    times = [visible(bench, cell + 1, cell, "here") for cell in range(START_RUNS)]
    yield Figure("cell start to visible terminal, first of the run", times[0], "ms")
    yield median("cell start to visible terminal, later ones", times[1:], "ms")
    bench.done(lab)
    start = "get_ipython().run_line_magic('session', f'start t{n} sh -c \"echo I am {n}; cat\"')"
    lab = bench.open([f"for n in range({MANY}): display({start})"])
    before = bench.heap()
    yield Figure(f"{MANY} terminals: the last shows its line", visible(bench, 1, MANY - 1, "I am") / 1000, "s")
    for number in range(MANY):
        lab.wait_text(f"I am {number}", number)
    yield Figure(f"{MANY} terminals: heap", bench.heap() - before, "MB")
    bench.done(lab)


def saved(bench: Bench) -> Iterator[Figure]:
    """Bytes that a terminal adds to a saved notebook."""
    lab = bench.open(["pass", "%session start -- job sh -c 'echo hello; exit 3'"])
    lab.run(1)
    lab.save()
    before = lab.path.stat().st_size
    lab.run(2)
    lab.wait_output(2, "exited 3")
    lab.save()
    yield Figure("bytes of one terminal in a saved notebook", lab.path.stat().st_size - before, "B", 2048)
    bench.done(lab)


# ---- how it is measured


def percentile(values: Sequence[float], percent: int) -> float:
    return sorted(values)[min(len(values) - 1, len(values) * percent // 100)]


def coloured(path: Path, megabytes: int) -> Path:
    """A file of lines of 80 characters, some of them in colour."""
    lines = (
        b"\x1b[3%dm%06d\x1b[0m the quick brown fox jumps over the lazy dog, and once more over it\n" % (n % 8, n)
        for n in range(10_000)
    )
    block = b"".join(lines)
    path.write_bytes(block * round(megabytes * 1_000_000 / len(block)))
    return path


def taken(times: Path) -> dict[str, list[float]]:
    """Seconds that the program took, with a view and without."""
    seconds: dict[str, list[float]] = {"with": [], "without": []}
    for line in times.read_text().splitlines() if times.exists() else []:
        name, begin, end = line.split()
        seconds[name].append(float(end) - float(begin))
    return seconds


def visible(bench: Bench, cell: int, terminal: int, text: str) -> float:
    """Milliseconds from running a cell until the rows of a terminal show a text."""
    given = [cell, terminal, text]
    return float(bench.page.evaluate(f"(given) => bench.visible({PANEL}, ...given)", given))


@contextlib.contextmanager
def laboratory() -> Iterator[Bench]:
    """A server, a browser and a page in it."""
    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    work = Path(tempfile.mkdtemp(prefix="session-magics-bench"))
    (work / "server").mkdir()
    try:
        with serve(work / "server") as server, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
            yield Bench(browser, server, work)
            server.clean()
            browser.close()
    finally:
        shutil.rmtree(work, ignore_errors=True)


GROUPS: dict[str, Callable[[Bench], Iterator[Figure]]] = {
    group.__name__: group for group in (opening, echo, rate, flood, saved)
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    every = ", ".join(GROUPS)
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS), metavar="NAME", help=every)
    only = parser.parse_args().only
    with laboratory() as bench:
        return run(GROUPS, only, bench)


if __name__ == "__main__":
    sys.exit(main())
