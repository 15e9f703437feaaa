"""How long an empty cell takes, and whether that and the kernel's memory stay flat after a lot of output."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

import psutil

from report import Figure, median, ratio
from rig import BenchKernel, running_kernel

ROUNDS = 60
# Cells of each kind that are run first and not counted: imports, the shell's start.
WARM_UP = 5
CELLS = {"pass": "pass", "%%bash": "%%bash\ntrue", "session": "%%sh_session\ntrue"}
HUNDRED_LINES = "%%sh_session\n" + "true\n" * 100
STATUS_LINE = "%%sh_session --status-line\ntrue"
# 10 MB in lines of 80 characters; ten of them are the 100 MB.
TEN_MEGABYTES = "%%sh_session\nhead -c 10000000 /dev/zero | tr '\\0' x | fold -w 79"
# Megabytes by which the kernel may grow over 100 MB of output: two bounded buffers, and the allocator's slack.
GROWTH = 8.0


def milliseconds(kernel: BenchKernel, code: str) -> float:
    return kernel.good(code).seconds * 1000


def cell_latency() -> Iterator[Figure]:
    """`true` in a session against `pass` and `%%bash`, interleaved in one kernel."""
    more = {"100 lines": HUNDRED_LINES, "status line": STATUS_LINE}
    taken: dict[str, list[float]] = {name: [] for name in (*CELLS, *more)}
    with running_kernel() as kernel:
        for number in range(WARM_UP + ROUNDS):
            for name, code in (CELLS | more).items():
                value = milliseconds(kernel, code)
                if number >= WARM_UP:
                    taken[name].append(value)
    yield median("cell `pass`", taken["pass"], "ms")
    yield median("cell `%%bash` true", taken["%%bash"], "ms")
    yield median("cell `%%sh_session` true", taken["session"], "ms")
    yield ratio("true: session / pass", taken["session"], taken["pass"], 1.25)
    yield ratio("true: session / %%bash", taken["session"], taken["%%bash"])
    yield ratio("100 lines of true / 1 line", taken["100 lines"], taken["session"])
    yield ratio("true: with a status line / without", taken["status line"], taken["session"])


def shell_kernel() -> Iterator[Figure]:
    """`true` as a plain cell of a shell kernel against the magic in a Python kernel, in turns."""
    magic, plain = list[float](), list[float]()
    with running_kernel() as python, running_kernel(target="shell-kernel") as shell:
        for number in range(WARM_UP + ROUNDS):
            values = milliseconds(python, CELLS["session"]), milliseconds(shell, "true")
            if number >= WARM_UP:
                magic.append(values[0])
                plain.append(values[1])
    yield median("shell kernel: cell `true`", plain, "ms")
    yield ratio("true: plain cell of the shell kernel / magic", plain, magic, 1.25)


def flat() -> Iterator[Figure]:
    """Latency and resident memory of a kernel before and after 100 MB of output."""

    def latencies() -> list[float]:
        return [milliseconds(kernel, CELLS["session"]) for _ in range(ROUNDS)]

    with running_kernel() as kernel:
        process = psutil.Process(kernel.pid)
        for _ in range(WARM_UP):
            kernel.good(CELLS["session"])
        kernel.good(TEN_MEGABYTES)  # buffers and the allocator reach their working size
        before, resident = latencies(), process.memory_info().rss
        seconds = [kernel.good(TEN_MEGABYTES).seconds for _ in range(10)]
        grown = (process.memory_info().rss - resident) / 1e6
        after = latencies()
    yield Figure("100 MB of lines through a session", sum(seconds), "s")
    yield ratio("latency after 100 MB / before", after, before, 1.1)
    yield Figure("kernel memory grown by 100 MB of output", grown, "MB", GROWTH)
    yield Figure("10 MB cell, last / first", statistics.mean(seconds[-3:]) / statistics.mean(seconds[:3]), "×", 1.25)
