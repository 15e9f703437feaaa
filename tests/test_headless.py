"""Notebooks that run without a person: nbclient and papermill."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from homes import own_home

pytestmark = [pytest.mark.kernel, pytest.mark.timeout(120)]
# Seconds for one cell that is to end by itself.
CELL_LIMIT = 30
SGR = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
EXECUTE = """
import json, os, sys, time, nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
path, options, begun = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
book, raised = nbformat.read(path, as_version=4), ""

def limit(cell):  # asked for once the cell was handed to the kernel
    while begun in cell.source and not os.path.exists(begun):
        time.sleep(0.02)
    return 1 if begun in cell.source else options["timeout"]

try:
    # Else outputs that are 4 s later than the reply are left out.
    NotebookClient(book, kernel_name="python3", timeout_func=limit, iopub_timeout=60, **options).execute()
except (CellExecutionError, CellTimeoutError) as error:
    raised = type(error).__name__
nbformat.write(book, path)
print(raised)
"""


@pytest.fixture
def home(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the notebook's own, so that no start-up file of the person who runs the tests is read."""
    own_home(tmp_path, monkeypatch)
    monkeypatch.setenv("TERM", "xterm")
    return tmp_path


def notebook(*cells: str, tags: tuple[str, ...] = ()) -> NotebookNode:
    """A notebook that loads the extension and has these cells, the first of them with the tags."""
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    made = [nbformat.v4.new_code_cell(one) for one in ("%load_ext session_magics", *cells)]
    made[1].metadata["tags"] = list(tags)
    return nbformat.v4.new_notebook(cells=made, metadata=metadata)


def execute(book: NotebookNode, home: Path, **options: object) -> tuple[list[NotebookNode], str]:
    """Run a notebook with nbclient; its cells but the first, with their outputs, and what nbclient raised.

    A cell that makes the file ``begun`` of the home has a second from then on.
    """
    path = home / "book.ipynb"
    nbformat.write(book, path)
    limits = json.dumps({"timeout": CELL_LIMIT, **options})
    command = [sys.executable, "-c", EXECUTE, str(path), limits, str(home / "begun")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=home)
    assert done.returncode == 0, done.stderr
    written = nbformat.read(path, as_version=4)
    nbformat.validate(written)
    assert "widgets" not in written.metadata
    return written.cells[1:], done.stdout.strip()


def text_of(cell: NotebookNode) -> str:
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


def errors_of(cell: NotebookNode) -> list[str]:
    return [f"{output.ename}: {output.evalue}" for output in cell.outputs if output.output_type == "error"]


CELLS = ("%%sh_session\necho one", "%%sh_session\necho two; (exit 3)", "%%sh_session\necho three")
FAILURE = ["CellCommandError: exit status 3 in session 'main'"]


def test_a_failing_cell_stops_the_notebook(home: Path) -> None:
    (one, two, three), raised = execute(notebook(*CELLS), home)
    assert (text_of(one), text_of(two), three.outputs) == ("one\n", "two\n", [])
    assert errors_of(two) == FAILURE
    assert raised == "CellExecutionError"


@pytest.mark.parametrize("options", [{"allow_errors": True}, {"shutdown_kernel": "immediate"}], ids=str)
def test_an_error_that_is_allowed_lets_the_notebook_go_on(home: Path, options: dict[str, object]) -> None:
    tags = () if "allow_errors" in options else ("raises-exception",)
    (two, three), raised = execute(notebook(*CELLS[1:], tags=tags), home, **options)
    assert (text_of(two), errors_of(two)) == ("two\n", FAILURE)
    assert text_of(three) == "three\n"
    assert raised == ""


def test_an_interrupt_by_time_limit_is_an_error_and_the_session_lives_on(home: Path) -> None:
    book = notebook(f"%%sh_session\nV=kept; echo go; touch {home}/begun; sleep 600", "%%sh_session\necho $V")
    (long, after), raised = execute(book, home, interrupt_on_timeout=True, allow_errors=True)
    assert text_of(long).strip() == "go"
    assert errors_of(long) == ["CellInterrupted: the command in session 'main' was interrupted"]
    assert text_of(after) == "kept\n"
    assert raised == ""


def test_a_time_limit_of_the_cell_is_an_error_that_says_so(home: Path) -> None:
    [cell], raised = execute(notebook("%%sh_session --timeout 0.5\necho go; sleep 600"), home)
    assert errors_of(cell) == ["CellCommandError: exit status 130 in session 'main': timed out after 0.5 s"]
    assert raised == "CellExecutionError"


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (r"for i in 1 50 100; do printf '\r%3d%%' $i; sleep 0.1; done; echo", "100%\n"),
        (r"printf 'a\b\bxyz\n\e[1A\e[2Kover\n\a'", "over\n"),
        (r"printf 'one\r\ntwo\e[K\n\e]0;title\a\e(B'", "one\ntwo\n"),
        (r"printf 'before\n\e[?1049h\e[Hscreen\e[?1049l\e[?25hafter\n'", "before\nafter\n"),
        (r"printf '\e[31mred\e[0m \e[1;38;5;9mbold\n'", "red bold\n"),
        (r"printf '\xff\xfe\x00\x01é\n'", "��é\n"),
        (r"seq 1 400000; printf '\r\e[2J'", None),
    ],
    ids=["bar", "moves", "title", "screen", "colour", "bytes", "much"],
)
def test_stored_output_is_text_without_control_characters(
    cell: str, text: str, stored: dict[str, NotebookNode]
) -> None:
    outputs = stored[cell].outputs
    assert {output.output_type for output in outputs} == {"stream"}
    shown = SGR.sub("", text_of(stored[cell]))
    assert not CONTROL.search(shown)
    assert text is None or shown == text


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, NotebookNode]:
    """The cells of the test above, executed in one notebook."""
    test = test_stored_output_is_text_without_control_characters
    [mark] = [mark for mark in test.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]
    bodies = [row[0] for row in mark.args[1]]
    place = tmp_path_factory.mktemp("stored")
    with pytest.MonkeyPatch.context() as patch:
        own_home(place, patch)
        patch.setenv("SESSION_MAGICS_HOME", str(place))
        patch.setenv("TERM", "xterm")
        cells, raised = execute(notebook(*[f"%%sh_session\n{body}" for body in bodies]), place)
    assert raised == ""
    return dict(zip(bodies, cells, strict=True))


def test_a_command_that_wants_input_ends_at_once_and_the_error_says_why(home: Path) -> None:
    book = notebook(
        "%%sh_session\nread -p 'Name? ' name",
        "%%sh_session\npython3 -c 'import getpass; getpass.getpass()'",
        "%%sh_session\nless /etc/passwd",
        "%%sh_session\ncat; echo end",
    )
    cells, raised = execute(book, home, allow_errors=True)
    for cell in cells[:3]:
        [error] = errors_of(cell)
        assert error.endswith("in session 'main': it asked for input, which nobody can give here")
    assert (text_of(cells[3]), errors_of(cells[3])) == ("end\n", [])
    assert raised == ""


def test_papermill_hands_its_parameters_to_the_shell(home: Path) -> None:
    book = notebook("files, count = ['x'], 1", "%%sh_session --set files,count --get out\n"
                    'out="$count: $(printf "<%s>" "${files[@]}")"', "print(out)", tags=("parameters",))  # fmt: skip
    nbformat.write(book, home / "in.ipynb")
    words = ["--no-progress-bar", "-y", "files: ['a b', \"it's\"]", "-p", "count", "7", "in.ipynb", "out.ipynb"]
    done = subprocess.run(
        [sys.executable, "-m", "papermill", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=home
    )
    assert done.returncode == 0, done.stderr
    assert text_of(nbformat.read(home / "out.ipynb", as_version=4).cells[-1]) == "7: <a b><it's>\n"
