"""Cells in one shell session of a test, each answered with its status and its bytes."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from session_magics import CellResult, Registry, Session

# Seconds for a cell; far more than any here needs.
LIMIT = 40.0


class Talk:
    """A shell session to say cells to."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.result: CellResult | None = None
        self.notice = ""

    def __call__(self, text: str, *, interrupt_after: float | None = None) -> tuple[int, bytes]:
        """Run a cell; its status and output. ``result`` and ``notice`` tell the rest."""
        cell = self.session.cell(text)
        began = time.monotonic()
        try:
            while cell.result is None:
                passed = time.monotonic() - began
                assert passed < LIMIT, f"{text!r} does not end; so far {cell.output()!r}"
                if interrupt_after is not None and passed >= interrupt_after:
                    cell.interrupt()
                    interrupt_after = None
                cell.receive(0.5 if interrupt_after is None else interrupt_after - passed)
            self.result, self.notice = cell.result, cell.notice or cell.result.restarted
            return cell.result.returncode, cell.output()
        finally:
            cell.close()


@contextmanager
def talk(
    root: Path, shell: str, *, rc: bool = False, env: Mapping[str, str | None] | None = None, cwd: Path | None = None
) -> Iterator[Talk]:
    """A new session of that shell, stopped at the end."""
    registry = Registry(root)
    session = registry.shell("t", shell=shell, lifetime="detached", rc=rc, env=env, cwd=str(cwd or root))
    try:
        yield Talk(session)
    finally:
        registry.remove("t", force=True)


@contextmanager
def shell(name: str, rc: str | None = None) -> Iterator[Talk]:
    """A shell of that kind in a place of its own, with that text as its start-up file."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    place = Path(tempfile.mkdtemp(prefix="sm"))
    home = place / "home"
    home.mkdir()
    for file in (".bashrc", ".zshrc"):
        (home / file).write_text(rc or "")
    env = {"HOME": str(home), "ZDOTDIR": None, "GIT_TERMINAL_PROMPT": None, "GIT_ASKPASS": None, "SSH_ASKPASS": None}
    try:
        with talk(place, name, rc=rc is not None, env=env, cwd=home) as one:
            yield one
    finally:
        shutil.rmtree(place, ignore_errors=True)
