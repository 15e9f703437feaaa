"""Programs that draw their progress over and over: as in a terminal while they run, the last frame in the end."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pictures
import pytest
from lab import Lab
from sources import Source, serve_slowly

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

Open = Callable[[Sequence[str]], Lab]
SGR = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Source]:
    """Where slow files are."""
    with serve_slowly(tmp_path) as source:
        yield source


def watch(lab: Lab, frame: str, go: Callable[[], object]) -> str:
    """Run the second cell, which stands still half-way, and see a frame in its terminal that matches a pattern.

    Then let it go on. What is saved, as plain text.
    """
    lab.start(1)
    shown = lab.wait_view("new RegExp(wanted).test(view.text()) && view.text()", frame)
    go()
    lab.wait_ran(1)
    text = SGR.sub("", lab.output_text(1))
    assert not CONTROL.search(text), text
    assert len(re.findall(frame, shown)) == 1, shown  # one frame at a time
    return text


def test_tqdm(opened: Open, tmp_path: Path) -> None:
    go = tmp_path / "go"
    code = (
        "from tqdm import tqdm; import os, time\nfor n in tqdm(range(40), ncols=60):\n time.sleep(0.04)\n"
        f' while n == 20 and not os.path.exists("{go}"): time.sleep(0.01)'
    )
    lab = opened([f"%%sh_session\n{sys.executable} -c '{code}'; echo done"])
    lines = watch(lab, r"\d\d%\|█", go.touch).split("\n")
    assert re.fullmatch(r"100%\|█+\| 40/40 \[\S+ *<\S+, *\S+\]", lines[0]), lines
    assert lines[1:] == ["done", ""]


def test_pip(opened: Open, files: Source, tmp_path: Path) -> None:
    options = f"--no-cache-dir --disable-pip-version-check --no-index --find-links {files.address} --no-deps"
    options += f" --trusted-host 127.0.0.1 -d {tmp_path}/got"
    lab = opened([f"%%sh_session\n{sys.executable} -m pip download {options} slowly"])
    text = watch(lab, r"━ *\d\.\d/2\.1 MB", files.go.set)
    pictures.take(lab.page, "pip")
    assert re.findall(r"(\S+)/2\.1 MB", text) == ["2.1"], text


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_curl(opened: Open, files: Source) -> None:
    file = f"{files.address}/data.bin"
    lab = opened([f"%%sh_session\ncurl -# -o /dev/null {file}; curl -o /dev/null {file}"])
    text = watch(lab, r"\d\d\.\d%", files.go.set)
    assert re.findall(r"([\d.]+)%", text) == ["100.0"], text
    assert len(re.findall(r"(?m)^ *100 .* 100 ", text)) == 1, text
    assert text.count("\n") == 4, text


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="needs apt-get")
def test_apt(opened: Open) -> None:
    lab = opened(["%%sh_session\nread go; apt-get --simulate install bash"])
    lab.start(1)
    lab.wait_bar("badge", "waiting for input")
    lab.type("\n")
    lab.wait_ran(1)
    text = SGR.sub("", lab.output_text(1))
    assert not CONTROL.search(text), text
    assert [line for line in text.split("\n") if "..." in line] == [
        "Reading package lists... Done", "Building dependency tree... Done", "Reading state information... Done",
    ]  # fmt: skip
