"""How long the shells take to complete, live and busy, and in a directory of ten thousand files."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from report import Figure
from rig import scratch
from session_magics import Registry, Session
from session_magics.completion.answering import ANSWER_LIMIT, Completer

ROUNDS = 40
FILES = 10_000
TEXTS = ("git che", "ls ma", "mkfi", "echo $HO", "cat <ma")
SHELLS = ("bash", "zsh", "dash", "fish")


def percentile(values: list[float]) -> float:
    """The 95th."""
    return statistics.quantiles(values, n=20)[-1]


def timed(session: Session, texts: tuple[str, ...], cold: int = 2) -> Iterator[tuple[str, list[float], int]]:
    """(text, milliseconds of each round, answers that were empty) for each text."""
    completer = Completer()
    for text in texts:
        taken, empty = [], 0
        for number in range(cold + ROUNDS):
            began = time.perf_counter()
            found = completer.complete(text, len(text), session, "bash")
            if number >= cold:
                taken.append((time.perf_counter() - began) * 1000)
                empty += not found.items
        yield text, taken, empty


def figures(name: str, session: Session, texts: tuple[str, ...]) -> Iterator[Figure]:
    for text, taken, empty in timed(session, texts):
        note = f"median {statistics.median(taken):.3g}" + (f", {empty} of {ROUNDS} empty" if empty else "")
        yield Figure(f"{name}: {text!r}, p95", percentile(taken), "ms", ANSWER_LIMIT * 1000, note)


def completion() -> Iterator[Figure]:
    """The time of an answer: live shells, a busy one, ten thousand files, a completion function that hangs."""
    with scratch() as root:
        many = Path(root) / "many"
        many.mkdir()
        for number in range(FILES):
            (many / f"file{number}").touch()
        registry = Registry(root)
        try:
            for shell in filter(shutil.which, SHELLS):
                session = registry.shell(shell, shell=shell, lifetime="detached", rc=False, cwd=str(root))
                yield from figures(shell, session, TEXTS)
                yield from figures(f"{shell}, {FILES} files", session, ("ls many/", "cat <many/file1"))
            bash = registry.get("bash")
            cell = bash.cell("sleep 1000")
            while cell.begin is None:
                cell.receive(1)
            yield from figures("busy bash", bash, TEXTS)
            cell.interrupt()
            while cell.result is None:
                cell.receive(1)
            cell.close()
            cell = bash.cell("_hang() { sleep 1000; }; complete -F _hang hang")
            while cell.result is None:
                cell.receive(1)
            cell.close()
            yield from figures("bash, a function that hangs", bash, ("hang ma",))
        finally:
            registry.stop_all(now=True)
