"""What nbconvert makes of a notebook that JupyterLab saved."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pictures
import pytest
from lab import Lab
from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

Open = Callable[[Sequence[str]], Lab]

COLOURED = r"""%%sh_session
printf '\033[31mred\033[0m \033[1mbold\033[0m \033[38;5;208morange\033[0m\n'; for n in 1 2 3; do printf "step $n\r"; sleep 0.3; done; echo"""
CELLS = [
    COLOURED,
    r"""%session start -- job sh -c 'printf "\033[32mgreen\033[0m\n"; exit 3'""",
    "%session list",
    "1 + 1",
]
SGR = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def convert(path: Path, form: str, *options: str) -> str:
    """The text of a notebook in another form."""
    command = [sys.executable, "-m", "nbconvert", "--log-level=WARN", "--to", form, "--stdout", *options, str(path)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def saved(opened: Open) -> Path:
    """A notebook that was run in JupyterLab and saved."""
    lab = opened(CELLS)
    for cell in (1, 2):
        lab.run(cell)
    lab.wait_output(2, "exited 3")
    for cell in (3, 4):
        lab.run(cell)
    lab.save()
    return lab.path


def test_html_has_colours_without_a_network(saved: Path, browser: Browser) -> None:
    page = saved.with_suffix(".html")
    page.write_text(convert(saved, "html"))
    context = browser.new_context(offline=True)
    shown = context.new_page()
    shown.goto(page.as_uri(), wait_until="domcontentloaded")
    text = shown.locator("body").inner_text()
    for wanted in ("red bold orange", "step 3", "[job] sh -c", "exited 3", "green", "NAME"):
        assert wanted in text, text
    for unwanted in ("step 1", "Error", "widget", "\x1b"):
        assert unwanted not in text, text
    colour = "(word) => getComputedStyle([...document.querySelectorAll('pre span')].find((one) => one.textContent === word)).color"
    assert shown.evaluate(colour, "red") == "rgb(231, 92, 88)"
    assert shown.evaluate(colour, "green") == "rgb(0, 162, 80)"
    assert shown.evaluate(colour, "orange") == "rgb(255, 135, 0)"
    pictures.take(shown, "nbconvert-html")
    context.close()


def test_markdown_and_script_read_right(saved: Path) -> None:
    markdown = convert(saved, "markdown", "--template", "markdown-plain")
    for wanted in ("    red bold orange\n    step 3\n", "exited 3\n    green\n", "    2\n"):
        assert wanted in markdown, markdown
    assert not CONTROL.search(markdown), markdown
    # nbconvert's own template leaves the codes of colours as they are, whatever printed them.
    assert not CONTROL.search(SGR.sub("", convert(saved, "markdown")))
    script = convert(saved, "script")
    assert "get_ipython().run_cell_magic('sh_session', ''" in script
    assert not CONTROL.search(script), script
    compile(script, "script", "exec")
