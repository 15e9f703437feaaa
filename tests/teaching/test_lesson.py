"""The lesson runs without a person, its solutions are right, and what is saved in it is what running it shows."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from test_notebooks import NOTEBOOKS, execute, home

__all__ = ["home"]
[LESSON] = [path for path in NOTEBOOKS if path.stem == "03-teach-shell"]
# What differs from run to run: dates, sizes of directories, the user, and how a list is broken into columns.
VARYING = re.compile(r"\x1b\[[\d;]*m|^total \d+$|^[d-][rwx-]{9} .*? (?=\S+$)|\s+", re.M)
# Where it lay when it was run for saving.
HOME_OF_SAVED = "/home/learner"


def shown(cell: NotebookNode, user_home: str = HOME_OF_SAVED) -> list[str]:
    """What a reader sees of a cell, without what differs from run to run."""
    texts = [
        one.get("text") or one.get("data", {}).get("text/plain") or f"{one.ename}: {one.evalue}" for one in cell.outputs
    ]
    return VARYING.sub(" ", "".join(texts).replace(user_home, HOME_OF_SAVED)).split()


@pytest.mark.kernel
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_lesson_works_and_shows_what_is_saved(home: Path) -> None:
    saved, done = nbformat.read(LESSON, as_version=4), execute(LESSON, home)
    code = [(one, other) for one, other in zip(saved.cells, done.cells, strict=True) if one.cell_type == "code"]
    for before, after in code:
        assert shown(before) == shown(after, str(home)), before.id
    checks = [after for _, after in code if "check" in after.metadata.get("tags", [])]
    solved = ["solution" in check.metadata.tags for check in checks]
    # each exercise is checked as it is found, and when it is solved
    assert solved == [False, True] * (len(checks) // 2)
    assert len(checks) >= 20
    for check, solution in zip(checks, solved, strict=True):
        assert shown(check)[:2] == (["✓", "Correct"] if solution else ["✗", "Not"]), check.id
    assert len([after.id for _, after in code if "Tip:" in shown(after)]) == 5


def test_what_is_saved_names_no_machine() -> None:
    found = re.findall(r"/(?:tmp|root|home|work|usr|var|opt)/[^\s\"\\<`]*", LESSON.read_text())
    assert set(found) == {f"{HOME_OF_SAVED}/shell-lesson", f"{HOME_OF_SAVED}/shell-lesson/garden"}


def test_nothing_but_solutions_is_folded_away() -> None:
    cells = nbformat.read(LESSON, as_version=4).cells
    folded = [at for at, cell in enumerate(cells) if cell.metadata.get("jp-MarkdownHeadingCollapsed")]
    assert folded
    for at in folded:
        assert ["solution" in cell.metadata.get("tags", []) for cell in cells[at + 1 : at + 3]] == [True, True]
        assert re.match(r"#{1,4} ", cells[at + 3].source), cells[at + 3].source
