"""Ids of conversations: found in output however it is cut, and kept with the session."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_magics.agents.conversation import FILE, IdCapture, learn, remember, remembered
from session_magics.agents.tools import Tool, tools
from session_magics.errors import StoreError, UsageMistake
from session_magics.log import LogReader, segment_name

CODEX = tools()["codex"]
ID = "0198c1f2-3a4b-7c5d-8e9f-00112233aabb"
OTHER = "ffffffff-3a4b-7c5d-8e9f-00112233aabb"

# Output, and the id in it.
OUTPUTS = [
    (f"session id: {ID}\r\n", ID),
    (f"Session ID:{ID}", ID),
    (f"SESSION ID:\t{ID} and more", ID),
    (f"session id: {ID.upper()}", ID.upper()),
    (f"\x1b[1msession id:\x1b[0m \x1b[36m{ID}\x1b[39m\r\n", ID),
    (f"session \x1b[2mid\x1b[0m: \x1b[38;5;12m{ID[:10]}\x1b[0m\x1b[1m{ID[10:]}\x1b[m", ID),
    (f"\x1b]0;title\x07session id:\x1b]8;;http://x\x1b\\ {ID}\x1b]8;;\x1b\\", ID),
    (f"session\x1b[1Cid:\x1b[5;14H{ID}\x1b[K", ID),
    (f"session id:\r\n  {ID}\r\n", ID),
    (f"é✓ session id: {ID} " + "x" * 5000, ID),
    ("x" * 100_000 + f"session id: {ID}\n" + "y" * 100_000, ID),
    (f"session id: {ID}\nsession id: {OTHER}\n", ID),
    (f"session id: none\nsession id: {OTHER}\n", OTHER),
    (f"To continue this session, run \x1b[36mcodex resume {ID}\x1b[39m\n", ID),
    (f"To continue this session, run:\r\n  codex resume {ID}\r\n", ID),
    # What codex-cli 0.171.0 prints.
    (f"\x1b[1mreasoning summaries:\x1b[0m none\r\n\x1b[1msession id:\x1b[0m {ID}\r\n--------\r\n", ID),
    (f"the id {ID}", None),
    (f"codex resume {ID}", None),
    (f"session id: {ID[:-1]}\n", None),
    (f"session id: {ID[:-1]} {ID[-1]}", None),
    (f"session id:{' ' * 300}{ID}", None),
    ("", None),
]


def captured(tool: Tool, data: bytes, cuts: list[int]) -> str | None:
    capture = IdCapture(tool)
    found = None
    for begin, end in pairwise([0, *sorted(cuts), len(data)]):
        before, found = found, capture.feed(data[begin:end])
        assert before in (None, found)  # the first one stays
    return found


@pytest.mark.parametrize(("output", "id"), OUTPUTS)
def test_c10_capture_in_one_piece(output: str, id: str | None) -> None:
    assert captured(CODEX, output.encode(), []) == id


@pytest.mark.parametrize(("output", "id"), [case for case in OUTPUTS if len(case[0]) < 1000])
def test_c10_capture_byte_by_byte(output: str, id: str | None) -> None:
    data = output.encode()
    assert captured(CODEX, data, list(range(1, len(data)))) == id


def test_c10_the_first_id_stays() -> None:
    capture = IdCapture(CODEX)
    assert [capture.feed(f"session id: {id}\n".encode() + b"x" * 300) for id in (ID, OTHER)] == [ID, ID]


@pytest.mark.parametrize("blank", ["\r\n", "\n", "\r", "\x1b[2;1H", "\x1b[3C"])
def test_the_end_of_a_line_and_a_movement_part_words(blank: str) -> None:
    tool = Tool("demo", programs=("demo",), id_pattern=r"id\s+(\d{4})\s")
    assert captured(tool, f"id{blank}1234{blank}5".encode(), []) == "1234"


NOISE = st.sampled_from([
    b"session id: ", b"Session ID:", ID.encode(), ID[:20].encode(), ID[20:].encode(), OTHER.encode(), b"\x1b[1m",
    b"\x1b[0m", b"\x1b[3;4H", b"\x1b]0;t\x07", b"\x1b", b"\r", b"\n", b" ", b"\x08", b"\xc3\xa9", b"\xff", b"\x9b",
    b"y" * 300,
])  # fmt: skip


@given(st.lists(NOISE, max_size=12).map(b"".join), st.data())
def test_c10_however_the_output_is_cut_the_id_is_the_same(data: bytes, draw: st.DataObject) -> None:
    cuts = draw.draw(st.lists(st.integers(0, len(data)), max_size=8))
    assert captured(CODEX, data, cuts) == captured(CODEX, data, [])


@given(st.data())
def test_c10_an_id_is_found_whatever_is_around_it(draw: st.DataObject) -> None:
    before = draw.draw(st.text("abc \n\x1b[", max_size=20))
    data = f"{before}\x1b[0m session id: {ID}{draw.draw(st.text(max_size=600))}".encode()
    assert captured(CODEX, data, draw.draw(st.lists(st.integers(0, len(data)), max_size=4))) == ID


@pytest.mark.parametrize("name", ["claude", "grok", "gemini", "aider", "opencode", "shell", "custom"])
def test_c10_other_tools_tell_no_id(name: str) -> None:
    assert captured(tools()[name], f"session id: {ID}".encode(), []) is None


def test_an_id_that_would_be_an_option_is_not_taken() -> None:
    tool = Tool("demo", programs=("demo",), id_pattern=r"id=(\S{4});")
    assert captured(tool, b"id=-abc;", []) is None
    assert captured(tool, b"id=-abc; id=abcd;", []) == "abcd"


def test_an_id_is_remembered(tmp_path: Path) -> None:
    assert remembered(tmp_path) is None
    remember(tmp_path, OTHER)
    remember(tmp_path, ID)
    assert remembered(tmp_path) == ID
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("id", ["", "-x", "a\nb", "a\x1b[0m", " a", "x" * 201])
def test_what_can_be_no_id_is_not_remembered(tmp_path: Path, id: str) -> None:
    with pytest.raises(UsageMistake, match="no id of a conversation"):
        remember(tmp_path, id)
    assert remembered(tmp_path) is None


DAMAGE = [
    b"",
    b"{",
    b"\xff\xfe",
    b"null",
    b"[]",
    b'"x"',
    b"7",
    b'{"id": 7}',
    b'{"id": ""}',
    b'{"id": "-x"}',
    b"[" * 4000,
]


@pytest.mark.parametrize("content", DAMAGE)
def test_a_damaged_file_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert remembered(tmp_path) is None


@given(st.binary(max_size=60))
def test_any_file_is_read_without_an_exception(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    directory = tmp_path_factory.mktemp("session")
    (directory / FILE).write_bytes(content)
    assert remembered(directory) is None


def test_what_is_no_file_is_none(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    assert remembered(tmp_path) is None
    link = tmp_path / "link"
    link.mkdir()
    (link / FILE).symlink_to(tmp_path / "nowhere")
    assert remembered(link) is None
    assert remembered(tmp_path / "nowhere") is None


def test_a_directory_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        remember(tmp_path / "gone", ID)


def write_log(directory: Path, *segments: bytes) -> None:
    offset = 0
    for data in segments:
        (directory / segment_name(offset)).write_bytes(data)
        offset += len(data)


def test_c10_learn_looks_in_the_log_once(tmp_path: Path) -> None:
    write_log(tmp_path, b"x" * 300_000 + b"session id: " + ID[:7].encode(), ID[7:].encode() + b"\r\n" + b"y" * 300_000)
    with LogReader(tmp_path) as log:
        assert learn(tmp_path, CODEX, log) == ID
    for path in tmp_path.glob("log.*"):
        path.unlink()
    with LogReader(tmp_path) as log:
        assert learn(tmp_path, CODEX, log) == ID


def test_learn_prefers_what_was_remembered(tmp_path: Path) -> None:
    write_log(tmp_path, f"session id: {ID}\r\n".encode())
    remember(tmp_path, OTHER)
    with LogReader(tmp_path) as log:
        assert learn(tmp_path, CODEX, log) == OTHER


def test_learn_finds_nothing_in_other_logs(tmp_path: Path) -> None:
    write_log(tmp_path, f"session id: {ID}\r\n".encode())
    with LogReader(tmp_path) as log:
        assert learn(tmp_path, tools()["claude"], log) is None
    assert not os.path.exists(tmp_path / FILE)


def test_learn_does_not_need_to_write(tmp_path: Path) -> None:
    write_log(tmp_path, f"session id: {ID}\r\n".encode())
    with LogReader(tmp_path) as log:
        assert learn(tmp_path / "gone", CODEX, log) == ID
