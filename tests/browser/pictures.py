"""Pictures of pages, for people to look at: in the directory that SCREENSHOTS names, else in a temporary one."""

from __future__ import annotations

import functools
import os
import tempfile
from pathlib import Path

from playwright.sync_api import Page


@functools.cache
def directory() -> Path:
    """Where the pictures of this run are."""
    place = Path(os.environ.get("SCREENSHOTS") or tempfile.mkdtemp(prefix="session-magics-pictures"))
    place.mkdir(parents=True, exist_ok=True)
    return place


def take(page: Page, name: str) -> None:
    """Take a picture of what a page shows."""
    page.screenshot(path=directory() / f"{name}.png")


def dress(page: Page, theme: str) -> None:
    """Have JupyterLab or Notebook 7 wear a theme: "Light" or "Dark"."""
    page.evaluate(
        "async (t) => { await window.jupyterapp.commands.execute('apputils:change-theme', {theme: `JupyterLab ${t}`}); }",
        theme,
    )
    worn = "document.body.dataset.jpThemeLight === String(light) && !document.querySelector('#jupyterlab-splash')"
    page.wait_for_function(f"(light) => {worn}", arg=theme == "Light")


def both(page: Page, name: str) -> None:
    """Take a picture in the light theme and one in the dark one."""
    dress(page, "Dark")
    take(page, f"{name}-dark")
    dress(page, "Light")
    take(page, f"{name}-light")
