"""Other processes of the same user, each with a registry over the root that a test has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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


def said(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    return out.strip()
