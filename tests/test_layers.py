"""The layers hold: by contract (import-linter), and at run time where memory or load time depends on it."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import session_magics

PROJECT = Path(__file__).parent.parent
PACKAGE = PROJECT / "session_magics"
NOTEBOOK = {"IPython", "ipykernel", "traitlets", "jupyter_client", "zmq"}
# What the extension imports only when it is first used: each costs 10 to 70 ms.
LATE = {"pyte", "anywidget", "ipywidgets", "libtmux"}
# Modules that would cost each holder 0.3 to 2 MB.


def loaded_by(code: str, *flags: str) -> set[str]:
    """The modules that a fresh interpreter has after ``code``."""
    code = f"import sys; sys.path.insert(0, {str(PROJECT)!r})\n{code}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    return set(done.stdout.split())


def tops(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_the_import_contracts_are_kept() -> None:
    if importlib.util.find_spec("importlinter") is None:
        pytest.skip("import-linter is not installed")
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run([sys.executable, "-c", code, "--no-cache"], cwd=PROJECT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_importing_the_package_imports_no_notebook() -> None:
    assert not tops(loaded_by("import session_magics")) & (NOTEBOOK | LATE | {"psutil"})


def test_the_public_names_are_sorted_and_there() -> None:
    assert list(session_magics.__all__) == sorted(session_magics.__all__)
    for name in session_magics.__all__:
        assert getattr(session_magics, name) is not None
    assert not set(session_magics.__all__) - set(dir(session_magics))


def test_the_python_interface_imports_no_notebook() -> None:
    names = ", ".join(session_magics.__all__)
    assert not tops(loaded_by(f"from session_magics import {names}")) & NOTEBOOK


def test_loading_the_extension_imports_nothing_slow() -> None:
    code = "from IPython.core.interactiveshell import InteractiveShell as Shell"
    loaded = loaded_by(f"{code}\nShell.instance().extension_manager.load_extension('session_magics')")
    assert "session_magics.magics" in loaded
    assert not tops(loaded) & LATE


def test_the_package_is_marked_as_typed() -> None:
    assert (PACKAGE / "py.typed").exists()
