"""A folder with all that is hard to copy, and what a folder has."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

HARD_NAMES = (
    "it's",
    'say "so"',
    "two\nlines\n",
    "-rf",
    "--",
    " ",
    "ünï漢",
    "a\\b",
    "*",
    "$HOME",
    "#",
    os.fsdecode(b"\xff\xfe\x80"),
)


def tree(root: Path) -> Mapping[str, object]:
    """All below a folder: content or target, and permissions."""
    found: dict[str, object] = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                found[os.path.relpath(path, root)] = os.readlink(path)
            elif stat.S_ISDIR(mode):
                found[os.path.relpath(path, root)] = stat.S_IMODE(mode)
            elif stat.S_ISREG(mode):
                found[os.path.relpath(path, root)] = (Path(path).read_bytes(), stat.S_IMODE(mode))
    return found


def plant(root: Path) -> Path:
    """A folder with all that is hard to copy."""
    (root / "deep" / "er").mkdir(parents=True)
    (root / "empty").mkdir()
    for number, name in enumerate(HARD_NAMES):
        (root / name).write_bytes(bytes(range(256)) * number)
        (root / "deep" / "er" / name).mkdir()
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o755)
    (root / "secret").write_text("x")
    (root / "secret").chmod(0o600)
    (root / "shared").write_text("x")
    (root / "shared").chmod(0o666)
    (root / ("n" * 200)).write_text("a long name")
    (root / "link").symlink_to("deep/er")
    (root / "dangling").symlink_to("nowhere")
    (root / "deep" / "up").symlink_to("../run")
    os.link(root / "run", root / "deep" / "same")
    (root / "big").write_bytes(os.urandom(300_000))
    (root / "deep").chmod(0o750)
    return root
