"""The Python interface as a whole: it is typed, documented, and does what the README says."""

from __future__ import annotations

import importlib.util
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import session_magics
from session_magics import Registry, Session, testing

PROJECT = Path(__file__).parent.parent


def test_usage_as_people_write_it_is_well_typed(tmp_path: Path) -> None:
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), "tests/typing_usage.py"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def public(owner: type) -> list[tuple[str, object]]:
    return [
        (name, member) for name, member in inspect.getmembers(owner) if not name.startswith("_") and callable(member)
    ]


@pytest.mark.parametrize("module", [session_magics, testing], ids=["session_magics", "testing"])
def test_all_that_is_public_is_documented(module: object) -> None:
    for name in module.__all__:  # type: ignore[attr-defined]
        value = getattr(module, name)
        if not inspect.isclass(value):
            continue
        assert value.__doc__, name
        for method, member in public(value):
            if getattr(member, "__module__", "").startswith("session_magics"):
                assert inspect.getdoc(member), f"{name}.{method}"


def test_what_waits_says_in_which_unit() -> None:
    for owner in (Registry, Session):
        for name, member in public(owner):
            parameters = inspect.signature(member).parameters  # type: ignore[arg-type]
            if {"timeout", "grace"} & set(parameters):
                assert "second" in (inspect.getdoc(member) or ""), f"{owner.__name__}.{name}"


def test_the_readme_s_python_examples_work(root: Path) -> None:
    """Run the blocks that are plain Python (no magics), one after another, with a program that ends."""
    blocks = re.findall(r"```python\n(.*?)```", (PROJECT / "README.md").read_text(), re.S)
    code = "\n".join(block for block in blocks if "import" in block and "%" not in block)
    assert "Registry()" in code
    namespace: dict[str, object] = {}
    try:
        exec(compile(code, "README.md", "exec"), namespace)
    finally:
        stopped = Registry().stop_all(now=True)
    assert stopped == ["web"]
