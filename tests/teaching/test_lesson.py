"""The lesson is made well; that it runs, and shows what is saved in it, ``test_notebooks`` tells."""

from __future__ import annotations

import itertools
import re

import nbformat

from saved_notebooks import NOTEBOOKS, lasting

[LESSON] = [path for path in NOTEBOOKS if path.stem == "03-teach-shell"]


def test_each_exercise_is_checked_as_it_is_found_and_when_it_is_solved() -> None:
    cells = nbformat.read(LESSON, as_version=4).cells
    checks = [cell for cell in cells if "check" in cell.metadata.get("tags", [])]
    assert len(checks) >= 20
    for check, solved in zip(checks, itertools.cycle((False, True))):
        assert ("solution" in check.metadata.tags) == solved
        assert lasting(check).startswith("✓ Correct") if solved else not check.outputs, check.id
    assert len([cell for cell in cells if cell.cell_type == "code" and "Tip:" in lasting(cell)]) == 5


def test_nothing_but_solutions_is_folded_away() -> None:
    cells = nbformat.read(LESSON, as_version=4).cells
    folded = [at for at, cell in enumerate(cells) if cell.metadata.get("jp-MarkdownHeadingCollapsed")]
    assert folded
    for at in folded:
        assert ["solution" in cell.metadata.get("tags", []) for cell in cells[at + 1 : at + 3]] == [True, True]
        assert re.match(r"#{1,4} ", cells[at + 3].source), cells[at + 3].source
