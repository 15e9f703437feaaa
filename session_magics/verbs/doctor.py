"""What a person would want to know who looks for the cause of trouble."""

from __future__ import annotations

import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from session_magics.errors import SessionError
from session_magics.model import Command, SessionInfo, describe
from session_magics.registry import Registry

TRIAL_LIMIT = 5.0
"""Seconds for the trial session of ``doctor``, which takes 0.05."""


def examine(registry: Registry) -> Sequence[tuple[str, str]]:
    """Look at all that sessions need, and at the sessions: (subject, finding) pairs."""
    from session_magics.holder import wire

    infos = registry.infos()
    counts: dict[str, int] = {}
    for info in infos:
        kind = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(info.state).__name__).lower()
        counts[kind] = counts.get(kind, 0) + 1
    disk = shutil.disk_usage(registry.store.root)
    shells = [name for name in ("bash", "zsh", "fish", "dash") if shutil.which(name)]
    rows = [
        ("package", f"{Path(__file__).parent.parent}, protocol {wire.VERSION}"),
        ("python", f"{sys.version.split()[0]} on {platform.system()} {platform.release()}"),
        ("root", f"{registry.store.root} ({registry.store.relocated or 'local disk'}, {disk.free >> 20} MB free)"),
        ("shells", ", ".join(shells)),
        ("tmux", shutil.which("tmux") or "not here"),
        ("trial", _trial()),
        ("sessions", ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())) or "none"),
    ]
    rows += [("trouble", f"{info.name}: {describe(info.state)}") for info in infos if _is_trouble(info)]
    rows += [("damaged", f"the name {name}: %session remove {name}") for name in registry.store.damaged_names()]
    return rows


def _trial() -> str:
    """Start a session in a registry of its own, and say how that went."""
    root = tempfile.mkdtemp(prefix="session-magics-")
    began = time.monotonic()
    try:
        session = Registry(Path(root)).start("trial", Command((sys.executable, "-I", "-S", "-c", "print('well')")))
        session.wait_for("well", TRIAL_LIMIT)
        session.stop(now=True)
        return f"a session started, printed and ended in {(time.monotonic() - began) * 1000:.0f} ms"
    except SessionError as error:
        return f"FAILED: {error}"
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _is_trouble(info: SessionInfo) -> bool:
    return type(info.state).__name__ in ("Lost", "Unknown", "FailedToStart")
