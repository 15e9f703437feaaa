"""Lines 13 to 15: damaged files, full disks and roots that cannot be used cost one session at most, and are told."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from disks import DISK_BYTES, fill, free, need_root
from rounds import DEADLINE, rounds, sessions, until, until_gone
from session_magics import (
    Command,
    Exited,
    FailedToStart,
    Lost,
    Registry,
    Running,
    Session,
    SessionError,
    StoreError,
    Unknown,
)
from session_magics.cleaning import clean
from session_magics.log import EventReader, LogReader

pytestmark = pytest.mark.timeout(120)
SLEEP = Command(("sleep", "1000"))

# --------------------------------------------------------------------- damage


def damaged(data: bytes, points: int) -> Iterator[bytes]:
    """The file cut, cut and filled with zeros, and with one bit flipped, at so many places; and what is no record."""
    for place in sorted({len(data) * number // points for number in range(points)}):
        yield data[:place]
        yield data[:place] + bytes(len(data) - place)
        flipped = bytearray(data or b"\0")
        flipped[place] ^= 1 << place % 8
        yield bytes(flipped)
    yield b"[" * 100_000
    yield b"9" * 10_000
    yield (
        json.dumps(json.loads(data.splitlines()[0]) | {"size": [1e999, 2]}).encode()
        if data[:1] == b"{"
        else b"1 1 code x 1.0 0"
    )


@pytest.mark.parametrize("name", ["spec.json", "run.json", "exit", "log.idx", "log", "alive", "names", "lock"])
def test_line_13_damage_costs_one_session_and_no_wrong_end(registry: Registry, name: str) -> None:
    bad = registry.start("bad", Command(("sh", "-c", "echo some; echo words; exit 3")))
    good = registry.start("good", SLEEP)
    ended, runs = until_gone(bad), good.state()
    root = registry.store.root
    [log] = bad.directory.glob("log.0*")
    special = {"names": root / "names" / "bad", "lock": root / "lock", "log": log}
    path = special.get(name, bad.directory / name)
    registry.store.release("good", "nobody")  # so that there is a lock
    whole = path.read_bytes()
    for data in damaged(whole, rounds(8, 200)):
        path.write_bytes(data)
        infos = {info.name: info for info in registry.infos()}
        assert set(infos) == {"bad", "good"}
        assert infos["good"].state == runs
        state = infos["bad"].state
        assert state == ended or isinstance(state, Lost | Unknown | FailedToStart), state
        session = registry.get("bad")
        for ask in (session.tail, session.snapshot, session.output, EventReader(session.directory).events):
            try:
                ask()
            except SessionError as error:
                assert "\n" not in str(error)
        if name == "names":
            assert state == ended and session.id == bad.id, "found again by its spec"
        registry.store.release("good", "nobody")
        if name != "lock":  # in which the last one wrote its pid
            assert path.read_bytes() == data, "kept as it was found"
    assert registry.get("good").stop(now=True) is not None
    registry.remove("bad", force=True)
    assert [info.name for info in registry.infos()] == ["good"]


# ------------------------------------------------------------------ full disks

PAGE = 4096

# Says numbers, as many as it is told by a FIFO, and then so by another; leaves with 9.
STEPS = """
import sys
said = 0
for line in open(sys.argv[1]):
    sys.stdout.write("".join("%07d\\n" % number for number in range(said, said + int(line))))
    sys.stdout.flush()
    said += int(line)
    open(sys.argv[1] + ".back", "w").write(str(said))
sys.exit(9)
"""


def valid(registry: Registry, *names: str) -> None:
    """The registry has these sessions, and nothing about them is damaged."""
    infos = registry.infos()
    assert [info.name for info in infos] == list(names)
    assert not [info for info in infos if isinstance(info.state, Unknown)], infos


def test_line_14_a_start_with_little_room_works_or_says_so_and_leaves_nothing(disk: Path) -> None:
    outcomes = set()
    with sessions(disk) as registry:
        registry.start("other", SLEEP)
        for pages in range(20):
            fill(disk)
            os.truncate(disk / "ballast", (disk / "ballast").stat().st_size - pages * PAGE)
            try:
                session = registry.start("name", SLEEP)
                outcomes.add("runs")
                assert isinstance(session.state(), Running)
                assert isinstance(session.stop(), Exited)
                registry.remove("name")
            except SessionError as error:
                outcomes.add("refused")
                assert re.search("(?i)no space left|disk is full", str(error)), error
                found = registry.find("name")
                assert found is None or isinstance(found.state(), FailedToStart)
                if found is not None:
                    registry.remove("name")
            valid(registry, "other")
            free(disk)
        assert outcomes == {"runs", "refused"}
        assert len(os.listdir(disk / "sessions")) == 1
        assert registry.start("name", Command(("true",))).wait(DEADLINE) == 0


def test_line_14_a_program_runs_on_and_what_is_dropped_is_marked_to_the_byte(disk: Path, tmp_path: Path) -> None:
    gate, back = tmp_path / "gate", tmp_path / "gate.back"
    os.mkfifo(gate)
    os.mkfifo(back)
    with sessions(disk) as registry:
        session = registry.start("talks", Command((sys.executable, "-I", "-S", "-c", STEPS, str(gate))))
        with open(gate, "w", buffering=1) as go:

            def say(count: int) -> int:
                go.write(f"{count}\n")
                return int(back.read_text())

            say(1)
            session.wait_for("0000000", DEADLINE)
            fill(disk)
            until_logged(session, 9 * say(20_000))  # more than there is room for
            assert isinstance(session.state(), Running)
            valid(registry, "talks")
            free(disk)
            until(lambda: say(1) and gaps(session.directory))
            total = say(1)
        assert session.wait(DEADLINE) == 9
        everything = b"".join(b"%07d\r\n" % number for number in range(total))
        with LogReader(session.directory) as log:
            assert log.end() == len(everything)
            pieces = list(log.read(0, log.end()))
        position, holes = 0, []
        for offset, data in pieces:
            if offset > position:
                holes.append((offset, offset - position))
            assert data == everything[offset : offset + len(data)]
            position = offset + len(data)
        assert position == len(everything)
        assert len(holes) == 1 and holes == gaps(session.directory)


def until_logged(session: Session, end: int) -> None:
    """Wait until the holder has taken in that much: a terminal's buffers have 640 KB."""
    with session.link() as link:
        deadline = time.monotonic() + DEADLINE
        while link.log_end < end:
            assert time.monotonic() < deadline, link.log_end
            link.watch(end - 1, 0)
            link.receive(0.1)


def gaps(directory: Path) -> list[tuple[int, int]]:
    """Each gap that the index tells of: where the log goes on, and how many bytes are missing before that."""
    events, _ = EventReader(directory).events()
    return [(event.at, event.data["lost"]) for event in events if event.kind == "gap"]


def test_line_14_ends_are_told_and_everything_can_be_ended_on_a_full_disk(disk: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    with sessions(disk) as registry:
        leaves = registry.start("a-leaves", Command(("sh", "-c", f"read line <{tmp_path}/gate; exit 7")))
        again = registry.start("b-again", SLEEP)
        deaf = registry.start("c-deaf", Command(("sh", "-c", "trap '' TERM; while :; do echo tick; sleep 0.01; done")))
        deaf.wait_for("tick", DEADLINE)
        fill(disk)
        (tmp_path / "gate").write_text("\n")
        assert leaves.wait(DEADLINE) == 7
        until_gone(leaves)
        registry.restart("b-again")
        assert isinstance(again.state(), Running) and again.info().generation == 2
        assert until_exited(again, DEADLINE) == (None, signal.SIGTERM)
        assert until_exited(deaf, 0.3) == (None, signal.SIGKILL)
        valid(registry, "a-leaves", "b-again", "c-deaf")
        assert sorted(clean(registry)) == ["a-leaves", "b-again", "c-deaf"]
        assert registry.infos() == [] and os.listdir(disk / "sessions") == []


def until_exited(session: Session, grace: float) -> tuple[int | None, int | None]:
    state = session.stop(grace)
    assert isinstance(state, Exited), state
    return state.code, state.signal


# -------------------------------------------------------------- unusable roots


def picture(place: Path) -> list[tuple[str, int, int]]:
    """Everything below a place, with modes and times."""
    paths = [place, *sorted(place.rglob("*"))] if place.exists() else []
    return [(str(path), path.lstat().st_mode, path.lstat().st_mtime_ns) for path in paths]


def refused(root: Path, seen: Path | None = None) -> None:
    """A registry there is refused in one line that names the place, and nothing is written."""
    before = picture(seen or root)
    with pytest.raises(StoreError) as caught:
        Registry(root).start("name", SLEEP)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 300 and str(root) in str(caught.value)
    assert picture(seen or root) == before


def test_line_15_a_root_that_is_not_ours_alone_is_refused(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    registry = Registry(mine)
    one = registry.start("one", Command(("true",)))
    until_gone(one)  # the holder, and its socket with it
    mine.rename(tmp_path / "moved")
    mine.symlink_to("moved")
    refused(mine, tmp_path / "moved")
    (tmp_path / "moved").chmod(0o777)
    refused(tmp_path / "moved")
    (tmp_path / "file").touch()
    refused(tmp_path / "file")
    refused(Path("/proc/nowhere"))


def test_line_15_a_root_of_somebody_else_is_refused(tmp_path: Path) -> None:
    need_root("giving a directory away")
    (tmp_path / "foreign").mkdir(mode=0o700)
    os.chown(tmp_path / "foreign", 12345, 12345)
    refused(tmp_path / "foreign")


def test_line_15_a_root_that_has_become_read_only_is_refused(disk: Path) -> None:
    registry = Registry(disk)
    until_gone(registry.start("one", Command(("true",))))
    before = picture(disk)
    until(lambda: remounted("ro", disk))  # not while a process that ends still has a file open for writing
    refused(disk)
    with pytest.raises(StoreError, match="Read-only file system"):
        registry.start("one", SLEEP)
    assert [info.state for info in registry.infos()] == [Unknown("Read-only file system")]  # nobody can ask its lock
    assert remounted("rw", disk)
    assert picture(disk) == before


def remounted(how: str, disk: Path) -> bool:
    return subprocess.run(["mount", "-o", f"remount,{how}", disk], capture_output=True).returncode == 0


def test_line_15_where_files_run_out_a_start_is_refused_and_leaves_nothing(mount_disk: Callable[..., Path]) -> None:
    outcomes = set()
    for inodes in range(2, 20):
        place = mount_disk(DISK_BYTES, inodes)
        try:
            with sessions(place) as registry:
                session = registry.start("name", SLEEP)
                assert isinstance(session.state(), Running)
                assert isinstance(session.stop(), Exited)
                outcomes.add("runs")
        except SessionError as error:
            assert re.search("(?i)no space left", str(error)), error
            outcomes.add("refused")
            if (place / "names").is_dir():
                found = Registry(place).find("name")
                assert found is None or isinstance(found.state(), FailedToStart)
                assert len(os.listdir(place / "sessions")) == (found is not None)
    assert outcomes == {"runs", "refused"}
