"""What it costs to carry the state from one single command to the next, beside the same command without."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Iterator

from report import Figure, median, ratio
from session_magics.model import Command
from session_magics.sandbox.local import LocalSandbox
from session_magics.sandbox.stateful import StatefulSandbox

ROUNDS = 200
# Calls of each kind that are run first and not counted: the directory is made, caches fill.
WARM_UP = 10
TARGET = 3.0


def stateful() -> Iterator[Figure]:
    """`true` and a program through `sh -c` in a local sandbox, with state and without, interleaved."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        plain = stack.enter_context(contextlib.closing(LocalSandbox(folder)))
        session = stack.enter_context(contextlib.closing(StatefulSandbox(plain, f"{folder}/state")))
        for shell in filter(shutil.which, ("sh", "bash")):
            taken: dict[str, list[float]] = {}
            for number in range(WARM_UP + ROUNDS):
                for body in ("true", "ls /", f"export N={number}"):
                    for name, sandbox in (("plain", plain), ("stateful", session)):
                        began = time.perf_counter()
                        sandbox.exec(Command((shell, "-c", body)))
                        if number >= WARM_UP:
                            key = f"{shell} -c '{body.split(' N')[0]}' {name}"
                            taken.setdefault(key, []).append((time.perf_counter() - began) * 1000)
            for name, values in taken.items():
                yield median(name, values, "ms")
            for body, target in (("true", TARGET), ("ls /", TARGET), ("export", None)):
                key = f"{shell} -c '{body}'"
                yield ratio(f"{key}: stateful / plain", taken[f"{key} stateful"], taken[f"{key} plain"], target)
