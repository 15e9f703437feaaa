"""One measured figure, its target, and the table of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """A figure with its unit; ``target`` is the most it may be, None where it is only context."""

    name: str
    value: float
    unit: str
    target: float | None = None
    note: str = ""

    @property
    def met(self) -> bool:
        return self.target is None or self.value <= self.target

    def line(self) -> str:
        mark = "    " if self.target is None else "ok  " if self.met else "FAIL"
        aim = "" if self.target is None else f"≤ {self.target:g}"
        return f"{mark} {self.name:<58} {self.value:>10.3g} {self.unit:<3} {aim:<8} {self.note}".rstrip()


def spread(values: Sequence[float]) -> str:
    """Lowest to highest, and how many, for the note of a median."""
    return f"({min(values):.3g} to {max(values):.3g}, n={len(values)})"


def median(name: str, values: Sequence[float], unit: str, target: float | None = None) -> Figure:
    """The median of the values as a figure, with their spread as its note."""
    return Figure(name, statistics.median(values), unit, target, spread(values))


def ratio(name: str, ours: Sequence[float], theirs: Sequence[float], target: float | None = None) -> Figure:
    """The ratio of two medians that were taken in one interleaved run."""
    return Figure(name, statistics.median(ours) / statistics.median(theirs), "×", target)


def run(groups: Mapping[str, Callable[..., Iterable[Figure]]], names: Iterable[str], *arguments: object) -> int:
    """Take the groups of these names, each with the arguments, print each figure as it comes; the exit status."""
    missed = 0
    for name in names:
        print(f"\n{name}: {groups[name].__doc__}", flush=True)
        for figure in groups[name](*arguments):
            print(figure.line(), flush=True)
            missed += not figure.met
    print(f"\n{missed} targets missed" if missed else "\nevery target met")
    return 1 if missed else 0
