"""The notebooks run from top to bottom without a person, and what is saved in them is what running them shows."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from homes import own_home
from saved_notebooks import NOTEBOOKS, SAVED_HOME, execute, lasting, text_of, to_be_done

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# What each is there to show, whatever is saved in it.
SHOWN = {
    "01-tour": (
        ("Hello, notebook, from", "100%", "the last status was", "notebook is still here", "finished", "200"),
        ("['*', 'two words']", "Serving HTTP", '"GET / HTTP/1.1" 200'),
    ),
    "02-agents": (
        ("waiting: Do you want to make this edit", "1.0.0", "data.csv · allow: Edit(*)"),
        ("python3 analysis.py · allow: python3 *", "rm -rf ~/* · denied (floor:", "approval is off"),
        ("● The mean is right now: it is 4.0.", "exited 0", "plot.png"),
    ),
    "03-teach-shell": (("✓ Correct", "✗ Not", "Tip:"),),
}


@pytest.fixture
def home(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the notebook's own, so that no start-up file of the person who runs the tests is read."""
    place = tmp_path / "home"
    place.mkdir()
    own_home(place, monkeypatch)
    return place


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


@pytest.mark.kernel
@pytest.mark.slow
@pytest.mark.timeout(300)
@each_notebook
def test_a_notebook_runs_and_shows_what_is_saved(path: Path, home: Path) -> None:
    saved, done = code_cells(nbformat.read(path, as_version=4)), code_cells(execute(path, home))
    for before, after in zip(saved, done, strict=True):
        if to_be_done(before):
            assert not before.outputs and lasting(after).startswith("✗ Not"), before.id
        else:
            assert lasting(before) == lasting(after), before.id
        failed = any(output.output_type == "error" for output in after.outputs)
        assert failed == ("raises-exception" in after.metadata.get("tags", [])), after.id
    text = "".join(text_of(output) for cell in done for output in cell.outputs)
    for shown in itertools.chain(*SHOWN[path.stem]):
        assert shown in text, shown
    pictures = [
        one for cell in done for one in cell.outputs if "data:image/png" in one.get("data", {}).get("text/html", "")
    ]
    assert bool(pictures) == (path.stem == "02-agents")


def papermill(notebook: NotebookNode, home: Path) -> tuple[subprocess.CompletedProcess[str], NotebookNode]:
    """Run a notebook by papermill's command; return what the command said, and the notebook it wrote."""
    source, target = home / "in.ipynb", home / "out.ipynb"
    nbformat.write(notebook, source)
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", "--cwd", str(home), str(source), str(target)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done, nbformat.read(target, as_version=4)


@pytest.mark.kernel
@pytest.mark.timeout(120)
def test_papermill_stops_at_a_failing_cell(home: Path) -> None:
    cells = ["%load_ext session_magics", "%%sh_session\necho before; false", "%%sh_session\necho after"]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, cells)), metadata=metadata)
    done, written = papermill(notebook, home)
    assert done.returncode != 0
    assert "CellCommandError" in done.stderr
    text = "".join(text_of(output) for cell in code_cells(written) for output in cell.outputs)
    assert "before" in text and "after" not in text


@each_notebook
def test_a_notebook_is_valid_and_names_no_machine(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert not [cell.id for cell in code_cells(notebook) if cell.execution_count]
    places = re.findall(r"(?<![\w.~])/(?:root|home|work|opt|var|private|Users)/[^\s\"\\\\<`]*", path.read_text())
    assert not [place for place in places if not place.startswith(SAVED_HOME)]
