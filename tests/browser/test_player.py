"""Playing a recording in the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pictures
import pytest
from lab import Lab

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

Open = Callable[[Sequence[str]], Lab]

TIME = "Math.round(view.playback.time * 10) / 10"


def test_a_recording_plays_in_the_page(opened: Open) -> None:
    lab = opened(
        [
            "%%sh_session demo --no-rc --size 12x60\nprintf '\\033[32mgreen\\033[0m\\n'; sleep 0.7; echo é€ wide",
            "%%sh_session demo\nfor i in 1 2 3; do echo line $i; sleep 0.6; done; printf '\\033[c\\033[6n'",
            "%session record demo demo.cast --from cell:1 --v3 --force",
            "%session play demo.cast --no-autoplay",
            "%session play demo --speed 16 --idle-limit 1",
        ]
    )
    for cell in range(1, 5):
        lab.run(cell)
    lab.wait_view("view.playback")
    lab.wait_text("green")
    assert "wide" not in lab.text()
    assert [marker["label"][:10] for marker in lab.view("view.cast.markers")] == ["printf '\\0", "for i in 1"]
    speed = lab.page.locator(".sm-player select[name=speed]")
    speed.select_option("0.25")  # seconds until the next lines, for a page that is slow
    lab.page.locator(".sm-player button[data-action=play]").click()
    shown = lab.wait_view("view.text().includes('wide') && view.text()")
    assert "line 3" not in shown
    speed.select_option("16")
    ended = lab.wait_view("!view.playback.playing && !view.playback.writing && view.text()")
    speed.select_option("1")
    assert ended.split("\n") == ["green", "é€ wide", "line 1", "line 2", "line 3"]
    pictures.both(lab.page, "player")
    lab.page.keyboard.press("Home")
    lab.wait_view("view.text() === 'green'")
    lab.page.keyboard.press("]")
    lab.wait_view("view.text().endsWith('line 1')")
    lab.page.keyboard.press(">")
    assert lab.view("view.playback.speed") == 2
    lab.page.keyboard.press("End")
    lab.wait_view("view.text() === wanted", ended)
    # A session's log plays by itself, and what is saved is text.
    lab.run(5)
    lab.wait_text("line 3", 1)
    lab.wait_output(4, "[demo] recording")
    lab.wait_output(4, "line 3")
