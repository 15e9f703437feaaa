"""The line under a cell: what it says, where it stands, and the times that a result has."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import LiveKernel, Outcome
from live import live_kernel, run_with, until
from session_magics import Registry
from session_magics.display.status import status_line
from session_magics.run import run_cell
from session_magics.text.amounts import fine_time


@pytest.mark.parametrize(
    ("directory", "returncode", "seconds", "shown"),
    [
        ("/home/me", 0, 0.0378, "~ · ✓ 0 · 38ms"),
        ("/home/me/a b", 3, 4.24, "~/a b · ✗ 3 · 4.2s"),
        ("/home/meadow", 130, 61.2, "/home/meadow · ✗ 130 SIGINT · 1m 1s"),
        ("/x", 255, 1, "/x · ✗ 255 · 1.0s"),
        ("/x", -9, 7200, "/x · ✗ SIGKILL · 2h 0m"),
        ("", 0, 1, "✓ 0 · 1.0s"),
        ("/a\nb\x1b", 0, 1, "/a�b� · ✓ 0 · 1.0s"),
    ],
)
def test_the_line_says_directory_status_and_duration(
    directory: str, returncode: int, seconds: float, shown: str
) -> None:
    assert status_line(directory, returncode, seconds, home="/home/me").text == shown


def test_the_markup_says_the_same_with_all_escaped_and_no_script() -> None:
    line = status_line("/<script>&", 1, 2.0, home="/")
    markup = line.data["text/html"]
    assert "<script" not in markup and "/&lt;script&gt;&amp; · " in markup
    assert re.sub("<[^>]*>", "", markup).replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == line.text
    assert status_line("", -9, 0.0, lost=True).text == "? unknown"


@pytest.mark.parametrize(
    ("seconds", "shown"), [(-1, "0ms"), (0.9994, "999ms"), (0.9996, "1.0s"), (59.94, "59.9s"), (59.96, "1m 0s"),
                           (3599.6, "1h 0m"), (86400 * 2.5, "2d 12h")]
)  # fmt: skip
def test_a_duration_has_the_two_largest_units(seconds: float, shown: str) -> None:
    assert fine_time(seconds) == shown


# ------------------------------------------------------------------ in a kernel


@pytest.fixture(scope="module")
def shared(client_loop: None) -> Iterator[LiveKernel]:
    with live_kernel() as live:
        yield live


def displays(outcome: Outcome) -> list[str]:
    """The plain texts of what is no stream."""
    return [one["text"] for one in outcome.record.outputs if one["display"]]


@pytest.mark.kernel
def test_it_stands_below_the_output_of_a_failing_cell_too(shared: LiveKernel) -> None:
    outcome = shared.run("%%sh_session status --status-line\ncd; echo hello; (exit 3)")
    assert outcome.error.startswith("CellCommandError")
    stream, line = outcome.record.outputs
    assert (stream["text"], stream["display"], line["display"]) == ("hello\n", False, True)
    assert re.fullmatch(r"~ · ✗ 3 · [\d.]+m?s", line["text"]) and line["html"].startswith("<div style=")


@pytest.mark.kernel
def test_the_trait_asks_for_it_and_an_option_overrules_the_trait(shared: LiveKernel) -> None:
    assert displays(shared.run("%%sh_session status\n:")) == []
    shared.run("%config SessionMagics.status_line = True")
    try:
        assert len(displays(shared.run("%%sh_session status\n:"))) == 1
        assert displays(shared.run("%%sh_session status --no-status-line\n:")) == []
        once = shared.run("%%sh_session once --exec\ncd /; echo x")
        assert displays(once)[0].startswith("/ · ✓ 0 · ")
        captured = shared.run(
            "from IPython.utils.capture import capture_output\n"
            "with capture_output() as got:\n    get_ipython().run_cell_magic('sh_session', 'status', 'echo in')\n"
            "print([got.stdout, got.outputs])"
        )
        assert captured.text == "['in\\n', []]\n"
    finally:
        shared.run("%config SessionMagics.status_line = False")


@pytest.mark.kernel
def test_in_the_background_it_comes_when_the_command_ends(shared: LiveKernel) -> None:
    before = time.time()
    outcome = shared.run("%%sh_session behind --bg --status-line --result behind\nsleep 0.3; echo end; (exit 3)")
    assert displays(outcome) == [] and shared.run("print('behind' in globals())").text == "False\n"
    until(shared, lambda: displays(outcome))
    assert " · ✗ 3 · " in displays(outcome)[0]
    started, duration = map(float, shared.run("print(behind.started, behind.duration)").text.split())
    assert before <= started <= started + duration <= time.time() and duration >= 0.3


@pytest.mark.kernel
def test_a_result_knows_when_it_was_begun_and_how_long_it_took(shared: LiveKernel) -> None:
    before = time.time()
    shared.run("%%sh_session times --result t\nsleep 0.2")
    after = time.time()
    started, duration = map(float, shared.run("print(t.started, t.duration)").text.split())
    assert before <= started <= started + duration <= after and duration >= 0.2
    interrupt = ("on", lambda: shared.cells.interrupt(False))
    stopped = run_with(shared, "%%sh_session times --status-line --result t\necho on; sleep 60", interrupt)
    assert " · ✗ 130 SIGINT · " in displays(stopped)[0]
    started, duration = map(float, shared.run("print(t.started, t.duration)").text.split())
    assert after <= started <= started + duration <= time.time() and 0 < duration < 60


def test_what_a_start_up_file_takes_is_not_the_commands(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".bashrc").write_text("sleep 0.4\n")
    registry, before = Registry(root), time.time()
    try:
        first = run_cell(registry.shell("slow"), "sleep 0.05")
        second = run_cell(registry.get("slow"), "exit 3", check=False)
    finally:
        registry.stop_all(now=True)
    assert first.started - before >= 0.4 and first.duration >= 0.05
    assert first.started + first.duration <= second.started <= second.started + second.duration <= time.time()
