"""Small disks that are filled to the last byte, and what is asked of a machine that mounts them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


def need_root(what: str) -> None:
    """Skip a test that only root on Linux can run."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip(f"{what} needs root on Linux")


def fill(disk: Path) -> None:
    """Take all bytes that are free on a small disk, to the last one."""
    with open(disk / "ballast", "ab", buffering=0) as ballast:
        for size in (65536, 4096, 1):
            try:
                while ballast.write(b"x" * size) == size:
                    pass
            except OSError:
                continue


def free(disk: Path) -> None:
    """Give back what ``fill`` took."""
    (disk / "ballast").unlink(missing_ok=True)
