"""Names of media files are found in output of every kind, however it is cut, and fast."""

from __future__ import annotations

import re
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from session_magics.agents.media import (
    ALTERNATIVES,
    AROUND,
    PATH_BYTES,
    TYPES,
    MediaScanner,
    Mention,
    estimate,
    mime_type,
    scan,
)

CORPUS: dict[str, list[dict[str, Any]]] = tomllib.loads(
    Path(__file__).with_name("media.toml").read_text(encoding="utf-8")
)
LINES = [(line["text"], line["names"]) for kind in CORPUS.values() for line in kind]
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
MB = 1 << 20
DENSE_BYTES = MB // 4

PIECES = (
    *(b"a.png", b"out/", b".png", b".p", b"ng", b".tif", b"f", b" ", b"'", b'"', b"\r\n", b"\n", b"/x", b",", b"("),
    *(b"\x1b[31m", b"\x1b[", b"5;5H", b"\x1b]8;;file:///x/b.gif\x07", b"\x1b\\", "é│".encode(), b"\\ ", b"http://"),
    *(b"x" * AROUND, b"y " * (AROUND // 2), b"z" * 997),
)
# A line that is searched over and over for what never comes would take minutes.
TEDIOUS = (
    *(
        b"a.png,",
        b".png",
        b"'",
        b"\x1b[",
        b"a://",
        b"(",
        b"x" * 10_000 + b".png,",
        ("“" * 99).encode() + b".png",
        b"\\ ",
        b"\x1b]8;;",
    ),
    *(b"'a.png", b"a=", b"\x1b[1m.\x1b[1mp", b" a.png x" + b"y" * 9_000),
)


def fed(data: bytes, cuts: list[int]) -> list[Mention]:
    """The mentions of data that comes in pieces."""
    scanner = MediaScanner()
    found = []
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(data)], strict=True):
        found += scanner.feed(data[begin:end])
    return found + scanner.rest()


def expected(names: list[str | list[str]]) -> list[Mention]:
    return [(name,) if isinstance(name, str) else tuple(name) for name in names]


@pytest.mark.parametrize(("text", "names"), LINES, ids=[repr(text)[:40] for text, _ in LINES])
def test_c8_names_of_the_corpus(text: str, names: list[str | list[str]]) -> None:
    assert scan(text.encode()) == expected(names)


def test_c8_the_corpus_is_large_and_all_of_it_is_found_in_one_piece_and_byte_by_byte() -> None:
    assert len(LINES) >= 60
    data = "\n".join(text for text, _ in LINES).encode()
    names = [mention for _, names in LINES for mention in expected(names)]
    assert scan(data) == names
    assert fed(data, list(range(1, len(data)))) == names


def test_c8_there_are_20_types() -> None:
    assert len(TYPES) == 20
    assert mime_type("/x/A.JPG") == "image/jpeg" and mime_type("b.mov") == "video/quicktime"
    assert mime_type("a.pdf") is None and mime_type("png") == "image/png"


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.lists(st.floats(0, 1), max_size=8))
@example([b"x" * AROUND, b" a.png", b"y" * AROUND, b",b.png "], [0.2, 0.5, 0.9])
def test_cuts_change_nothing(parts: list[bytes], where: list[float]) -> None:
    data = b"".join(parts)
    assert fed(data, [int(part * len(data)) for part in where]) == scan(data)


@given(st.binary(max_size=400), st.binary(max_size=400))
def test_any_bytes_are_taken(before: bytes, behind: bytes) -> None:
    for mention in scan(before + b".png" + behind):
        assert mention and all(mime_type(name) and not CONTROL.search(name) for name in mention)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="\"'`/\\"), min_size=1))
def test_a_quoted_name_is_whole(stem: str) -> None:
    assert any(f"d e/{stem}.png" == name for mention in scan(f"see 'd e/{stem}.png'.".encode()) for name in mention)


def test_c8_a_piece_of_any_size_is_scanned_whole() -> None:
    filler = b"nothing to see here\n" * 60_000
    assert scan(filler + b"/x/a.png\n" + filler + b"b.png" + b" " * 100_000) == [("/x/a.png",), ("b.png",)]


def test_in_a_line_without_an_end_names_are_found_whole() -> None:
    words = b"word " * 20_000
    data = words + b"out/a.png " + words + b"out/b.png" + b"x" * 50_000 + b" c.png"
    assert scan(data) == [("out/a.png",), ("c.png",)]


def test_in_a_line_without_an_end_no_part_is_taken_for_the_whole() -> None:
    behind = b" b.png " + b"|" * (AROUND - 6) + b"q.png"
    assert fed(behind + b"z\n", [len(behind)]) == scan(behind + b"z\n") == [("b.png",)]
    before = b"w out/a.png " + b"y" * (AROUND - 8) + b" b.png,"
    data = before + b"z" * 2 * AROUND
    assert fed(data, [len(before) + 9]) == scan(data) == [("out/a.png",), ("b.png",)]


def test_the_unfinished_line_is_no_mention_yet() -> None:
    scanner = MediaScanner()
    assert scanner.feed(b"see a.png") == [] and scanner.rest() == [("a.png",)]
    assert scanner.feed(b".bak and b.png") == [] and scanner.rest() == [("b.png",)]
    assert scanner.feed(b"\n") == [("b.png",)] and scanner.rest() == []


def test_what_follows_a_gap_may_begin_within_a_name() -> None:
    scanner = MediaScanner()
    scanner.feed(b"out/")
    scanner.gap()
    assert scanner.feed(b"plot") + scanner.feed(b".png b.png\n") == [("b.png",)]


def test_names_are_bounded() -> None:
    longest = "x" * (PATH_BYTES - 5)
    assert scan(f"{longest}.png {longest}xx.png".encode()) == [(f"{longest}.png",)]
    [mention] = scan(b"a=" * 1000 + b"b.png")
    assert len(mention) == ALTERNATIVES and mention[-1] == "b.png"


def test_how_many_there_are_is_told_fast() -> None:
    assert estimate(b"a.png out/b.JPG\n" * 1000 + b"c.\x1b[1mg\x1b[mif d.txt") == 2001


def seconds(data: bytes) -> float:
    scanner, began = MediaScanner(), time.process_time()
    for begin in range(0, len(data), MB // 4):
        scanner.feed(data[begin : begin + MB // 4])
    return time.process_time() - began


@pytest.mark.parametrize(
    "line",
    [
        b"epoch 12 step 84 loss 0.38710 lr 3.0e-4 took 0.12 s\n",
        b"\x1b[32m12\x1b[0m \x1b[1;38;5;7mmodule.part.main\x1b[0m \x1b[2mstep 1.714\x1b[22m\x1b[K\r\n",
        b"\x1b[12;34H\x1b[32mword.word\x1b[0m",
    ],
    ids=["text", "colours", "screen"],
)
def test_the_largest_log_is_scanned_in_no_time(line: bytes, densest: float) -> None:
    taken = seconds(line * (64 * MB // len(line)))
    assert taken < 6 * densest  # measured are 0.1 to 1.1


@pytest.fixture(scope="module")
def densest() -> float:
    """Seconds for ``DENSE_BYTES`` of names and nothing else."""
    return seconds(b"".join(b"%d.png " % number for number in range(DENSE_BYTES // 9)))


@pytest.mark.parametrize("part", TEDIOUS, ids=lambda part: repr(part[-12:]))
def test_the_time_is_linear(part: bytes, densest: float) -> None:
    count = DENSE_BYTES // len(part)
    data = b"".join(part + b"%d" % number for number in range(count)) + b".png "  # numbers: no line comes twice
    taken = seconds(data)
    assert taken < 10 * densest  # measured are 0 to 1.5; all that is there over and over would be a thousand
