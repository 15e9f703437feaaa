"""What loading the extension costs a running kernel, and when a new shell is ready."""

from __future__ import annotations

from collections.abc import Iterator

from report import Figure, median
from rig import running_kernel

KERNELS = 7
SHELLS = 15
LOAD = """
import time as _time
_start = _time.perf_counter()
get_ipython().extension_manager.load_extension("session_magics")
print((_time.perf_counter() - _start) * 1000)
"""


def loading() -> Iterator[Figure]:
    """The time of load_extension inside kernels that have run a cell before."""
    taken = []
    for _ in range(KERNELS):
        with running_kernel(load=False) as kernel:
            kernel.good("pass")
            taken.append(float(kernel.good(LOAD).arrivals[0][1]))
    yield median("extension loaded", taken[1:], "ms", 50)  # the first one may have compiled the modules


def shell_ready() -> Iterator[Figure]:
    """The first cell of a new session, from sending it until idle, with and without the start-up file."""
    taken: dict[str, list[float]] = {"": [], " --no-rc": []}
    with running_kernel() as kernel:
        kernel.good("%%sh_session warm\ntrue")
        for number in range(SHELLS):
            for options, values in taken.items():
                values.append(kernel.good(f"%%sh_session s{number}{len(options)}{options}\ntrue").seconds * 1000)
    yield median("shell ready, first cell included", taken[""], "ms", 80)
    yield median("shell ready, first cell included, --no-rc", taken[" --no-rc"], "ms")
