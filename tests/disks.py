"""Small disks that are filled to the last byte, and what is asked of a machine that mounts them."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import leaks

DISK_BYTES = 1024 * 1024


def need_root(what: str) -> None:
    """Skip a test that only root on Linux can run."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip(f"{what} needs root on Linux")


@pytest.fixture
def mount_disk(root: Path) -> Iterator[Callable[..., Path]]:
    """``mount_disk(size, inodes=None)``: a fresh file system of so many bytes and files, gone after the test."""
    need_root("mounting a small file system")
    places: list[Path] = []

    def mount(size: int, inodes: int | None = None) -> Path:
        place = Path(tempfile.mkdtemp(prefix="smd"))
        options = f"size={size},mode=700" + (f",nr_inodes={inodes}" if inodes else "")
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], capture_output=True, text=True)
        if done.returncode:
            place.rmdir()
            pytest.skip(f"cannot mount a small file system: {done.stderr.strip()}")
        places.append(place)
        return place

    yield mount
    before = leaks.baseline()
    found = [line for place in places for line in leaks.leaked(place, before)]
    for place in places:
        subprocess.run(["umount", "-l", place], check=True)
        place.rmdir()
    assert not found


@pytest.fixture
def disk(mount_disk: Callable[..., Path]) -> Path:
    """A file system of DISK_BYTES bytes."""
    return mount_disk(DISK_BYTES)


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
