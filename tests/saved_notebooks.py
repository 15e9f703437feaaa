"""Notebooks as they are run and saved: each with the outputs that the README's command gives it.

``python tests/saved_notebooks.py [NAME]…`` runs them and saves their outputs anew.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from homes import HOMES

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
CELL_LIMIT = 60
"""Seconds for one cell."""
SAVED_HOME = "/home/learner"
"""The home of whoever a saved notebook was run by."""
VARYING = re.compile(
    r"\x1b\[[\d;]*m"  # colours
    r"|^\[\d+\]\+ +Done .*$"  # a job that ends between two cells is told in neither
    r"|^total \d+$|^[d-][rwx-]{9} .*? (?=\S+$)"  # of ls -l: dates, sizes, the user
    r"|/tmp/[\w./-]+|\btmp\.\w+|\S+/sessions/\S+|\b[0-9a-f]{21}\b"  # fresh directories, ids of sessions
    r"|\d[\d.,:]*(?: ?(?:ms|[smhd%]|[kMG]?i?B)\b)?"  # times, amounts, numbers of processes and ports
    r"|\S*…"  # where a column is cut, as wide as the others leave it
    r"|[-─━═]{3,}|[⠀-⣿]|\s+",  # rules as wide as what they part, spinners, how a list is broken into columns
    re.M,
)
"""What differs from run to run."""


def text_of(output: NotebookNode) -> str:
    """What a reader sees of an output as text."""
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}"
    return str(output.get("text") or output.get("data", {}).get("text/plain", ""))


def lasting(cell: NotebookNode) -> str:
    """What a reader sees of a cell, without what differs from run to run."""
    return " ".join(VARYING.sub(" ", "".join(map(text_of, cell.outputs))).split())


def to_be_done(cell: NotebookNode) -> bool:
    """Whether a cell checks an exercise, whose cross and hint no learner should find there before the beginning."""
    tags = cell.metadata.get("tags", [])
    return "check" in tags and "solution" not in tags


def execute(path: Path, home: Path) -> NotebookNode:
    """Run a copy of the notebook, with what is beside it, by the README's command; none but tagged cells may fail.

    It reads as if it had been run in SAVED_HOME. The environment has to say that ``home`` is the home.
    """
    shutil.copytree(path.parent, home, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    command = [Path(sys.executable).with_name("jupyter-execute"), f"--timeout={CELL_LIMIT}", "--output=done", path.name]
    done = subprocess.run(command, cwd=home, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = (home / "done.ipynb").read_text()
    text = text.replace(str(home), SAVED_HOME).replace(shutil.which("python3") or "python3", "/usr/bin/python3")
    return nbformat.reads(text, as_version=4)


def save(path: Path) -> None:
    """Give the notebook the outputs of a run; no counts and times, which would change with each."""
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(dict.fromkeys(HOMES, home), SESSION_MAGICS_HOME=f"{home}/.local/state/session-magics")
        saved, done = nbformat.read(path, as_version=4), execute(path, Path(home))
    for cell, ran in zip(saved.cells, done.cells, strict=True):
        if cell.cell_type == "code":
            cell.outputs = [] if to_be_done(cell) else ran.outputs
            for output in cell.outputs:
                if "execution_count" in output:
                    output.execution_count = None
    nbformat.write(saved, path)


if __name__ == "__main__":
    for one in NOTEBOOKS:
        if one.stem in (sys.argv[1:] or one.stem):
            save(one)
