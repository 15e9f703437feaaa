"""The notebooks run from top to bottom without a person, and are kept clean."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
# Those that are saved with their outputs, and the test of which compares them with a run: teaching/test_lesson.py.
COMPARED = ("03-teach-shell",)
# Seconds for one cell.
CELL_LIMIT = 60

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture
def home(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the notebook's own, so that no start-up file of the person who runs the tests is read."""
    place = tmp_path / "home"
    place.mkdir()
    for name in ("HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, str(place))
    return place


def outputs_of(notebook: NotebookNode) -> list[NotebookNode]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def text_of(notebook: NotebookNode) -> str:
    """All that a reader sees as text, streams and plain displays joined."""
    return "".join(
        output.get("text") or output.get("data", {}).get("text/plain", "") for output in outputs_of(notebook)
    )


def execute(path: Path, home: Path) -> NotebookNode:
    """Run a copy of the notebook, with what is beside it, by the README's command; none but tagged cells may fail."""
    shutil.copytree(path.parent, home, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".*", "__pycache__"))
    copied = home / path.name
    command = [Path(sys.executable).with_name("jupyter-execute"), f"--timeout={CELL_LIMIT}", "--output=done", copied]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return nbformat.read(home / "done.ipynb", as_version=4)


@pytest.mark.kernel
@pytest.mark.slow
@pytest.mark.timeout(300)
@each_notebook
def test_a_notebook_runs_and_only_expected_cells_fail(path: Path, home: Path) -> None:
    done = execute(path, home)
    failed = {cell.id for cell in done.cells for output in cell.get("outputs", []) if output.output_type == "error"}
    expected = {cell.id for cell in done.cells if "raises-exception" in cell.metadata.get("tags", [])}
    assert failed == expected


@pytest.mark.kernel
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_tour_shows_what_it_tells(home: Path) -> None:
    [tour] = [path for path in NOTEBOOKS if path.stem == "01-tour"]
    text = text_of(execute(tour, home))
    for shown in ("Hello, notebook, from", "100%", "the last status was", "notebook is still here", "finished", "200"):
        assert shown in text, shown
    for shown in ("['*', 'two words']", "Serving HTTP", '"GET / HTTP/1.1" 200'):
        assert shown in text, shown


@pytest.mark.kernel
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_agents_show_what_is_told(home: Path) -> None:
    [agents] = [path for path in NOTEBOOKS if path.stem == "02-agents"]
    done = execute(agents, home)
    text = text_of(done)
    for shown in ("waiting: Do you want to make this edit", "1.0.0", "data.csv · allow: Edit(*)"):
        assert shown in text, shown
    for shown in ("python3 analysis.py · allow: python3 *", "rm -rf ~/* · denied (floor:", "approval is off"):
        assert shown in text, shown
    for shown in ("● The mean is right now: it is 4.0.", "exited 0", "plot.png"):
        assert shown in text, shown
    assert any("data:image/png" in output.get("data", {}).get("text/html", "") for output in outputs_of(done))


def papermill(notebook: NotebookNode, home: Path) -> tuple[subprocess.CompletedProcess[str], NotebookNode]:
    """Run a notebook by papermill's command; return what the command said, and the notebook it wrote."""
    source, target = home / "in.ipynb", home / "out.ipynb"
    nbformat.write(notebook, source)
    command = [sys.executable, "-m", "papermill", "--no-progress-bar", "--cwd", str(home), str(source), str(target)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    return done, nbformat.read(target, as_version=4)


@pytest.mark.kernel
@pytest.mark.slow
@pytest.mark.timeout(300)
def test_papermill_runs_the_tour(home: Path) -> None:
    [path] = [path for path in NOTEBOOKS if path.stem == "01-tour"]
    tour = nbformat.read(path, as_version=4)
    # papermill takes every error for a failure and does not know the tag
    tour.cells = [cell for cell in tour.cells if "raises-exception" not in cell.metadata.get("tags", [])]
    done, written = papermill(tour, home)
    assert done.returncode == 0, done.stderr
    assert "Serving HTTP" in text_of(written)


@pytest.mark.kernel
@pytest.mark.timeout(120)
def test_papermill_stops_at_a_failing_cell(home: Path) -> None:
    cells = ["%load_ext session_magics", "%%sh_session\necho before; false", "%%sh_session\necho after"]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, cells)), metadata=metadata)
    done, written = papermill(notebook, home)
    assert done.returncode != 0
    assert "CellCommandError" in done.stderr
    assert "before" in text_of(written)
    assert "after" not in text_of(written)


@each_notebook
def test_a_notebook_is_valid_and_carries_no_output_that_no_test_compares(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    assert not outputs_of(notebook) or path.stem in COMPARED
    assert not [cell.id for cell in notebook.cells if cell.get("execution_count")]
