"""A lot of output: until all is there and the kernel is idle, against `!cmd` and a bare PTY."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from report import Figure, median, ratio
from rig import GIVE_UP, BenchKernel, running_kernel

SEQ = "seq 1 1000000"
ONE_LINE = "head -c 50000000 /dev/zero | tr '\\0' x"
# More than a PTY gives at once, so that a read never leaves anything.
READ = 65536
ROUNDS = {SEQ: 5, ONE_LINE: 3}
TARGETS = {SEQ: (0.35, 2.0), ONE_LINE: (None, None)}
NAMES = {SEQ: "6.9 MB of lines", ONE_LINE: "one line of 50 MB"}


def bare_pty(command: str) -> float:
    """Seconds that a read loop needs for the command on a terminal with its default settings."""
    start = time.perf_counter()
    pid, pty_fd = os.forkpty()
    if pid == 0:
        os.execvp("sh", ["sh", "-c", command])
    try:
        while os.read(pty_fd, READ):
            pass
    except OSError:
        pass  # EIO: the other end is closed, which is how Linux tells the end
    os.waitpid(pid, 0)
    os.close(pty_fd)
    return time.perf_counter() - start


def one_round(kernel: BenchKernel, command: str, taken: dict[str, list[float]], counts: list[int]) -> None:
    taken["bare"].append(bare_pty(command))
    timing = kernel.good(f"%%sh_session\n{command}")
    taken["session"].append(timing.seconds)
    counts.append(timing.messages)
    if not taken["bang"] or taken["bang"][-1] < GIVE_UP:  # once is enough for one that does not come to its end
        taken["bang"].append(kernel.time(f"!{command}").seconds)


def volume(command: str) -> Iterator[Figure]:
    """One command by session, `!` and bare read loop, interleaved."""
    taken: dict[str, list[float]] = {"bare": [], "session": [], "bang": []}
    counts: list[int] = []
    with running_kernel() as kernel:
        kernel.good("%%sh_session\ntrue")
        kernel.good("!true")
        for _ in range(ROUNDS[command]):
            one_round(kernel, command, taken, counts)
    name, (to_bang, to_bare) = NAMES[command], TARGETS[command]
    yield median(f"{name}: session", taken["session"], "s")
    yield median(f"{name}: !cmd", taken["bang"], "s")
    yield median(f"{name}: bare PTY loop", taken["bare"], "s")
    yield ratio(f"{name}: session / !cmd", taken["session"], taken["bang"], to_bang)
    yield ratio(f"{name}: session / bare PTY loop", taken["session"], taken["bare"], to_bare)
    yield Figure(f"{name}: messages of the cell", max(counts), "", 1000)


def lines() -> Iterator[Figure]:
    """`seq 1 1000000`."""
    yield from volume(SEQ)


def one_line() -> Iterator[Figure]:
    """50 MB without a line break."""
    yield from volume(ONE_LINE)
