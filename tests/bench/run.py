#!/usr/bin/env python3
"""Measure session-magics beside its peers and compare with the targets; run by hand, on an idle machine.

    python tests/bench/run.py
    python tests/bench/run.py --only cell_latency hundred

Each group is taken in one interleaved run; ratios can be compared between machines, milliseconds cannot.
Exit status 1 if a target was missed.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version

from attached import command_line
from completion import completion
from elsewhere import elsewhere
from first_byte import first_byte
from latency import cell_latency, flat, shell_kernel
from many import hundred
from report import Figure, run
from scale import at_once, listed
from start_up import loading, shell_ready
from stateful import stateful
from volume import lines, one_line
from watched import stalled, watched

GROUPS: dict[str, Callable[[], Iterator[Figure]]] = {
    group.__name__: group
    for group in (
        *(cell_latency, shell_kernel, lines, one_line, first_byte, loading, shell_ready, hundred, flat, command_line),
        *(listed, at_once, watched, stalled, elsewhere, stateful, completion),
    )
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--only", nargs="+", choices=GROUPS, default=list(GROUPS), metavar="NAME", help=", ".join(GROUPS)
    )
    return parser.parse_args()


def main() -> int:
    options = arguments()
    packages = ", ".join(f"{name} {version(name)}" for name in ("ipykernel", "ipython"))
    print(f"Python {platform.python_version()}, {packages}, {platform.system()}, {os.cpu_count()} cores")
    return run(GROUPS, options.only)


if __name__ == "__main__":
    sys.exit(main())
