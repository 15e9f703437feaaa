"""Other processes of the same user, each with a registry over the root that a test has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

PROJECT = str(Path(__file__).parent.parent)


def in_another_process(root: Path, code: str, **variables: str) -> subprocess.Popen[str]:
    """Python with a registry ``r`` over the same root."""
    start = f"import sys; sys.path.insert(0, {PROJECT!r})\nfrom session_magics import *\nr = Registry({str(root)!r})\n"
    return subprocess.Popen(
        [sys.executable, "-c", start + code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | variables,
    )


# Seconds for another process; a test has more.
LIMIT = 50.0


def said(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, err
    return out.strip()


def ran(code: str, *arguments: object, before: Sequence[str] = (), limit: float = LIMIT) -> str:
    """What Python printed that can import the package and the modules of tests, behind another program if need be."""
    start = f"import sys; sys.path[:0] = [{PROJECT!r}, {PROJECT + '/tests'!r}]\n"
    command = [*before, sys.executable, "-c", start + code, *map(str, arguments)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=limit)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def without(*capabilities: str) -> list[str]:
    """What to put before a program so that it lacks these rights of root; nothing where we have none ourselves."""
    if os.geteuid() != 0:
        return []
    if not shutil.which("setpriv"):
        pytest.skip("giving up rights of root needs setpriv")
    return ["setpriv", "--bounding-set", ",".join(f"-{one}" for one in capabilities)]
