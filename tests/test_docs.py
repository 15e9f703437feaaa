"""What the pages in docs/ say holds: the traits, the links, the lines that can be typed."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import LiveKernel
from live import live_kernel

DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.md"))


def test_the_page_of_options_is_as_the_traits_are() -> None:
    """Mend: python docs/write_options.py, and a value for a new trait in its EXAMPLES."""
    done = subprocess.run([sys.executable, DOCS / "write_options.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def shared(client_loop: None) -> Iterator[LiveKernel]:
    with live_kernel() as live:
        yield live


@pytest.mark.kernel
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_configured_there_is_taken(page: Path, shared: LiveKernel) -> None:
    lines = re.findall(r"^%config SessionMagics\..+$", page.read_text(encoding="utf-8"), re.M)
    assert [(line, said) for line in lines if (said := shared.run(line).text)] == []
