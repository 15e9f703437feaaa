"""What a cell shows of its output: all of it or both ends, in few messages, over a real log."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_magics.display import cell as display
from session_magics.display.cell import CellOutput
from session_magics.display.rich import Piece, Rich
from session_magics.holder.logfile import LogWriter
from session_magics.log import LogReader
from session_magics.text import LineModel

# Output messages that a cell may send: slow clients lose what comes beyond two thousand.
MOST_MESSAGES = 1000
NOTICE = re.compile(r"… ([\d,]+) bytes not shown: %session tail main has them …\n")


@dataclass
class Recorder:
    """A Writer that keeps what a reader would see."""

    live: bool = True
    clearable: bool = True
    shown: str = ""
    messages: int = 0
    rewritten: int = 0
    notices: list[str] = field(default_factory=list)

    def append(self, text: str) -> None:
        assert text
        self.shown += text
        self.messages += 1

    def rewrite(self, pieces: Sequence[Piece]) -> None:
        assert self.clearable
        self.shown = ""
        self.messages += 1
        for piece in pieces:
            self.append(piece) if isinstance(piece, str) else self.display(piece)
            self.rewritten += len(str(piece))

    def display(self, rich: Rich, *, again: bool = False) -> None:
        self.shown += f"[{rich.text}]"
        self.messages += 1

    def notice(self, line: str) -> None:
        self.notices.append(line)
        self.messages += 1


@dataclass
class Clock:
    now: float = 1000.0

    def monotonic(self) -> float:
        return self.now


class Played:
    """A command whose output is written piece by piece into a log, and shown as Foreground does it."""

    def __init__(
        self, directory: Path, clock: Clock, writer: Recorder, limit: int | None = None, *, earlier: bytes = b""
    ) -> None:
        self.session, self.result, self.clock = "main", None, clock
        self._file, self.log = LogWriter(str(directory)), LogReader(directory)
        self._file.append(earlier)
        self.begin = self._seen = self._file.end
        self.writer, self.sink = writer, CellOutput(writer, **({} if limit is None else {"limit": limit}))

    def write(self, data: bytes, *, after: float = 0.0) -> None:
        """Let time pass, showing what is due meanwhile, and print."""
        until = self.clock.now + after
        while self._seen < self._file.end and self.sink.due(self.clock.now) <= until:
            self.clock.now = max(self.clock.now, self.sink.due(self.clock.now))
            self._show()
        self.clock.now = until
        self._file.append(data)

    def look(self) -> None:
        """Show what there is, if it is time."""
        if self._seen < self._file.end and self.sink.due(self.clock.now) <= self.clock.now:
            self._show()

    def _show(self) -> None:
        self._seen = self._file.end
        self.sink.advance(self, self._seen)

    def finish(self, *, later: bytes = b"") -> str:
        end = self._file.end
        self._file.append(later)
        self.sink.finish(self, end)
        self.log.close()
        self._file.close()
        return self.writer.shown


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that stands still: the pace of messages is arithmetic."""
    clock = Clock()
    monkeypatch.setattr(display, "time", SimpleNamespace(monotonic=clock.monotonic))
    return clock


def play(pieces: Iterable[bytes], writer: Recorder, limit: int | None = None, *, later: bytes = b"") -> str:
    """The final text of a command that prints these pieces, with other output before and after it in the log."""
    with TemporaryDirectory() as directory:
        played = Played(Path(directory), Clock(), writer, limit, earlier=b"earlier\n")
        for piece in pieces:  # the last of them is seen at the end only
            played.sink.advance(played, played._file.end)
            played.write(piece)
        return played.finish(later=later)


def cut(data: bytes, at: Iterable[int]) -> Iterator[bytes]:
    edges = sorted({0, len(data), *(one % (len(data) + 1) for one in at)})
    return (data[a:b] for a, b in pairwise(edges))


def rendered(data: bytes) -> str:
    model = LineModel()
    model.feed(data)
    model.finish()
    return model.text()


LINES = st.lists(st.text("aé日🦊 ", max_size=40), max_size=60).map("\n".join)
CUTS = st.lists(st.integers(0, 10**6), max_size=8)
SCREEN = st.lists(st.sampled_from(["a", "é日", "\n", "\r", "\b", "\x1b[31m", "\x1b[m", "\x1b[K", "\x1b[A", "50%"])).map(
    "".join
)


# ------------------------------------------------------------------ how much


@settings(deadline=None)
@given(text=LINES, cuts=CUTS, spare=st.integers(0, 100))
def test_what_is_within_the_limit_is_shown_exactly(text: str, cuts: list[int], spare: int) -> None:
    data = text.encode()
    assert play(cut(data, cuts), Recorder(), len(data) + spare, later=b"idle\n") == text


@settings(deadline=None)
@given(text=LINES.filter(lambda text: len(text) > 2), cuts=CUTS, part=st.floats(0, 1), live=st.booleans())
def test_beyond_the_limit_both_ends_are_shown_and_the_rest_is_counted(
    text: str, cuts: list[int], part: float, live: bool
) -> None:
    data = text.encode()
    limit = int(part * (len(data) - 1))
    writer = Recorder(live=live)
    shown = play(cut(data, cuts), writer, limit, later=b"idle\n" * 99)
    notice = NOTICE.search(shown)
    assert notice is not None
    tail = shown[notice.end() :].encode()
    between = int(notice[1].replace(",", ""))
    head = data[: len(data) - len(tail) - between].decode()
    # where it ends in a line, the notice begins a new one
    assert shown[: notice.start()] == head + ("\n" if head and not head.endswith("\n") else "")
    assert data.endswith(tail)
    assert max(len(head.encode()), len(tail)) <= limit // 2


@pytest.mark.parametrize("step", [1, 7, 4096, 1 << 20])
@pytest.mark.parametrize("limit", [100, 10_000, 100_000])
def test_lines_are_not_cut_where_that_can_be(step: int, limit: int) -> None:
    data = "".join(f"{number} é日\n" for number in range(20_000)).encode()
    pieces = [data[at : at + step] for at in range(0, 3000, step)] + [data[-(-3000 // step) * step :]]
    head, _, tail = NOTICE.split(play(pieces, Recorder(), limit))
    lines = set(data.decode().split("\n"))
    assert {*head.split("\n"), *tail.split("\n")} <= lines
    assert len(head.encode()) > limit * 0.3
    assert len(tail.encode()) > limit * 0.3


@pytest.mark.parametrize("limit", [0, 1, 2, 7, 8])
def test_a_limit_of_next_to_nothing_holds(limit: int) -> None:
    writer = Recorder()
    shown = play([b"ab\n", b"cd\n" * 1000], writer, limit)
    assert "3,0" in shown or "2,99" in shown
    assert len(shown) < 80


def test_one_line_of_fifty_megabytes_is_bounded(clock: Clock, tmp_path: Path) -> None:
    writer = Recorder()
    played = Played(tmp_path, clock, writer)
    for _ in range(200):
        played.write(b"x" * 250_000, after=0.05)
        played.look()
    shown = played.finish()
    assert re.fullmatch(r"x{1000000}\n… 48,000,000 bytes not shown: %session tail main has them …\nx{1000000}", shown)


def test_bytes_that_the_log_lost_are_told(clock: Clock, tmp_path: Path) -> None:
    writer = Recorder()
    played = Played(tmp_path, clock, writer)
    played.write(b"before\n")
    played.look()
    played._file._lose(1234)
    played._file._retry_at = 0.0
    played.write(b"after\n")
    played.look()
    assert played.finish() == "before\nafter\n"
    assert writer.notices == ["1,234 bytes of the output are lost: the log had no room for them"]


def test_what_the_log_has_dropped_is_not_promised(clock: Clock, tmp_path: Path) -> None:
    played = Played(tmp_path, clock, Recorder(), 1000)
    played._file._cap, played._file._segment_bytes = 20_000, 4096
    for _ in range(100):
        played.write(b"0123456789\n" * 100, after=0.05)
        played.look()
    shown = played.finish()
    assert re.search(r"… 109,\d{3} bytes not shown: \d\d,\d{3} of them the log has dropped …", shown), shown
    assert shown.endswith("0123456789\n")


def test_no_output_is_no_message() -> None:
    writer = Recorder()
    assert play([], writer, later=b"idle\n") == ""
    assert writer.messages == 0


# ------------------------------------------------------------------ how it looks


@settings(deadline=None)
@given(text=SCREEN, cuts=CUTS)
def test_the_text_is_in_the_end_what_a_terminal_shows(text: str, cuts: list[int]) -> None:
    data = text.encode()
    assert play(cut(data, cuts), Recorder()) == rendered(data)
    assert play(cut(data, cuts), Recorder(live=False, clearable=False)) == rendered(data)


@settings(deadline=None)
@given(text=SCREEN, cuts=CUTS)
def test_where_nothing_can_be_cleared_what_stands_stays_and_the_end_is_right(text: str, cuts: list[int]) -> None:
    data = text.encode()
    seen: list[str] = []

    class Watched(Recorder):
        def append(self, text: str) -> None:
            super().append(text)
            seen.append(self.shown)

    shown = play(cut(data, cuts), Watched(clearable=False))
    assert all(shown.startswith(one) for one in seen)
    last = rendered(data).rpartition("\n")[2]
    assert shown.endswith(last)


def test_a_character_that_comes_in_pieces_is_never_shown_broken(clock: Clock, tmp_path: Path) -> None:
    writer = Recorder()
    played = Played(tmp_path, clock, writer)
    for byte in "é日🦊".encode():
        played.write(bytes([byte]), after=0.05)
        played.look()
        assert "�" not in writer.shown
    assert played.finish() == "é日🦊"


# ------------------------------------------------------------------ how often


def printing(clock: Clock, directory: Path, piece: bytes, *, every: float, seconds: float, **how: object) -> Played:
    played = Played(directory, clock, Recorder(), **how)
    for _ in range(round(seconds / every)):
        played.write(piece, after=every)
        played.look()
    return played


@pytest.mark.parametrize(
    ("piece", "every", "seconds"),
    [
        (b"line\n", 0.001, 30),
        (b"\r 50%", 0.01, 30),
        (b"\r 50%", 0.1, 3600),
        (b".", 0.00001, 1),
        (b"\x1b[1A\x1b[2Kone\ntwo\r", 0.02, 60),
        (b"line\n", 1, 24 * 3600),
        (b"\r%d", 10, 7 * 24 * 3600),
    ],
    ids=["lines", "bar", "hour", "dots", "two bars", "day", "week"],
)
def test_the_messages_of_a_cell_stay_below_a_thousand(
    clock: Clock, tmp_path: Path, piece: bytes, every: float, seconds: float
) -> None:
    played = printing(clock, tmp_path, piece, every=every, seconds=seconds)
    shown = played.finish()
    assert played.writer.messages <= MOST_MESSAGES
    assert shown == rendered(piece * round(seconds / every))


@pytest.mark.parametrize("seconds", [60, 3600, 24 * 3600])
def test_who_looks_on_is_never_far_behind(clock: Clock, tmp_path: Path, seconds: int) -> None:
    played = printing(clock, tmp_path, b"line\n", every=0.5, seconds=seconds)
    assert len(played.writer.shown) > 0.9 * (played._file.end - played.begin)


def test_a_bar_below_much_text_does_not_resend_it_with_every_frame(clock: Clock, tmp_path: Path) -> None:
    played = Played(tmp_path, clock, Recorder())
    played.write(b"a line of text\n" * 60_000)
    for frame in range(200):
        played.write(b"\r%d%%" % frame, after=0.05)
        played.look()
    assert 4_000_000 < played.writer.rewritten < 10 * 2_500_000


def test_the_first_byte_and_a_line_after_silence_are_shown_at_once(clock: Clock, tmp_path: Path) -> None:
    played = printing(clock, tmp_path, b"burst\n", every=0.001, seconds=30)
    played.write(b"lone\n", after=60)
    played.look()
    assert played.writer.shown.endswith("lone\n")
    first = Played(tmp_path / "..", clock, Recorder())
    first.write(b"$")
    first.look()
    assert first.writer.shown == "$"


def test_steady_output_is_shown_within_the_batch(clock: Clock, tmp_path: Path) -> None:
    played = Played(tmp_path, clock, Recorder())
    for _ in range(200):
        played.write(b"x", after=0.05)
        played.look()
        assert played.writer.shown.endswith("x")
        assert len(played.writer.shown) >= played._file.end - 1
    assert played.writer.messages <= 200
