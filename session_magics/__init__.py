"""A real shell and named, lasting processes in a notebook.

``%load_ext session_magics`` in IPython gives the magics; the names below do the same from Python. Importing this
package needs no IPython and is cheap: each name is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from session_magics.errors import (
        CellCommandError,
        SessionBusy,
        SessionError,
        SessionExists,
        SessionNotFound,
        SessionNotRunning,
        SessionUnresponsive,
        StartFailed,
        StopIncomplete,
        StoreError,
        UsageMistake,
        WaitTimeout,
    )
    from session_magics.model import (
        BackingOff,
        CellResult,
        Command,
        Exited,
        FailedToStart,
        GaveUp,
        Lost,
        RestartLimit,
        Running,
        SessionInfo,
        Spec,
        State,
        Unknown,
    )
    from session_magics.registry import Registry
    from session_magics.run import run_cell
    from session_magics.session import Session

_ERRORS = (
    "CellCommandError SessionBusy SessionError SessionExists SessionNotFound SessionNotRunning SessionUnresponsive "
    "StartFailed StopIncomplete StoreError UsageMistake WaitTimeout"
)
_VALUES = (
    "BackingOff CellResult Command Exited FailedToStart GaveUp Lost RestartLimit Running SessionInfo Spec State Unknown"
)
_WHERE = {
    **dict.fromkeys(_ERRORS.split(), "errors"),
    **dict.fromkeys(_VALUES.split(), "model"),
    "Registry": "registry",
    "Session": "session",
    "run_cell": "run",
}

__all__ = [
    "BackingOff",
    "CellCommandError",
    "CellResult",
    "Command",
    "Exited",
    "FailedToStart",
    "GaveUp",
    "Lost",
    "Registry",
    "RestartLimit",
    "Running",
    "Session",
    "SessionBusy",
    "SessionError",
    "SessionExists",
    "SessionInfo",
    "SessionNotFound",
    "SessionNotRunning",
    "SessionUnresponsive",
    "Spec",
    "StartFailed",
    "State",
    "StopIncomplete",
    "StoreError",
    "Unknown",
    "UsageMistake",
    "WaitTimeout",
    "load_ipython_extension",
    "run_cell",
    "unload_ipython_extension",
]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(importlib.import_module(f"session_magics.{_WHERE[name]}"), name)
    raise AttributeError(f"module 'session_magics' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(ip: InteractiveShell) -> None:
    """Register ``%%sh_session`` and ``%session``. Loading again keeps what is there."""
    from session_magics.magics.loading import load

    load(ip)


def unload_ipython_extension(ip: InteractiveShell) -> None:
    """Take the magics away; sessions live on."""
    from session_magics.magics.loading import unload

    unload(ip)
