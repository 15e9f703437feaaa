"""Lines 11, 12 and 16: many writers and starters, killed ones too, and lists that wait for nobody."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import leaks
from others import PROJECT, in_another_process
from rounds import rounds, sessions, until, until_gone, until_state
from session_magics import (
    Command,
    Lost,
    Registry,
    Running,
)
from session_magics.backends.native import ANSWER_LIMIT
from session_magics.store import Store

pytestmark = pytest.mark.timeout(120)
SLEEP = Command(("sleep", "1000"))

# ------------------------------------------------------------------ many writers

WRITERS = 8
UPDATES = rounds(120, 200)  # of each writer
KILLS = 40
WRITERS_LIMIT = 100.0  # seconds for all that a writer has to do
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
        said, complaint = self.process.communicate(timeout=WRITERS_LIMIT)
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


def test_line_11_killed_writers_lose_nothing_and_no_reader_sees_half_of_anything(tmp_path: Path) -> None:
    reads, times = 0, list[float]()
    for seed in range(rounds(1, 20)):
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
            said, complaint = reader.communicate("", timeout=WRITERS_LIMIT)
            assert reader.returncode == 0, complaint
            reads += int(said)
        nothing_is_left_over(store)
    times.sort()
    slow = times[len(times) * 99 // 100]
    assert reads >= rounds(1_000, 10_000)
    if rounds(0, 1):  # a figure for a machine that does nothing else
        assert slow <= P99


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


def test_line_12_of_eight_starters_of_one_name_one_wins(registry: Registry) -> None:
    with starters(registry.store.root) as start:
        for number in range(rounds(12, 500)):
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


CLAIMER = f"""
import sys; sys.path.insert(0, {PROJECT!r})
from pathlib import Path
from session_magics.store import Store
store = Store(Path(sys.argv[1]))
for line in sys.stdin:
    name, old = line.split()
    mine = store.new_id()
    try:
        if old == "-":
            store.claim(name, mine)
        else:
            store.takeover(name, old, mine)
        print(mine, flush=True)
    except FileExistsError:
        print("-", store.resolve(name), flush=True)
"""


def test_line_12_of_eight_claims_of_one_name_one_succeeds(tmp_path: Path) -> None:
    store = Store(tmp_path / "registry")
    command = [sys.executable, "-c", CLAIMER, str(store.root)]
    starters = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(STARTERS)
    ]
    try:
        for round_ in range(rounds(50, 500)):
            name = f"name{round_}"
            old = "-"
            for _ in ("fresh", "taken over"):
                for starter in starters:
                    assert starter.stdin is not None
                    starter.stdin.write(f"{name} {old}\n")
                    starter.stdin.flush()
                answers = [starter.stdout.readline().split() for starter in starters if starter.stdout]
                winners = [answer[0] for answer in answers if answer[0] != "-"]
                assert len(winners) == 1, answers
                assert {answer[1] for answer in answers if answer[0] == "-"} == set(winners)
                assert store.resolve(name) == winners[0]
                old = winners[0]
    finally:
        for starter in starters:
            starter.communicate()
    assert not [path for path in (store.root / "names").iterdir() if path.name.startswith(".")]


# ------------------------------------------------------------ holders that hang

FINISHED, RUNNING, STOPPED = rounds(10, 40), 12, 5
# Seconds that a list may take longer: a figure for a machine that does nothing else. To ask a single one of those that
# hang would take ANSWER_LIMIT.
MORE = rounds(0, 1) * 0.010 or ANSWER_LIMIT / 2


def test_line_16_a_list_does_not_wait_for_holders_that_hang(registry: Registry) -> None:
    for number in range(FINISHED):
        until_gone(registry.start(f"done-{number}", Command(("true",))))
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
    """The seconds that a list takes: most of them on a machine that does nothing else, some where others run."""
    times = []
    for _ in range(40):
        began = time.perf_counter()
        registry.infos()
        times.append(time.perf_counter() - began)
    return sorted(times)[rounds(len(times) // 10, len(times) * 95 // 100 - 1)]
