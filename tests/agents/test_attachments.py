"""Attachments are the files that a session's output names, as they are when they are listed."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from base64 import b64decode
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pytest

from homes import own_home
from rounds import DEADLINE, until
from session_magics import Command, Registry, Session
from session_magics.agents.attachments import (
    MENTIONS_KEPT,
    MENTIONS_READ,
    SHOWN_BYTES,
    SHOWN_TOTAL,
    Attachment,
    Attachments,
    Gallery,
)
from session_magics.log import segment_name

Play = Callable[..., Session]

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(2)</script></svg>'
HOSTILE = """"><img src=x onerror=alert(3)>.png"""
MP4 = b"\0\0\0\x18ftypmp42"
CELL_LIMIT = 60
# Seconds for 15 MB of names; all of them would take 20.
NAMES_LIMIT = 4


def png(size: int = 0) -> bytes:
    """A red dot as a PNG, with so many bytes behind it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    data = zlib.compress(b"\0\xff\0\0")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"") + bytes(size)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with work, home and tmp, which files may lie in, and outside."""
    place = Path(os.path.realpath(tmp_path))
    for name in ("work", "home", "tmp", "outside"):
        (place / name).mkdir()
    monkeypatch.setenv("HOME", str(place / "home"))
    monkeypatch.setattr(tempfile, "tempdir", str(place / "tmp"))
    return place


@pytest.fixture
def work(places: Path) -> Path:
    return places / "work"


@pytest.fixture
def play(real: Registry, work: Path) -> Play:
    """Starts a program of the shell in the directory ``work`` under the name ``a``."""
    return lambda script: real.start("a", Command(("sh", "-c", script), str(work)))


def attachments(session: Session) -> Attachments:
    return Attachments(session.directory, session.info().cwd)


def found_in(directory: Path, printed: bytes, cwd: Path) -> Gallery:
    """What a log with this in it has, seen from a directory."""
    directory.mkdir(exist_ok=True)
    (directory / segment_name(0)).write_bytes(printed)
    return Attachments(directory, cwd).scan()


def names(gallery: Gallery) -> list[str]:
    return [one.name for one in gallery]


class Page(HTMLParser):
    """What a page would load and run: (tag, source) of media, names of attributes, scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.media: list[tuple[str, str]] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        if tag in ("img", "video"):
            self.media.append((tag, dict(attrs)["src"] or ""))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_c8_files_are_listed_in_order_of_first_mention_each_once(play: Play, work: Path, places: Path) -> None:
    (work / "out").mkdir()
    (work / "out/plot.png").write_bytes(png())
    (work / "clip one.mp4").write_bytes(MP4)
    (places / "home/h.gif").write_bytes(b"GIF89a")
    session = play(
        "echo 'Saved to: ./out/plot.png,~/h.gif'; echo '\"clip one.mp4\" out/../out/plot.png'; echo none.png"
    )
    session.wait(DEADLINE)
    gallery = attachments(session).scan()
    assert names(gallery) == ["plot.png", "h.gif", "clip one.mp4"]
    status = os.stat(work / "out/plot.png")
    path = str(work / "out/plot.png")
    assert gallery[0] == Attachment(path, "plot.png", status.st_size, "image/png", status.st_mtime)
    assert [one.mime for one in gallery] == ["image/png", "image/gif", "video/mp4"]
    assert [line.split("  ")[0] for line in str(gallery).splitlines()] == ["NAME", "plot.png", "h.gif", "clip one.mp4"]


def test_c8_late_changed_and_deleted_files_are_right_at_every_listing(play: Play, work: Path) -> None:
    session = play("echo see late.png; read line; echo and more.webm; exec sleep 1000")
    session.wait_for("late.png", DEADLINE)
    watched = attachments(session)
    assert watched.scan() == []
    (work / "late.png").write_bytes(b"12345")
    assert [one.size for one in watched.scan()] == [5]
    (work / "late.png").write_bytes(b"1234567")
    os.utime(work / "late.png", (1000, 1000))
    assert [(one.size, one.modified) for one in watched.scan()] == [(7, 1000.0)]
    (work / "more.webm").touch()
    session.send("go\r")
    session.wait_for("more", DEADLINE)
    until(lambda: names(watched.scan()) == ["late.png", "more.webm"])
    (work / "late.png").unlink()
    assert names(watched.scan()) == names(attachments(session).scan()) == ["more.webm"]


def test_c8_a_name_in_a_line_without_an_end_is_found_and_may_grow(play: Play, work: Path) -> None:
    (work / "a.png").touch()
    session = play("stty -echo; printf 'show a.png'; read line; printf '%s and all' .bak; exec sleep 1000")
    session.wait_for("a.png", DEADLINE)
    watched = attachments(session)
    assert names(watched.scan()) == ["a.png"]
    session.send("\r")
    session.wait_for("a.png.bak and all", DEADLINE)
    assert watched.scan() == []


def test_c8_a_restart_keeps_them(play: Play, work: Path, real: Registry) -> None:
    (work / "a.png").touch()
    (work / "b.png").touch()
    session = play("if [ -e again ]; then echo b.png; else echo a.png; fi; touch again")
    session.wait(DEADLINE)
    watched = attachments(session)
    assert names(watched.scan()) == ["a.png"]
    session = real.restart("a")
    session.wait(DEADLINE)
    assert names(watched.scan()) == names(attachments(session).scan()) == ["a.png", "b.png"]


def test_c8_only_files_below_the_directory_home_and_temp_are_listed(places: Path, work: Path) -> None:
    for place in ("work", "home", "tmp", "outside"):
        (places / place / f"{place}.png").touch()
    (work / "out").symlink_to(places / "outside")
    (work / "link.png").symlink_to(places / "outside/outside.png")
    (work / "good.png").symlink_to(places / "home/home.png")
    (work / "loop.png").symlink_to("loop.png")
    (places / "works").mkdir()
    (places / "works/near.png").touch()
    printed = (
        f"work.png ~/home.png {places}/tmp/tmp.png {places}/outside/outside.png ../outside/outside.png "
        "out/outside.png link.png good.png loop.png ../works/near.png"
    )
    gallery = found_in(places / "log", printed.encode(), work)
    assert [one.path for one in gallery] == [f"{places}/{name}/{name}.png" for name in ("work", "home", "tmp")]


def test_what_is_no_regular_file_is_left_out_and_blocks_nobody(places: Path, work: Path) -> None:
    os.mkfifo(work / "fifo.png")
    (work / "dir.png").mkdir()
    (work / "null.png").symlink_to("/dev/null")
    printed = b"fifo.png dir.png null.png " + b"x" * 300 + b".png /dev/a.png work.png/b.png"
    assert found_in(places / "log", printed, work) == []
    fifo = Attachment(str(work / "fifo.png"), "fifo.png", 0, "image/png", 0.0)  # one that was a file when listed
    assert "<img" not in Gallery([fifo])._repr_html_()


def test_the_first_meaning_that_exists_is_meant(places: Path, work: Path) -> None:
    (work / "2.png").touch()
    (work / "x").mkdir()
    printed = b"step=1,lr=2.png saved:x/a.png"
    (work / "x/a.png").touch()
    assert names(found_in(places / "log", printed, work)) == ["2.png", "a.png"]
    (work / "step=1,lr=2.png").touch()
    assert names(found_in(places / "log", printed, work)) == ["step=1,lr=2.png", "a.png"]


def test_c8_a_log_without_its_beginning(places: Path, work: Path) -> None:
    for name in ("plot.png", "b.png", "c.png"):
        (work / name).touch()
    log = places / "log"
    log.mkdir()
    (log / segment_name(1000)).write_bytes(b"plot.png and b.png\nc.p")
    watched = Attachments(log, work)
    assert names(watched.scan()) == ["b.png"]
    (log / segment_name(5000)).write_bytes(b"ng plot.png\n")
    assert names(watched.scan()) == ["b.png", "plot.png"]


def test_the_newest_names_are_kept(places: Path, work: Path) -> None:
    (work / "0.png").touch()
    (work / f"{MENTIONS_KEPT}.png").touch()
    printed = b"".join(b"%d.png\n" % number for number in range(MENTIONS_KEPT + 1))
    assert names(found_in(places / "log", printed, work)) == [f"{MENTIONS_KEPT}.png"]


def test_a_log_of_nothing_but_names_holds_nobody_up(places: Path, work: Path) -> None:
    last = 2_000_000
    for number in (0, 1_000_000, last - 10, last):
        (work / f"{number}.png").touch()
    printed = b"".join(b"%d.png\n" % number for number in range(last + 1))
    began = time.process_time()
    assert names(found_in(places / "log", printed, work)) == [f"{last - 10}.png", f"{last}.png"]
    assert time.process_time() - began < NAMES_LIMIT


def test_what_is_drawn_over_and_over_hides_no_name(places: Path, work: Path) -> None:
    for name in ("again.png", "once.png"):
        (work / name).touch()
    many = b"again.png\n" * 5 * MENTIONS_READ
    assert names(found_in(places / "log", many + b"once.png\n" + many, work)) == ["again.png", "once.png"]


def test_images_and_videos_are_shown_and_the_rest_is_named(work: Path, places: Path) -> None:
    (work / "a.png").write_bytes(png())
    (work / "b.svg").write_bytes(SVG)
    (work / "c.mp4").write_bytes(MP4)
    (work / "big.png").write_bytes(png(3_000_000))
    (work / "d.tiff").write_bytes(b"II*\0")
    (work / "key.png").write_bytes(b"-----BEGIN OPENSSH PRIVATE KEY-----")
    gallery = found_in(places / "log", b"a.png b.svg c.mp4 big.png d.tiff key.png", work)
    page = Page(gallery._repr_html_())
    assert [(tag, source.partition(",")[0]) for tag, source in page.media] == [
        ("img", "data:image/png;base64"), ("img", "data:image/svg+xml;base64"), ("video", "data:video/mp4;base64")
    ]  # fmt: skip
    assert [b64decode(source.partition(",")[2]) for _, source in page.media] == [png(), SVG, MP4]
    assert page.tags == {"figure", "img", "video", "figcaption", "code", "p"}
    assert page.attributes == {"src", "alt", "style", "controls", "title"}
    for one in gallery:
        assert f"{one.name} · {one.size:,} bytes · {one.path}" in page.text
    assert Page(Gallery()._repr_html_()).text == str(Gallery()) == "no attachments"


def test_the_newest_are_shown_until_the_room_is_used_up(work: Path, places: Path) -> None:
    count = SHOWN_TOTAL // SHOWN_BYTES
    for number in range(count + 1):
        path = work / f"{number}.png"
        path.write_bytes(png(SHOWN_BYTES - len(png())))
        os.utime(path, (1000 + number, 1000 + number))
    printed = b" ".join(b"%d.png" % number for number in range(count + 1))
    html = found_in(places / "log", printed, work)._repr_html_()
    assert re.findall(r'<img [^>]* alt="(.*?)">', html) == [f"{number}.png" for number in range(1, count + 1)]
    assert "0.png · 2,000,000 bytes" in html


def test_a_hostile_name_does_nothing(work: Path, places: Path) -> None:
    (work / HOSTILE).write_bytes(png())
    (work / "dir\x1b[2J\n").mkdir()
    (work / "dir\x1b[2J\n/b.png").write_bytes(png())
    (work / "b.png").symlink_to("dir\x1b[2J\n/b.png")
    (work / "\u202egnp.png").write_bytes(png())
    gallery = found_in(places / "log", f"'{HOSTILE}' b.png \u202egnp.png".encode(), work)
    assert len(gallery) == 3
    page = Page(gallery._repr_html_())
    assert page.tags == {"figure", "img", "figcaption", "code"} and page.attributes == {"src", "alt", "style"}
    assert HOSTILE in page.text
    for text in (str(gallery), page.text):
        assert not re.search("[\x1b\u202e]", text) and text.count("\n") == len(gallery)


@pytest.mark.kernel
@pytest.mark.timeout(120)
def test_an_exported_notebook_shows_them(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_home(tmp_path, monkeypatch)
    for name, data in (("a.png", png()), ("b.svg", SVG), ("c.mp4", MP4), (HOSTILE, png())):
        (tmp_path / name).write_bytes(data)
    quoted = HOSTILE.replace('"', '\\"')
    cells = ["%load_ext session_magics", f"""%session start -- a printf "%s\\n" "a.png b.svg c.mp4 '{quoted}'" """]
    cells += ["%session wait a", "%session attachments a"]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, cells)), metadata=metadata)
    nbformat.write(notebook, tmp_path / "book.ipynb")
    command = [sys.executable, "-m", "nbconvert", "--log-level=WARN", "--to", "html", "--execute"]
    options = [f"--ExecutePreprocessor.timeout={CELL_LIMIT}", "--template=basic", "--stdout", "book.ipynb"]
    done = subprocess.run([*command, *options], cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = Page(done.stdout)
    kinds = [(tag, source.partition(";")[0]) for tag, source in page.media]
    assert kinds == [("img", "data:image/png"), ("img", "data:image/svg+xml"), ("video", "data:video/mp4"),
                     ("img", "data:image/png")]  # fmt: skip
    assert "onerror" not in page.attributes and "onload" not in page.attributes and "script" not in page.tags
