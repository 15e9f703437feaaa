"""Every byte once and in order, whatever happens to the connection."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from lab import PANEL, VIEWS, Lab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

Open = Callable[[Sequence[str]], Lab]

LINES = 40_000
LINE = "%06.0f of forty thousand lines, long enough to need many messages"
FLOOD = f"%session start -- flood sh -c 'read go; seq -f \"{LINE}\" {LINES}; read stay'"
CUT = f"""(every) => {{
  const view = {VIEWS}[0];
  window.cuts = [];
  view.term.onWriteParsed(() => {{
    if (view.stream.parsed < every * (window.cuts.length + 1)) return;
    window.cuts.push(view.stream.position);
    {PANEL}.context.sessionContext.session.kernel._ws.close();
  }});
}}"""
"""Close the kernel's websocket as the server would, whenever so many bytes more are shown."""
CUT_EVERY = 600_000


def flooded(opened: Open) -> Lab:
    """A notebook whose terminal keeps all lines, and waits to print them."""
    lab = opened([FLOOD])
    lab.run(1)
    lab.wait_bar("badge", "waiting for input")
    keep_all(lab)
    return lab


def keep_all(lab: Lab) -> None:
    lab.wait_view("true")
    lab.view(f"view.term.options.scrollback = {LINES} + 1000")


def check_lines(lab: Lab) -> None:
    """Every line must be there exactly once, in order."""
    lab.wait_text(f"\n{LINE % LINES}")
    lines = [line for line in lab.text().split("\n") if line]
    assert lines == [LINE % number for number in range(1, LINES + 1)]


def test_many_lines_come_whole_and_in_order(opened: Open) -> None:
    lab = flooded(opened)
    lab.type("\n")
    check_lines(lab)


def test_a_connection_lost_again_and_again_loses_no_line(opened: Open) -> None:
    lab = flooded(opened)
    lab.page.evaluate(CUT, CUT_EVERY)
    lab.type("\n")
    check_lines(lab)
    cuts = lab.page.evaluate("() => window.cuts")
    assert len(cuts) >= 3 and cuts[2] < LINES * len(LINE % 1), cuts


def test_a_connection_lost_beside_a_second_tab_loses_no_line(opened: Open) -> None:
    # With another page there, the server keeps nothing for the page that was cut off: what it sends meanwhile is lost.
    lab = flooded(opened)
    lab.save()
    other = lab.second_tab()
    keep_all(other)
    lab.page.evaluate(CUT, CUT_EVERY)
    lab.type("\n")
    for one in (lab, other):
        check_lines(one)
    assert len(lab.page.evaluate("() => window.cuts")) >= 3
