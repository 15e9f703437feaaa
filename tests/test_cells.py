"""Every case of cells.toml, by shell and family; cells/shells.toml says what is left out for a shell, and why."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from rounds import some
from score_cells import load

CELLS = Path(__file__).parent / "cells"
CASES = load(CELLS / "cells.toml")
LEFT_OUT = tomllib.loads((CELLS / "shells.toml").read_text(encoding="utf-8"))
FAMILIES = sorted({case["family"] for case in CASES})
# Two cores: a kernel starts while another one's case waits.
JOBS = "2"
# The limits of the cases are for a machine that does nothing else; a shared runner gets twice as long.
SLACK = "2" if os.environ.get("CI") else "1"


def play(shell: str, families: str, ids: list[str], on: str = "", target: str = "session") -> str:
    """Run the given cases on a shell, here or at a place; return the runner's lines, empty if all passed."""
    options = ["--options", f"--shell {shell}"] if shell != "bash" else []
    command = [sys.executable, CELLS / "run_cells.py", CELLS / "cells.toml", "--family", *families, "--only", *ids]
    command += ["--jobs", JOBS, "--slack", SLACK, "--on", on, "--target", target, *options]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    counted = re.search(r"^(\d+) passed, 0 failed$", done.stdout, re.M)
    return "" if done.returncode == 0 and counted else done.stdout + done.stderr


@pytest.mark.kernel
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("shell", ["bash", "zsh", "dash"])
def test_cells(shell: str, family: str) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    omitted = LEFT_OUT.get(shell, {})
    ids = [case["id"] for case in CASES if case["family"] == family and case["id"] not in omitted]
    report = play(shell, family, list(ids if shell == "bash" else some(ids, 3)))
    assert not report, "\n" + report


def test_what_is_left_out_exists_and_has_a_reason() -> None:
    known = {case["id"] for case in CASES}
    for shell, omitted in LEFT_OUT.items():
        assert set(omitted) <= known, shell
        assert all(omitted.values()), shell
