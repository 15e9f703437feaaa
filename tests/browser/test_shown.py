"""Status lines and displays of shell functions, as pages show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pictures
import pytest
from lab import BOTH, Lab
from playwright.sync_api import expect

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

Open = Callable[[Sequence[str]], Lab]

SVG = (
    "<svg xmlns='http://www.w3.org/2000/svg' width='120' height='60'><circle cx='30' cy='30' r='25' fill='teal'/></svg>"
)
CELLS = [
    "%config SessionMagics.displays = True\n%config SessionMagics.status_line = True",
    f'%%sh_session\necho before; echo "{SVG}" | display\n'
    "echo '<b>Dog</b>, not a cat' | displayHTML; echo after; cd /usr; (exit 3)",
    "%%sh_session\necho \"document.body.dataset.shown = 'by displayJS'\" | displayJS; echo done",
    '%%sh_session\nfor n in 1 2 3 4; do echo line $n; echo "<b class=counted>count $n</b>" | displayHTML one\n'
    "sleep 0.3; done; read word; echo $word",
]


@BOTH
def test_displays_and_status_lines_are_shown_and_saved(opened_alone: Open, frontend: str) -> None:
    lab = opened_alone(CELLS)
    for cell in (1, 2, 3):
        lab.run(cell)
    page = lab.page
    page.wait_for_function("() => document.body.dataset.shown === 'by displayJS'")
    expect(page.locator(".jp-OutputArea-output img, .jp-OutputArea-output svg").first).to_be_attached()
    expect(page.locator(".jp-OutputArea-output b", has_text="Dog")).to_be_visible()
    expect(page.get_by_text("✗ 3")).to_be_visible()
    pictures.both(page, f"displays-{frontend}")
    lab.start(4)
    page.locator("b.counted", has_text="count 4").wait_for()  # while it runs, below its terminal
    lab.wait_text("line 4")
    pictures.take(page, f"displays-live-{frontend}")
    lab.type("word\r")
    lab.wait_ran(4)
    kinds = [next(iter(one.get("data", one)), "") for one in lab.outputs(4)]
    texts = ["".join(one.get("text", one.get("data", {}).get("text/html", ""))) for one in lab.outputs(4)]
    assert texts[:3] == ["line 1\n", "<b class=counted>count 4</b>\n", "line 2\nline 3\nline 4\nword\nword\n"], kinds
    assert "/usr · " in texts[3] and len(texts) == 4
    saved = lab.save()
    assert [one["output_type"] for one in saved["cells"][2]["outputs"]] == [
        *("stream", "display_data", "display_data", "stream", "display_data", "error")
    ]
