"""When the first byte of a command that goes on is seen."""

from __future__ import annotations

import re
from collections.abc import Iterator

from report import Figure, median
from rig import running_kernel

ROUNDS = 15
ECHO = "echo a; sleep 1; echo b"
# bash tells the time itself, so that no start of a program lies between the clock and the write.
STAMP = "echo $EPOCHREALTIME; sleep 0.3; echo b"


def first_byte() -> Iterator[Figure]:
    """From sending the cell, and from the program's own write, until the client has the text."""
    sent: dict[str, list[float]] = {"%%sh_session": [], "%%bash": []}
    written: dict[str, list[float]] = {"%%sh_session": [], "%%bash": []}
    with running_kernel() as kernel:
        for magic in sent:
            kernel.good(f"{magic}\ntrue")
        for _ in range(ROUNDS):
            for magic in sent:
                timing = kernel.good(f"{magic}\n{ECHO}")
                sent[magic].append((timing.arrivals[0][0] - timing.sent) * 1000)
                timing = kernel.good(f"{magic}\n{STAMP}")
                arrived, text = timing.arrivals[0]
                stamp = re.search(r"\d+[.,]\d+", text)
                if stamp:
                    written[magic].append((arrived - float(stamp[0].replace(",", "."))) * 1000)
    yield median("first byte, from sending the cell: session", sent["%%sh_session"], "ms", 15)
    yield median("first byte, from sending the cell: %%bash", sent["%%bash"], "ms")
    yield median("first byte, from the program's write: session", written["%%sh_session"], "ms", 15)
    yield median("first byte, from the program's write: %%bash", written["%%bash"], "ms")
