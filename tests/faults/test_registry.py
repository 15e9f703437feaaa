"""Lines 11 to 16: many writers, killed writers, damage, full disks, unusable roots, and lists that do not wait."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import leaks
from disks import fill, free, need_root
from others import PROJECT, in_another_process
from rounds import DEADLINE, sessions, until, until_state
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
from session_magics.store import Store

pytestmark = pytest.mark.timeout(120)
SLEEP = Command(("sleep", "1000"))

# ------------------------------------------------------------------ many writers

WRITERS = 8
UPDATES = 200  # of each writer
KILLS = 40
NAMES = 4  # that a writer has
P99 = 0.1

# Changes its own names and sessions; says what it is about to do, and that it is done and how long that took.
WRITER = f"""
import os, random, sys, time; sys.path.insert(0, {PROJECT!r})
from dataclasses import replace
from pathlib import Path
from session_magics.model import Spec
from session_magics.store import Store
store, mine, first, last, seed = Store(Path(sys.argv[1])), sys.argv[2], *map(int, sys.argv[3:6])
draw = random.Random(seed * 1000 + first)
def say(*words):
    os.write(1, (" ".join(map(str, words)) + "\\n").encode())
for number in range(first, last):
    name = f"{{mine}}-{{draw.randrange({NAMES})}}"
    old = store.resolve(name)
    did = draw.choice(["write", "write", "take over", "remove"]) if old else "create"
    new = store.new_id() if did in ("create", "take over") else old
    say("try", number, name, did.split()[0], new)
    began = time.monotonic()
    if did in ("create", "take over"):
        store.create(Spec(new, name, ("true",), "/", labels={{"number": str(number)}}))
    if did == "create":
        store.claim(name, new)
    elif did == "take over":
        store.takeover(name, old, new)
        store.discard(old)
    elif did == "write":
        store.write_spec(replace(store.spec(old), labels={{"number": str(number)}}))
    else:
        store.remove(old, name)
    say("did", number, time.monotonic() - began)
"""


class Writer:
    """A process that updates the registry; killed, it is followed by another, which does the rest."""

    def __init__(self, store: Store, mine: str, seed: int) -> None:
        self.store, self.mine, self.seed = store, mine, seed
        self.next, self.times = 0, list[float]()
        self.truth: dict[str, tuple[str, int]] = {}  # name → its session and the last update that was acknowledged
        self.open: tuple[str, str, str, int] | None = None  # an update that was cut off
        self.process = self.start()

    def start(self) -> subprocess.Popen[str]:
        arguments = [str(self.store.root), self.mine, str(self.next), str(UPDATES), str(self.seed)]
        command = [sys.executable, "-c", WRITER, *arguments]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def follow(self, *, kill: bool) -> None:
        """Take in what it says to its end; after a kill, hold the registry against that, and go on."""
        if kill:
            self.process.kill()
        said, complaint = self.process.communicate(timeout=DEADLINE)
        assert not complaint, complaint
        for line in said.splitlines():
            self.take(line.split())
        if self.open is not None:
            self.settle()
        self.compare()

    def take(self, words: list[str]) -> None:
        if words[0] == "try":
            number, name, did, id = words[1:]
            self.open, self.next = (name, did, id, int(number)), int(number) + 1
            return
        assert self.open is not None
        self.times.append(float(words[2]))
        name, did, id, count = self.open
        self.open = None
        if did == "remove":
            del self.truth[name]
        else:
            self.truth[name] = (id, count)

    def settle(self) -> None:
        """Of an update that was not acknowledged either all or nothing is there."""
        assert self.open is not None
        name, did, id, number = self.open
        self.open = None
        now = self.store.resolve(name)
        if did == "remove" and now is None:
            del self.truth[name]
        elif did != "remove" and now == id and self.number(id) == number:
            self.truth[name] = (id, number)

    def number(self, id: str) -> int:
        return int(self.store.spec(id).labels["number"])

    def compare(self) -> None:
        names = {name: id for name, id in self.store.names().items() if name.startswith(f"{self.mine}-")}
        assert {name: (id, self.number(id)) for name, id in names.items()} == self.truth


READER = f"""
import sys; sys.path.insert(0, {PROJECT!r})
from pathlib import Path
from session_magics.model import Unknown
from session_magics.store import Store
from session_magics.store.states import STARTING
store, reads = Store(Path(sys.argv[1])), 0
print("go", flush=True)
import select
while not select.select([sys.stdin], [], [], 0)[0]:
    for name, info in store.infos().items():
        reads += 1
        torn = isinstance(info.state, Unknown) and info.state != STARTING
        assert not torn and info.argv == ("true",) and info.labels["number"].isdigit(), info
print(reads)
"""


def test_line_11_killed_writers_lose_nothing_and_no_reader_sees_half_of_anything(
    tmp_path: Path, rounds: Callable[[int, int], int]
) -> None:
    reads, times = 0, list[float]()
    for seed in range(rounds(20, 1)):
        store = Store(tmp_path / f"registry-{seed}")
        readers = [in_a_process(READER, store.root) for _ in range(2)]
        draw, writers = random.Random(seed), [Writer(store, f"w{number}", seed) for number in range(WRITERS)]
        for _ in range(KILLS):
            time.sleep(draw.uniform(0, 0.06))  # the moment is what the test is about
            writer = draw.choice(writers)
            writer.follow(kill=True)
            writer.process = writer.start()
        for writer in writers:
            writer.follow(kill=False)
            assert writer.next == UPDATES
            times += writer.times
        for reader in readers:
            said, complaint = reader.communicate("", timeout=DEADLINE)
            assert reader.returncode == 0, complaint
            reads += int(said)
        nothing_is_left_over(store)
    times.sort()
    assert reads >= 10_000 and times[len(times) * 99 // 100] <= P99, (reads, times[len(times) * 99 // 100])


def in_a_process(code: str, *arguments: object) -> subprocess.Popen[str]:
    """A process of Python that has said that it is ready."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stdout.readline() == "go\n"
    return process


def nothing_is_left_over(store: Store) -> None:
    """Once what killed writers left is old enough to be nobody's, the next start takes it away."""
    past = time.time() - 7200
    for path in store.root.rglob("*"):
        os.utime(path, (past, past), follow_symlinks=False)
    with sessions(store.root) as registry:
        registry.start("next", SLEEP)
        claimed = set(store.names().values())
        assert set(os.listdir(store.root / "sessions")) == claimed
        files = {path.name for path in (store.root / "sessions").glob("*/*")}
        assert files == {"exit", "spec.json", "alive", "run.json", "sock", "log.idx"}
        assert set(os.listdir(store.root / "names")) == set(store.names())
        registry.remove("next", force=True)


# ---------------------------------------------------------------- many starters

STARTER = """
print("go", flush=True)
for line in sys.stdin:
    name = line.strip()
    try:
        print(r.start(name, Command(("sleep", "1000"))).id, flush=True)
    except SessionExists:
        print("-", flush=True)
"""
STARTERS = 8


@contextmanager
def starters(root: Path) -> Iterator[Callable[[str], list[str]]]:
    """Eight processes that start the name they are told, all at once; the answers."""
    with ExitStack() as stack:
        each = [stack.enter_context(in_another_process(root, STARTER)) for _ in range(STARTERS)]
        for one in each:
            assert one.stdout is not None and one.stdout.readline() == "go\n"

        def start(name: str) -> list[str]:
            for one in each:
                assert one.stdin is not None
                one.stdin.write(name + "\n")
                one.stdin.flush()
            return [one.stdout.readline().strip() for one in each if one.stdout is not None]

        try:
            yield start
        finally:
            for one in each:
                assert one.stdin is not None
                one.stdin.close()


def test_line_12_of_eight_starters_of_one_name_one_wins(registry: Registry, rounds: Callable[[int, int], int]) -> None:
    with starters(registry.store.root) as start:
        for number in range(rounds(500, 12)):
            for stale in (False, True, True):
                won = [answer for answer in start("one") if answer != "-"]
                assert len(won) == 1, won
                session = registry.get("one")
                state = session.state()
                assert session.id == won[0] and isinstance(state, Running), state
                assert os.listdir(registry.store.root / "sessions") == won
                assert [process.pid for process in leaks.processes_of(registry.store.root)].count(state.pid) == 1
                if stale and number % 2:  # the name is left to a session that is lost
                    record = registry.store.run(session.id)
                    assert record is not None
                    os.kill(record.holder, signal.SIGKILL)
                    until_state(session, Lost)
                else:
                    session.stop(now=True)
            registry.remove("one", force=True)


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
    yield json.dumps(json.loads(data) | {"size": [1e999, 2]}).encode() if data[:1] == b"{" else b"1 1 code x 1.0 0"


@pytest.mark.parametrize("name", ["spec.json", "run.json", "exit", "log.idx", "log", "alive", "names", "lock"])
def test_line_13_damage_costs_one_session_and_no_wrong_end(
    registry: Registry, name: str, rounds: Callable[[int, int], int]
) -> None:
    bad = registry.start("bad", Command(("sh", "-c", "echo some; echo words; exit 3")))
    good = registry.start("good", SLEEP)
    bad.wait(10)
    until(lambda: not registry.get("bad").info().running)
    ended, runs = bad.settled(), good.state()
    root = registry.store.root
    [log] = bad.directory.glob("log.0*")
    special = {"names": root / "names" / "bad", "lock": root / "lock", "log": log}
    path = special.get(name, bad.directory / name)
    registry.store.release("good", "nobody")  # so that there is a lock
    whole = path.read_bytes()
    for data in damaged(whole, rounds(200, 8)):
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

DISK_BYTES = 1024 * 1024
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


@pytest.fixture
def disk(mount_disk: Callable[..., Path]) -> Path:
    return mount_disk(DISK_BYTES)


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
        assert registry.start("name", Command(("true",))).wait(timeout=10) == 0


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
            session.wait_for("0000000", 5)
            fill(disk)
            say(20_000)  # more than there is room for
            assert isinstance(session.state(), Running)
            valid(registry, "talks")
            free(disk)
            until(lambda: say(1) and gaps(session.directory))
            total = say(1)
        assert session.wait(timeout=10) == 9
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
        deaf.wait_for("tick", 10)
        fill(disk)
        (tmp_path / "gate").write_text("\n")
        assert leaves.wait(10) == 7
        registry.restart("b-again")
        assert isinstance(again.state(), Running) and again.info().generation == 2
        assert until_exited(again) == (None, signal.SIGTERM)
        assert until_exited(deaf) == (None, signal.SIGKILL)
        valid(registry, "a-leaves", "b-again", "c-deaf")
        assert sorted(clean(registry)) == ["a-leaves", "b-again", "c-deaf"]
        assert registry.infos() == [] and os.listdir(disk / "sessions") == []


def until_exited(session: Session) -> tuple[int | None, int | None]:
    state = session.stop(grace=0.3)
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
    one.wait(10)
    until(lambda: not getattr(one.state(), "background", True))  # the holder has gone, and its socket with it
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
    registry.start("one", Command(("true",))).wait(10)
    until(lambda: not leaks.processes_of(disk))
    before = picture(disk)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    refused(disk)
    with pytest.raises(StoreError, match="Read-only file system"):
        registry.start("one", SLEEP)
    assert [info.state for info in registry.infos()] == [Unknown("Read-only file system")]  # nobody can ask its lock
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    assert picture(disk) == before


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


# ------------------------------------------------------------ holders that hang

FINISHED, RUNNING, STOPPED = 40, 12, 5
MORE = 0.010  # seconds that a list may take longer


def test_line_16_a_list_does_not_wait_for_holders_that_hang(registry: Registry) -> None:
    for number in range(FINISHED):
        registry.start(f"done-{number}", Command(("true",))).wait(10)
    running = [registry.start(f"up-{number}", SLEEP) for number in range(RUNNING)]
    until(lambda: sum(info.running for info in registry.infos()) == RUNNING)
    states = {info.name: info.state for info in registry.infos()}
    plain = listing_time(registry)
    records = [registry.store.run(session.id) for session in running[:STOPPED]]
    try:
        for record in records:
            assert record is not None
            os.kill(record.holder, signal.SIGSTOP)
        slowed = listing_time(registry)
        assert {info.name: info.state for info in registry.infos()} == states
    finally:
        for record in records:
            assert record is not None
            os.kill(record.holder, signal.SIGCONT)
    assert slowed <= plain + MORE, f"{plain * 1000:.1f} ms, then {slowed * 1000:.1f} ms"


def listing_time(registry: Registry) -> float:
    """The seconds that 95 of 100 lists take at most."""
    times = []
    for _ in range(40):
        began = time.perf_counter()
        registry.infos()
        times.append(time.perf_counter() - began)
    return sorted(times)[len(times) * 95 // 100 - 1]
