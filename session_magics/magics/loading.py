"""Registering the magics with IPython, and taking them away."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from session_magics.magics import completing, inspecting
from session_magics.magics.magics import SessionMagics

SESSION = ("session_magics.session", "Session")
LISTING = ("session_magics.listing", "Listing")


def load(ip: InteractiveShell) -> None:
    """Register the magics, once."""
    if not isinstance(ip.magics_manager.registry.get("SessionMagics"), SessionMagics):
        magics = SessionMagics(ip)
        ip.register_magics(magics)
        completing.install(ip, magics)
        inspecting.install(ip, magics)
        _display_by(ip, {SESSION: magics.display_session, LISTING: magics.display_listing})


def unload(ip: InteractiveShell) -> None:
    """Take the magics away."""
    completing.remove(ip)
    inspecting.remove(ip)
    magics = ip.magics_manager.registry.pop("SessionMagics", None)
    if isinstance(magics, SessionMagics):
        magics.close()
        # else %config would go on setting the traits of this one after it was loaded again
        others: list[Any] = [one for one in ip.configurables if not isinstance(one, SessionMagics)]
        ip.configurables[:] = others
        _display_by(ip, {SESSION: None, LISTING: None})
    ip.magics_manager.magics["line"].pop("session", None)
    ip.magics_manager.magics["cell"].pop("sh_session", None)


def _display_by(ip: InteractiveShell, functions: Mapping[tuple[str, str], Callable[[Any], None] | None]) -> None:
    """Have values of these classes displayed by functions, or by none of ours again; the classes are not imported."""
    if ip.display_formatter is None:
        return
    formatter = ip.display_formatter.ipython_display_formatter
    for (module, name), function in functions.items():
        if function is not None:
            formatter.for_type_by_name(module, name, function)
        else:
            with contextlib.suppress(KeyError):
                formatter.pop(f"{module}.{name}")
