"""Recordings of real sessions: played again they show what the session shows."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import farplaces
from rounds import DEADLINE, sessions, until
from session_magics import Command, Exited, Registry, Session, StoreError, UsageMistake, run_cell
from session_magics.recording.formats import Cast, CastEvent, Header, read_cast
from session_magics.recording.recorder import CastWriter, Recordings
from session_magics.text.screen import picture
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_verb
from terminals import CLI, Terminal

pytestmark = pytest.mark.usefixtures("root")

home, place, there = farplaces.home, farplaces.place, farplaces.there

PAUSE = 0.7
"""Seconds in which a program prints nothing; an index tells of half a second."""
FIRST = "printf '\\033[32mgreen\\033[0m\\nna\\xc3'; until rm gate; do sleep 0.05; done 2>&-; printf '\\xafve \\xff\\n'"
SECOND = "printf '\\033[?1049hdrawn\\033[?1049l'\nseq 1 40 | column -c 60"


class Desk:
    """The verbs of one kernel."""

    def __init__(self, registry: Registry) -> None:
        self.recordings = Recordings()
        self._verbs = Verbs(registry, lambda text: None, recordings=lambda: self.recordings)

    def __call__(self, line: str) -> Any:
        return self._verbs.call(parse_verb(line))


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    with sessions(root) as opened:
        yield opened


@pytest.fixture
def desk(registry: Registry) -> Iterator[Desk]:
    made = Desk(registry)
    yield made
    made.recordings.close()


@pytest.fixture
def shell(registry: Registry, tmp_path: Path) -> Session:
    return registry.shell("demo", shell="bash", rc=False, size=(12, 60), cwd=str(tmp_path))


def run_first(shell: Session, place: Path) -> None:
    """Run it, with a pause between what the log has and what comes then, whatever the machine does meanwhile."""
    with contextlib.closing(shell.cell(FIRST)) as cell:
        until(lambda: shell.output().endswith(b"na\xc3"), what=shell.output)
        time.sleep(PAUSE)
        (place / "gate").touch()
        until(lambda: (cell.receive(1), cell.result)[1])


def screen(cast: Cast, size: tuple[int, int] | None = None) -> str:
    """What a terminal shows after a recording."""
    data = "".join(event.data for event in cast.events if event.code == "o").encode()
    lines = picture(data, size or cast.final_size, behind=False, returns=False).lines
    return "\n".join(lines).rstrip("\n")


def codes(cast: Cast) -> str:
    return "".join(event.code for event in cast.events)


def test_what_has_happened_is_recorded_and_plays_as_it_was(shell: Session, desk: Desk, tmp_path: Path) -> None:
    began = time.monotonic()
    run_first(shell, tmp_path)
    took = time.monotonic() - began
    shell.resize(12, 50)
    run_cell(shell, SECOND)
    live = shell.snapshot(styled=True)
    for version in (2, 3):
        recorded = desk(f"record demo {tmp_path}/all{version}.cast --from start --v{version}")
        cast = read_cast(recorded.path)
        assert screen(cast) == live
        assert (cast.header.size, cast.final_size) == ((12, 60), (12, 50))
        assert recorded.events == len(cast.events) and recorded.bytes == os.path.getsize(recorded.path)
    markers = [event.data for event in cast.events if event.code == "m"]
    assert markers == [FIRST, SECOND.partition("\n")[0]]
    naive = next(event for event in cast.events if "\u00efve" in event.data)
    green = next(event for event in cast.events if "green" in event.data)
    assert PAUSE - 0.1 < naive.time - green.time < took and "na" in green.data
    # Parts of it.
    second = read_cast(desk(f"record demo {tmp_path}/second.cast --from cell:2").path)
    last = read_cast(desk(f"record demo {tmp_path}/last.cast --from cell:-1 --to end").path)
    assert codes(second)[0] == "m" and "green" not in screen(second) and second.header.size == (12, 50)
    assert second.events[:4] == last.events[:4]
    first = read_cast(desk(f"record demo {tmp_path}/first.cast --from cell:1 --to cell:1").path)
    assert screen(first) == "\x1b[32mgreen\x1b[0m\nna\u00efve \ufffd" and codes(first).count("m") == 1
    assert screen(read_cast(desk(f"record demo {tmp_path}/ago.cast --from 1h --to 1d").path)) == ""
    # The log itself plays through the same code; where there is no page, as text.
    assert desk("play demo").split("\n")[1:] == live.split("\n")
    ended = shell.stop(now=True)
    assert isinstance(ended, Exited) and ended.signal
    over = read_cast(desk(f"record demo {tmp_path}/over.cast --from start --v3").path)
    assert codes(over).endswith("x") and over.events[-1].data == str(128 + ended.signal)


def test_what_happens_is_recorded_until_it_is_stopped(shell: Session, desk: Desk, tmp_path: Path) -> None:
    run_cell(shell, "echo before")
    path = tmp_path / "live.cast"
    assert desk(f"record demo {path} --v3").running
    with pytest.raises(UsageMistake, match="--stop ends it"):
        desk(f"record demo {tmp_path}/other.cast")
    run_first(shell, tmp_path)
    until(lambda: "\u00efve" in "".join(event.data for event in read_cast(path).events))  # whole at any time
    shell.resize(10, 50)
    run_cell(shell, SECOND)
    recorded = desk("record demo --stop")
    assert not recorded.running and not recorded.problem
    cast = read_cast(path)
    assert [event.data for event in cast.events if event.code in "mr"] == [FIRST, "50x10", SECOND.partition("\n")[0]]
    assert "before" not in screen(cast) and "40" in screen(cast) and screen(cast).startswith("\x1b[32mgreen")
    with pytest.raises(UsageMistake, match="not being recorded"):
        desk("record demo --stop")


def test_a_recording_ends_with_its_session(registry: Registry, desk: Desk, tmp_path: Path) -> None:
    program = "printf 'one\\033[?1049htop\\033[3;5Hhere'; read a; echo $a; printf '\\033[?1049l'; read b; exit 3"
    session = registry.start("prog", Command(("sh", "-c", program)))
    until(lambda: b"here" in session.output())
    desk(f"record prog {tmp_path}/new.cast --v3")
    desk(f"record prog {tmp_path}/old.cast --from start --v3")
    session.send("word\r")
    until(lambda: session.output().count(b"word") == 2)
    session.send("\r")
    session.wait(DEADLINE)
    until(lambda: not desk.recordings.running(session))
    new = read_cast(tmp_path / "new.cast")
    assert (new.events[-1].code, new.events[-1].data) == ("x", "3")
    # What was drawn before is there, though it began in the middle.
    drawn = screen(Cast(new.header, new.events[:1]))
    assert drawn.split("\n") == ["top", "", "    here"]
    assert codes(read_cast(tmp_path / "old.cast")).strip("o") == ""


@pytest.mark.parametrize("held", ["native", "tmux", "far"])
def test_pauses_are_known_whatever_holds_the_session(held: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    if held == "tmux" and shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    registry = request.getfixturevalue("there" if held == "far" else "registry")
    program = Command(("sh", "-c", "stty -echo; echo one; read a; echo two; read a; exit 3"))
    session = registry.start("prog", program, backend="tmux" if held == "tmux" else "auto")
    for word in ("one\n", "two\n"):
        session.wait_for(word, DEADLINE)
        time.sleep(PAUSE)
        session.send("\r")
    assert session.wait(DEADLINE) == 3
    desk = Desk(registry)
    cast = read_cast(desk(f"record prog {tmp_path}/x.cast --from start --v3").path)
    one, two = (next(event.time for event in cast.events if word in event.data) for word in ("one", "two"))
    assert cast.events[-1].code == "x"
    assert two - one > PAUSE - 0.1 and cast.duration - two > PAUSE - 0.1


def test_files_that_exist_are_left_alone(shell: Session, desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "mine.cast"
    path.write_text("mine")
    with pytest.raises(UsageMistake, match="--force"):
        desk(f"record demo {path} --from start")
    assert path.read_text() == "mine"
    assert desk(f"record demo {path} --from start --force").path == str(path)
    assert read_cast(path).header.title == "demo"
    for line, what in [
        (f"record demo {tmp_path}/no/where.cast", "cannot be written"),
        (f"record demo {tmp_path}/x.cast --from cell:9", "none has run"),
        (f"record demo {tmp_path}/x.cast --from end --to start", "before"),
        ("record demo", "FILE is missing"),
        ("record demo x.cast --from yesterday", "no place"),
        ("record demo x.cast --stop", "nothing else"),
        ("play demo --speed 99", "no speed"),
        (f"play {tmp_path}/none.cast", "cannot be read"),
        ("play nobody", "no session named"),
    ]:
        with pytest.raises((UsageMistake, LookupError), match=what):
            desk(line)
    assert not (tmp_path / "x.cast").exists()


def test_a_file_that_is_recorded_to_is_not_taken_by_another_recording(tmp_path: Path) -> None:
    path = tmp_path / "one.cast"
    first = CastWriter(str(path), 2, Header(title="first"))
    with pytest.raises(UsageMistake, match="is being recorded to"):
        CastWriter(str(path), 2, Header(title="second"), force=True)
    first.close()
    assert read_cast(path).header.title == "first"
    CastWriter(str(path), 2, Header(title="third"), force=True).close()
    assert read_cast(path).header.title == "third"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_disk_that_takes_no_header_keeps_no_descriptor() -> None:
    with pytest.raises(StoreError):
        CastWriter("/dev/full", 2, Header(), force=True)


def test_a_full_disk_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = CastWriter(str(tmp_path / "x.cast"), 3, Header())
    writer.write([CastEvent(1, "o", "one")])
    write = os.write

    def full(fd: int, data: bytes) -> int:
        if len(data) < 8:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(fd, data[: len(data) - 7])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreError, match="No space left"):
        writer.write([CastEvent(2, "o", "two"), CastEvent(3, "o", "three")])
    monkeypatch.undo()
    writer.close()
    assert [event.data for event in read_cast(tmp_path / "x.cast").events] == ["one", "two"]


def test_a_page_plays_so_much_and_no_more(
    desk: Desk, shell: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Verbs, "_most_played", 30)
    run_cell(shell, "seq 100")
    (tmp_path / "long.cast").write_bytes(b"x" * 31)
    for what in ("demo", f"{tmp_path}/long.cast"):
        with pytest.raises(UsageMistake, match="30B at most"):
            desk(f"play {what}")


def test_a_command_that_runs_is_known_behind_a_long_index(shell: Session) -> None:
    assert shell.command() is None
    with open(shell.directory / "log.idx", "ab") as index:
        index.write(b'{"at": 1, "t": 1.5, "kind": "begin", "n": 7, "text": "long"}\n')
        index.write(b'{"at": 1, "t": 1.5, "kind": "time"}\n' * 5000)
    assert shell.command() == "long"


def test_a_terminal_records_and_plays(registry: Registry, tmp_path: Path) -> None:
    session = registry.start("prog", Command(("sh", "-c", 'echo up; while read a; do echo "<$a>"; done')))
    path = tmp_path / "x.cast"
    with Terminal((*CLI, "record", "prog", str(path))) as terminal:
        until(lambda: path.exists() and path.stat().st_size)  # its header comes in one piece
        session.send("\x1b[cword\r")
        until(lambda: "<" in "".join(event.data for event in read_cast(path).events))
        terminal.type("\x03")
        assert terminal.wait() == 0
        terminal.until("recorded prog")
    asking = "\x1b[?25l\x1b[?1049h\x1b[c\x1b[6nshown\r\n"
    cast = Cast(Header(), (CastEvent(0, "o", asking), CastEvent(1, "o", "more"), CastEvent(3600, "o", "never")))
    with open(path, "wb") as file:
        from session_magics.recording.formats import Lines

        lines = Lines(2)
        file.write(b"".join([lines.header(cast.header), *map(lines.event, cast.events)]))
    with Terminal((*CLI, "play", str(path), "--speed", "16")) as terminal:
        terminal.until("shown", "more")
        terminal.type(" ")  # rests
        terminal.type("q")
        assert terminal.wait() == 0
        until(lambda: not terminal.switched(), what=lambda: terminal.raw)
        assert terminal.restored and not terminal.answers
    with Terminal((*CLI, "play", str(path), "--idle-limit", "0.01", "--start-at", "1")) as terminal:
        assert terminal.wait() == 0
