"""A stop ends the whole tree, gently first, whatever its members did to get away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from session_magics.holder import processes, stop, trees
from trees import BOMB

DEADLINE = 20.0  # seconds until a test gives up waiting for a condition
LONG = 30.0  # a grace, in seconds, that no test sits out
PACKAGES = str(Path(stop.__file__).parents[2])

pytestmark = [
    pytest.mark.usefixtures("root"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers"),
]

# A holder without the rest: it owns the terminal, reaps, and stops its tree when told to. Arguments: cookie, options
# as JSON, program. Tells the leader's pid, then the outcome, each as one line.
HOLDER = f"""
import sys; sys.path.insert(0, {PACKAGES!r})
import json, os, select, time
from session_magics.holder import processes, stop, trees

options = json.loads(sys.argv[2])
if options["subreaper"]:
    assert processes.become_subreaper()
leader, pty_fd = os.forkpty()
if not leader:
    name, value = sys.argv[1].split("=")
    os.execvpe(sys.argv[3], sys.argv[3:], dict(os.environ, **{{name: value}}))
if options["uid"]:
    os.setuid(options["uid"])
print(leader, flush=True)
watched, statuses, ladder, due, began = [0, pty_fd], {{}}, None, None, 0.0

def reap():
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            statuses[ended[0]] = os.waitstatus_to_exitcode(ended[1])
    except ChildProcessError:
        pass

while True:
    rest = 0.02 if due is None else max(0, due - time.monotonic())
    for fd in select.select(watched, [], [], rest)[0]:
        try:
            data = os.read(fd, 65536)
        except OSError:  # the terminal's last user has gone
            data = b""
        if fd == pty_fd and not data:
            watched.remove(pty_fd)
        if fd == 0 and data.startswith(b"!"):
            ladder.hurry(time.monotonic())
            due = time.monotonic()
        elif fd == 0 and data == b"stop":
            began = due = time.monotonic()
            ladder = stop.StopLadder(
                os.getpid(), leader, sys.argv[1].encode(), grace=options["grace"], now=began,
                hangup_leader=options["hangup"],
            )
        elif fd == 0:
            os.write(pty_fd, data)
    reap()
    if ladder and time.monotonic() >= due:
        due = ladder.step(time.monotonic())
        if due is None:
            break
seconds = time.monotonic() - began
reap()  # whoever ended just before the last look
assert ladder.finished and ladder.step(time.monotonic()) is None
print(json.dumps({{"survivors": ladder.survivors, "seconds": seconds, "status": statuses.get(leader)}}))
"""

# What the trees are made of: each writes its pid to $PIDS once it is as it is meant to be.
STAY = 'echo $$ >>"$PIDS"; exec sleep 600'
LISTEN = 'echo $$ >>"$PIDS"; while :; do sleep 600 & wait; done'
TREES = {
    "foreground": "sh stay",
    "background": "sh stay &",
    "nohup": "nohup sh stay >/dev/null 2>&1 &",
    "disown": "sh stay & disown",
    "setsid": "setsid sh stay &",
    "double fork": "(setsid sh stay >/dev/null 2>&1 &)",
    "double fork with a cleared environment": '(setsid env -i PIDS="$PIDS" PATH="$PATH" sh stay >/dev/null 2>&1 &)',
    "stopped": "sh stop-yourself &",
    "stopped and far away": "setsid sh stop-yourself &",
}
STUBBORN = {
    "deaf": "sh deaf &",
    "deaf and far away": '(setsid env -i PIDS="$PIDS" PATH="$PATH" nohup sh deaf >/dev/null 2>&1 &)',
}
SCRIPTS = {
    "stay": STAY,
    "deaf": f"trap '' INT TERM HUP; {STAY}",
    "stop-yourself": 'echo $$ >>"$PIDS"; kill -STOP $$; exec sleep 600',
    "last-words": f"""trap 'echo farewell >>"$PIDS.words"; exit 0' TERM; {LISTEN}""",
    "successor": f"""trap 'sh stay; exit 0' TERM; {LISTEN}""",
}


class Held:
    """A program under a mini-holder, with the processes that have announced themselves."""

    def __init__(self, place: Path, argv: list[str], **options: object) -> None:
        self.place, self.pids = place, place / "pids"
        self.pids.touch()
        for name, text in SCRIPTS.items():
            (place / name).write_text(text)
        settings = {"grace": LONG, "hangup": False, "subreaper": True, "uid": 0, **options}
        cookie = f"SESSION_MAGICS_SESSION={place.name}"
        self.holder = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", HOLDER, cookie, json.dumps(settings), *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=place,
            env={**os.environ, "PIDS": str(self.pids)},
        )
        assert self.holder.stdout is not None
        self.leader = int(self.holder.stdout.readline())
        self.members: dict[int, int] = {self.leader: processes.start_tick(self.leader)}

    def tell(self, data: bytes) -> None:
        assert self.holder.stdin is not None
        self.holder.stdin.write(data)
        self.holder.stdin.flush()

    def until(self, condition: Callable[[], bool]) -> None:
        limit = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < limit, (self.pids.read_text(), trees.descendants(self.holder.pid))
            time.sleep(0.005)

    def announced(self) -> list[int]:
        return [int(line) for line in self.pids.read_text().splitlines()]

    def until_announced(self, count: int) -> list[int]:
        """Wait for that many, and for the exec into sleep that may follow."""
        self.until(lambda: len(self.announced()) >= count)
        self.members |= {pid: processes.start_tick(pid) for pid in self.announced()}
        return self.announced()

    def alive(self) -> list[int]:
        found = []
        for pid, tick in self.members.items():
            one = processes.entry(pid)
            if one is not None and one.tick == tick and not one.gone:
                found.append(pid)
        return found

    def stop(self) -> dict[str, object]:
        self.tell(b"stop")
        return self.outcome()

    def outcome(self) -> dict[str, object]:
        output, _ = self.holder.communicate(timeout=DEADLINE)
        assert self.holder.returncode == 0
        return json.loads(output)

    def close(self) -> None:
        """Kill what a failed test has left, so that the next one does not suffer from it."""
        tree = [self.holder.pid, *trees.descendants(self.holder.pid), *self.alive()]
        for pid in tree:
            if self.holder.returncode is None or pid != self.holder.pid:
                processes.send(pid, processes.start_tick(pid), signal.SIGKILL)
        self.holder.communicate()


@pytest.fixture
def hold(root: Path) -> Iterator[Callable[..., Held]]:
    """Start a program under a mini-holder; a process that outlives the test fails it."""
    started: list[Held] = []

    def holder(*argv: str, **options: object) -> Held:
        started.append(Held(root, list(argv), **options))
        return started[-1]

    yield holder
    left = [pid for held in started for pid in held.alive()]
    for held in started:
        held.close()
    assert left == []


def shell(hold: Callable[..., Held], script: str, **options: object) -> Held:
    """An interactive bash, thus with job control, that was typed ``script``."""
    held = hold("bash", "--norc", "--noprofile", "--noediting", "-i", **options)
    held.tell(script.encode() + b"\n")
    return held


@pytest.mark.parametrize("tree", TREES)
def test_whatever_obeys_is_gone_long_before_the_grace_ends(hold: Callable[..., Held], tree: str) -> None:
    held = shell(hold, TREES[tree], hangup=True)
    (pid,) = held.until_announced(1)
    if "stopped" in tree:
        held.until(lambda: (one := processes.entry(pid)) is not None and one.state == "T")
    assert held.alive() == [held.leader, pid]
    outcome = held.stop()
    assert held.alive() == []
    assert outcome["survivors"] == []
    assert outcome["seconds"] < 5
    assert outcome["status"] != -signal.SIGKILL


@pytest.mark.parametrize("tree", STUBBORN)
def test_whatever_is_deaf_is_killed_after_the_grace(hold: Callable[..., Held], tree: str) -> None:
    held = shell(hold, STUBBORN[tree], hangup=True, grace=0.3)
    held.until_announced(1)
    outcome = held.stop()
    assert held.alive() == []
    assert outcome["survivors"] == []
    assert 0.3 <= outcome["seconds"] < 0.3 + stop.KILL_PATIENCE


def test_the_whole_matrix_at_once(hold: Callable[..., Held]) -> None:
    background = [tree for name, tree in (TREES | STUBBORN).items() if name != "foreground"]
    held = shell(hold, "\n".join([*background, TREES["foreground"]]), hangup=True, grace=0.3)
    held.until_announced(len(background) + 1)
    outcome = held.stop()
    assert held.alive() == []
    assert outcome["survivors"] == []


@pytest.mark.parametrize(("hangup", "status"), [(True, -signal.SIGHUP), (False, -signal.SIGKILL)])
def test_an_interactive_shell_obeys_a_hangup_only(hold: Callable[..., Held], hangup: bool, status: int) -> None:
    held = shell(hold, "sh stay &", hangup=hangup, grace=0.3)
    held.until_announced(1)
    assert held.stop()["status"] == status


def test_a_program_may_tidy_up_when_it_is_asked(hold: Callable[..., Held]) -> None:
    held = hold("sh", "last-words")
    held.until_announced(1)
    outcome = held.stop()
    assert held.alive() == []
    assert (outcome["survivors"], outcome["status"]) == ([], 0)
    assert Path(f"{held.pids}.words").read_text() == "farewell\n"  # asked once


def test_what_is_started_during_the_grace_is_asked_too(hold: Callable[..., Held]) -> None:
    held = hold("sh", "successor")
    held.until_announced(1)
    outcome = held.stop()
    held.until_announced(2)
    assert held.alive() == []
    assert (outcome["survivors"], outcome["status"]) == ([], 0)
    assert outcome["seconds"] < 5


def test_a_hurry_ends_the_grace(hold: Callable[..., Held]) -> None:
    held = hold("sh", "-c", "sh stay & exec sh deaf")
    held.until_announced(2)
    held.tell(b"stop")
    held.until(lambda: held.alive() == [held.leader])
    held.tell(b"!")
    outcome = held.outcome()
    assert held.alive() == []
    assert (outcome["survivors"], outcome["status"]) == ([], -signal.SIGKILL)
    assert outcome["seconds"] < 5


def test_without_grace_the_tree_is_killed_at_once(hold: Callable[..., Held]) -> None:
    held = hold("sh", "deaf", grace=0.0)
    held.until_announced(1)
    outcome = held.stop()
    assert outcome["status"] == -signal.SIGKILL
    assert outcome["seconds"] < 1


def test_an_escaped_orphan_is_found_by_its_cookie_where_there_is_no_subreaper(hold: Callable[..., Held]) -> None:
    held = shell(hold, TREES["double fork"] + "\n" + "(setsid sh deaf &)", hangup=True, subreaper=False, grace=0.3)
    held.until_announced(2)
    held.until(lambda: trees.descendants(held.holder.pid) == [held.leader])
    outcome = held.stop()
    assert held.alive() == []
    assert outcome["survivors"] == []


def test_a_fork_bomb_is_killed(hold: Callable[..., Held]) -> None:
    # They have no cookie.
    held = hold("env", "-i", sys.executable, "-I", "-S", "-c", BOMB, "50", grace=0.2)
    held.until_announced(1)
    held.until(lambda: len(_exploding()) > 40)
    outcome = held.stop()
    assert _exploding() == []
    assert outcome["survivors"] == []


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a process of another user")
def test_a_process_that_may_not_be_signalled_is_named_as_survivor(hold: Callable[..., Held]) -> None:
    held = hold("sh", "deaf", uid=65534, grace=0.1)
    held.until_announced(1)
    outcome = held.stop()
    assert outcome["survivors"] == [held.leader] == held.alive()
    assert outcome["seconds"] >= 0.1 + stop.KILL_PATIENCE
    assert processes.send(held.leader, held.members[held.leader], signal.SIGKILL)
    held.until(lambda: not held.alive())


def test_a_tree_that_is_empty_is_stopped_at_once() -> None:
    code = f"""
import sys; sys.path.insert(0, {PACKAGES!r})
import os
from session_magics.holder import stop
ladder = stop.StopLadder(os.getpid(), 0, b"SESSION_MAGICS_SESSION=none", grace=5, now=1, hangup_leader=False)
assert not ladder.finished
print(ladder.step(1), ladder.finished, ladder.survivors)
"""
    assert subprocess.check_output([sys.executable, "-I", "-S", "-c", code]) == b"None True []\n"


def _exploding() -> list[int]:
    found = []
    for one in processes.table().values():
        try:
            argv = processes.read_file(f"/proc/{one.pid}/cmdline").split(b"\0")
        except OSError:
            continue
        if not one.gone and BOMB.encode() in argv and HOLDER.encode() not in argv:
            found.append(one.pid)
    return found
