"""Registries of other programs: their rows, a directory with such a registry, and its import."""

from __future__ import annotations

import datetime
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from session_magics import Registry
from session_magics.importing.importer import import_file
from session_magics.importing.report import Report

NOW = time.time()


def stamp(ago: float = 0.0, now: float = NOW) -> str:
    moment = datetime.datetime.fromtimestamp(now - ago, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond:06d}789Z"


def keyed(**changes: Any) -> dict[str, Any]:
    row = {"backend": "native", "state": "exited", "dir": "/w", "started_at": stamp(60), "updated_at": stamp(30)}
    return {**row, **changes}


def listed(id: str, ago: float = 60, **changes: Any) -> dict[str, Any]:
    created = datetime.datetime.fromtimestamp(NOW - ago, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    row = {"id": id, "tool": "claude", "workDir": "/w", "status": "exited", "yoloMode": False, "createdAt": created}
    return {**row, **changes}


class Old:
    """A directory with another program's registry in it, and everything about it that must stay as it is."""

    def __init__(self, place: Path) -> None:
        self.file = place / "sessions.json"
        (place / "logs").mkdir()

    def holds(self, content: Any) -> Old:
        self.file.write_text(content if isinstance(content, str) else json.dumps(content))
        os.chmod(self.file, 0o444)
        return self

    def sessions(self, **rows: Any) -> Old:
        return self.holds({"version": 1, "updated_at": stamp(), "sessions": rows})

    def look(self) -> list[tuple[str, int, bytes]]:
        files = sorted(path for path in self.file.parent.rglob("*") if path.is_file())
        return [(str(path), path.stat().st_mtime_ns, path.read_bytes()) for path in files]


@pytest.fixture
def old(tmp_path: Path) -> Iterator[Old]:
    yield Old(tmp_path)


def taken_over(registry: Registry, old: Old) -> Report:
    before = old.look()
    report = import_file(registry.store, old.file)
    assert old.look() == before, "another program's files were changed"
    return report
