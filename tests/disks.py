"""A file system of a megabyte, and how it is filled to the last byte."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

DISK_BYTES = 1024 * 1024


@pytest.fixture
def disk() -> Iterator[Path]:
    """A file system of DISK_BYTES bytes."""
    if os.geteuid() != 0 or sys.platform != "linux":
        pytest.skip("mounting a small file system needs root on Linux")
    place = Path(tempfile.mkdtemp(prefix="smd"))
    options = f"size={DISK_BYTES},mode=700"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True, text=True)
    if mounted.returncode:
        place.rmdir()
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", place], check=True)
    place.rmdir()


def fill(disk: Path) -> None:
    """Take all that is free, to the last byte."""
    with open(disk / "ballast", "ab", buffering=0) as ballast:
        for size in (65536, 4096, 1):
            try:
                while ballast.write(b"x" * size) == size:
                    pass
            except OSError:
                continue


def free(disk: Path) -> None:
    (disk / "ballast").unlink()
