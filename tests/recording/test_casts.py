"""Asciicast files: what is written is read back, and what is broken is named by its line."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_magics import UsageMistake
from session_magics.recording.formats import Cast, CastEvent, Header, Lines, Version, read_cast
from session_magics.recording.playing import TITLE_LENGTH, Settings, clock, last_screen, still, title_of
from session_magics.recording.transcript import OutputText

TEXTS = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
TIMES = st.floats(0, 1e6).map(lambda time: round(time, 6))
EVENTS = st.lists(
    st.tuples(TIMES, st.sampled_from("oim"), TEXTS)
    | st.tuples(
        TIMES, st.just("r"), st.tuples(st.integers(1, 2000), st.integers(1, 1000)).map(lambda one: f"{one[0]}x{one[1]}")
    )
).map(lambda events: tuple(CastEvent(*event) for event in sorted(events)))
HEADERS = st.builds(
    Header,
    size=st.tuples(st.integers(1, 1000), st.integers(1, 2000)),
    timestamp=st.none() | st.integers(0, 1 << 40),
    title=TEXTS,
    command=TEXTS,
    idle_limit=st.none() | st.floats(0.1, 100),
    env=st.dictionaries(st.sampled_from(["TERM", "SHELL", "LANG"]), TEXTS.filter(bool)),
)


def written(cast: Cast, version: Version) -> bytes:
    lines = Lines(version)
    return b"".join([lines.header(cast.header), *map(lines.event, cast.events)])


def read(data: bytes) -> Cast:
    with tempfile.NamedTemporaryFile(suffix=".cast") as file:
        file.write(data)
        file.flush()
        return read_cast(file.name)


@settings(max_examples=60, deadline=None)
@given(HEADERS, EVENTS, st.sampled_from([2, 3]))
def test_what_is_written_is_read(header: Header, events: tuple[CastEvent, ...], version: Version) -> None:
    cast = Cast(header, events)
    data = written(cast, version)
    again = read(data)
    assert again.header == header
    assert [(event.code, event.data) for event in again.events] == [(event.code, event.data) for event in events]
    assert [event.time for event in again.events] == pytest.approx([event.time for event in events], abs=2e-6)
    assert len(data.split(b"\n")) == len(events) + 2


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.binary(max_size=12) | st.sampled_from(["é€😀\r\n".encode(), b"\x1b[?1049h\n", b"\x1b[?1049l"]), max_size=8
    )
)
def test_any_bytes_are_text_of_whole_characters_however_they_are_cut(pieces: list[bytes]) -> None:
    whole = OutputText(returns=True).feed(b"".join(pieces), final=True)
    text = OutputText(returns=True)
    parts = [*map(text.feed, pieces), text.feed(b"", final=True)]
    assert "".join(parts).replace("\r\r\n", "\r\n") == whole.replace("\r\r\n", "\r\n")
    plain = OutputText(returns=False)
    parts = [*map(plain.feed, pieces), plain.feed(b"", final=True)]
    assert "".join(parts) == b"".join(pieces).decode("utf-8", "replace")
    json.loads(written(Cast(Header(), tuple(CastEvent(0, "o", part) for part in parts[:1])), 2).split(b"\n")[1])


def test_line_ends_are_those_of_a_terminal_where_a_program_has_not_drawn() -> None:
    text = OutputText(returns=True)
    assert text.feed(b"a\nb\r\n\x1b[?10") == "a\r\nb\r\n"
    assert text.feed(b"49hx\ny") == "\x1b[?1049hx\ny"
    assert text.feed(b"\x1b[?1049lz\n") == "\x1b[?1049lz\r\n"


def test_exits_are_for_version_3() -> None:
    cast = Cast(Header(), (CastEvent(1, "o", "a"), CastEvent(2.5, "x", "3")))
    assert read(written(cast, 3)).events == cast.events
    assert read(written(cast, 2)).events == cast.events[:1]


def test_version_1_and_the_freedoms_of_the_others() -> None:
    old = {"version": 1, "width": 80, "height": 24, "duration": 2, "stdout": [[0.5, "a"], [1.0, "b"]]}
    for data in (json.dumps(old), json.dumps(old, indent=2)):
        assert [(event.time, event.data) for event in read(data.encode()).events] == [(0.5, "a"), (1.5, "b")]
    cast = read(
        b'{"version": 3, "term": {"cols": 9, "rows": 5}}\n# so\n\n[1, "o", "a"]\n#\n[2, "z", "?"]\n[3, "r", "10x6"]'
    )
    assert (cast.duration, cast.header.size, cast.final_size) == (6.0, (5, 9), (6, 10))
    back = read(b'{"version": 2, "width": 9, "height": 5}\n[2, "o", "a"]\n[1, "o", "b"]\n')
    assert [event.time for event in back.events] == [2, 2]


HEAD = b'{"version": 2, "width": 80, "height": 24}\n'


@pytest.mark.parametrize(
    ("data", "line", "what"),
    [
        (b"", 1, "no header"),
        (b"hello\n", 1, "no header"),
        (b"[1]\n", 1, "no header"),
        (b'{"version": 4}\n', 1, "version 4 is not known"),
        (b'{"version": 2, "width": "80", "height": 24}\n', 1, "no header"),
        (b'{"version": 3, "width": 80, "height": 24}\n', 1, "no header"),
        (b'{"version": 2, "width": 0, "height": 24}\n', 1, "no terminal size"),
        (HEAD + b'[1, "o"]\n', 2, "no event"),
        (HEAD + b'[1, "o", "a"]\n[1.5, "o", "b', 3, "no event"),
        (HEAD + b'[NaN, "o", "a"]\n', 2, "no event"),
        (HEAD + b'[-1, "o", "a"]\n', 2, "no event"),
        (HEAD + b'[1, "o", 5]\n', 2, "no event"),
        (HEAD + b'[1, "r", "wide"]\n', 2, "no size"),
        (HEAD + b"[" * 100_000 + b"\n", 2, "no event"),
        (HEAD + b'[1, "o", "\xff"]\n', 2, "no event"),
    ],
)
def test_what_is_broken_is_named_by_its_line(data: bytes, line: int, what: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.cast"
    path.write_bytes(data)
    with pytest.raises(UsageMistake) as error:
        read_cast(path)
    assert str(error.value).startswith(f"{path}, line {line}: ") and what in str(error.value)
    assert "\n" not in str(error.value)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 200), st.binary(max_size=3))
def test_a_damaged_file_is_read_or_refused(at: int, damage: bytes) -> None:
    data = bytearray(
        written(Cast(Header(title="t", env={"TERM": "x"}), (CastEvent(1, "o", "é"), CastEvent(2, "r", "80x24"))), 3)
    )
    data[at : at + 2] = damage
    try:
        read(bytes(data))
    except UsageMistake as mistake:
        assert ", line " in str(mistake)


@pytest.mark.parametrize("version", [2, 3])
def test_a_time_that_no_clock_shows_is_refused(version: int) -> None:
    head = HEAD if version == 2 else b'{"version": 3, "term": {"cols": 80, "rows": 24}}\n'
    with pytest.raises(UsageMistake, match="line 3"):
        read(head + b'[1, "o", "x"]\n[1e308, "o", "y"]\n[1e308, "o", "z"]\n')


def test_a_title_is_one_line_that_commands_no_terminal() -> None:
    title = r"\u001b[2J\ud800\n" + "long" * 1000
    shown = title_of(read(HEAD.replace(b"}", b', "title": "' + title.encode() + b'"}')), "")
    assert shown.startswith("�[2J��long") and len(shown) == TITLE_LENGTH


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path / "none.cast", tmp_path):
        with pytest.raises(UsageMistake, match="cannot be read"):
            read_cast(path)


def test_the_text_that_stands_for_a_recording() -> None:
    events = (
        CastEvent(0, "o", "\x1b[2J\x1b[31mred\x1b[0m\r\nnext"),
        CastEvent(62, "r", "40x5"),
        CastEvent(63, "o", "\x1b[1;1HR"),
    )
    cast = Cast(Header(size=(24, 80)), events)
    assert still(cast, "demo").split("\n")[0] == "[demo] recording · 1:03 · 80×24"
    assert last_screen(cast).split("\n")[1] == "next"
    assert clock(3723) == "1:02:03"


def test_settings_given_come_before_those_of_the_cast() -> None:
    cast = Cast(Header(idle_limit=2.0), ())
    assert Settings.of(cast, None, None, None, autoplay=None) == Settings(1.0, 0.0, 2.0, True)
    assert Settings.of(cast, 4, 3, 0, autoplay=False) == Settings(4.0, 3, None, False)
