"""Processes are seen as they are: odd names, zombies, orphans, reused pids, the terminal's foreground group."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_magics.holder import processes, trees

DEADLINE = 20.0  # seconds until a test gives up waiting for a condition
PACKAGES = str(Path(processes.__file__).parents[2])
linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

pytestmark = pytest.mark.usefixtures("root")


def until(condition: Callable[[], bool]) -> None:
    limit = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < limit, "waited in vain"
        time.sleep(0.005)


def end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    child.communicate()


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a program and wait for its first line."""
    children = []

    def starter(*argv: str, **options: object) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(argv, **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, **options})
        children.append(child)
        if child.stdout:
            assert child.stdout.readline() == b"up\n"
        return child

    yield starter
    for child in children:
        end(child)


@pytest.fixture
def sleeper(start: Callable[..., subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    return start("sh", "-c", "echo up; exec sleep 600")


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {PACKAGES!r})\n{code}"]


@given(name=st.binary(max_size=15), numbers=st.lists(st.integers(-1, 2**63), min_size=49, max_size=49))
def test_a_stat_line_is_read_whatever_the_name_holds(name: bytes, numbers: list[int]) -> None:
    line = b"77 (%s) S %s\n" % (name, b" ".join(b"%d" % number for number in numbers))
    one = processes.parse_stat(line)
    assert (one.pid, one.state, one.ppid, one.pgid, one.sid) == (77, "S", *numbers[:3])
    assert (one.tpgid, one.tick) == (numbers[4], numbers[18])


@linux_only
def test_a_process_with_a_hostile_name_is_seen_as_it_is(start: Callable[..., subprocess.Popen[bytes]]) -> None:
    name = b"a) Z 1 (\n) R"
    child = start(*python(f"open('/proc/self/comm', 'wb').write({name!r}); print('up', flush=True); sys.stdin.read()"))
    assert Path(f"/proc/{child.pid}/comm").read_bytes() == name + b"\n"
    one = processes.entry(child.pid)
    assert one is not None
    assert (one.pid, one.ppid, one.pgid, one.sid) == (child.pid, os.getpid(), os.getpgrp(), os.getsid(0))
    assert not one.gone
    assert one.tick == processes.table()[child.pid].tick > processes.start_tick(os.getpid()) > 0


@pytest.mark.skipif(not os.path.exists("/bin/ps"), reason="needs ps")
def test_ps_tells_the_same(start: Callable[..., subprocess.Popen[bytes]]) -> None:
    child = start("sh", "-c", "echo up; exec sleep 600", start_new_session=True)
    until(lambda: (now := processes.entry(child.pid)) is not None and now.state == "S")  # it is still in its exec
    seen, expected = processes.parse_ps(processes.ps("-A", *processes._ps_columns())), processes.entry(child.pid)
    assert expected is not None
    one = seen[child.pid]
    assert [one.ppid, one.pgid, one.sid, one.state] == [expected.ppid, expected.pgid, expected.sid, expected.state]
    again = processes.parse_ps(processes.ps("-p", str(child.pid), *processes._ps_columns()))
    assert list(again) == [child.pid]
    assert again[child.pid].tick == one.tick != 0


def test_a_ps_listing_is_read_and_odd_lines_are_skipped() -> None:
    listing = (
        b"  501 1 501 0 Ss Mon Nov 29 23:38:01 2021    \n?\n  9 501 9 -1 Z+\n 10 501 9 -1 Z Mon Nov  1 03:38:01 2021\n"
    )
    found = processes.parse_ps(listing)
    assert {pid: (one.ppid, one.pgid, one.tpgid, one.state) for pid, one in found.items()} == {
        501: (1, 501, 0, "S"),
        10: (501, 9, -1, "Z"),
    }
    assert found[501].tick != found[10].tick


def test_a_process_that_was_waited_for_is_nothing(sleeper: subprocess.Popen[bytes]) -> None:
    end(sleeper)
    assert processes.entry(sleeper.pid) is None
    assert processes.start_tick(sleeper.pid) == 0
    assert sleeper.pid not in processes.table()


def test_a_zombie_is_gone(sleeper: subprocess.Popen[bytes]) -> None:
    assert sleeper.pid in trees.descendants(os.getpid())
    os.kill(sleeper.pid, signal.SIGKILL)
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    one = processes.entry(sleeper.pid)
    assert one is not None and one.gone
    assert sleeper.pid not in trees.descendants(os.getpid())


@linux_only
def test_a_process_whose_main_thread_has_ended_is_alive(start: Callable[..., subprocess.Popen[bytes]]) -> None:
    code = """
import _thread, ctypes, os, time
print("up", flush=True)
_thread.start_new_thread(time.sleep, (600,))
ctypes.CDLL(None).syscall(60 if os.uname().machine == "x86_64" else 93, 0)  # exit: of this thread alone
"""
    child = start(*python(code))
    until(lambda: b") Z " in Path(f"/proc/{child.pid}/stat").read_bytes())
    one = processes.entry(child.pid)
    assert one is not None and not one.gone


def test_descendants_come_parents_first(start: Callable[..., subprocess.Popen[bytes]]) -> None:
    child = start("sh", "-c", "sh -c 'sleep 600 & echo up; wait; :'; :")
    below = trees.descendants(child.pid)
    entries = processes.table()
    assert len(below) == 2
    assert [entries[pid].ppid for pid in below] == [child.pid, below[0]]
    for pid in below:
        assert processes.send(pid, entries[pid].tick, signal.SIGKILL)


def test_descendants_are_found_behind_a_zombie_and_in_a_loop() -> None:
    def made(pid: int, ppid: int, state: str) -> processes.ProcessEntry:
        return processes.ProcessEntry(pid, ppid, 1, 1, state, 1, 1)

    entries = {10: made(10, 13, "S"), 11: made(11, 10, "Z"), 12: made(12, 11, "S"), 13: made(13, 12, "X")}
    assert trees.descendants(10, entries) == [12]


def test_only_a_whole_cookie_counts(start: Callable[..., subprocess.Popen[bytes]], root: Path) -> None:
    cookie = f"SESSION_MAGICS_SESSION={root.name}"
    pids = [
        start("env", variable, "sh", "-c", "echo up; read x").pid  # in an exec a process has no environment
        for variable in (cookie, cookie + "1", "A" + cookie)
    ]
    assert list(trees.carrying(cookie.encode())) == pids[:1]


def test_our_own_process_is_not_listed_as_carrying() -> None:
    code = "import os; from session_magics.holder import processes, trees; print(list(trees.carrying(b'MARK=self')))"
    assert subprocess.check_output(python(code), env={"MARK": "self"}) == b"[]\n"


def test_the_boot_has_an_id() -> None:
    assert processes.boot_id() == processes.boot_id() != ""


@linux_only
def test_a_subreaper_gets_the_orphans() -> None:
    code = """
import os
from session_magics.holder import processes, trees
assert processes.become_subreaper()
reading, writing = os.pipe()
if not (middle := os.fork()):
    if not os.fork():
        os.close(writing)
        os.read(reading, 1)
        os._exit(7)
    os._exit(0)
os.waitpid(middle, 0)
os.close(writing)
pid, status = os.wait()
print(pid != middle, os.waitstatus_to_exitcode(status))
"""
    assert subprocess.check_output(python(code)) == b"True 7\n"


def test_the_end_of_a_process_wakes_a_poll(sleeper: subprocess.Popen[bytes]) -> None:
    fd = processes.watch_exit(sleeper.pid, processes.start_tick(sleeper.pid))
    try:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        assert not os.get_inheritable(fd)
        assert poll.poll(0) == []
        sleeper.kill()
        assert poll.poll(DEADLINE * 1000) == [(fd, select.POLLIN)]
    finally:
        os.close(fd)


def test_a_process_that_has_ended_or_is_another_cannot_be_watched(sleeper: subprocess.Popen[bytes]) -> None:
    with pytest.raises(ProcessLookupError):
        processes.watch_exit(sleeper.pid, processes.start_tick(sleeper.pid) + 1)
    os.close(processes.watch_exit(sleeper.pid, 0))
    sleeper.kill()
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(ProcessLookupError):
        processes.watch_exit(sleeper.pid, 0)
    sleeper.wait()
    with pytest.raises(ProcessLookupError):
        processes.watch_exit(sleeper.pid, 0)


@linux_only
def test_a_python_without_pidfd_open_watches_all_the_same(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    fd = processes.watch_exit(sleeper.pid, 0)
    assert not os.get_inheritable(fd)
    assert select.select([fd], [], [], 0)[0] == []
    assert processes.send(sleeper.pid, processes.start_tick(sleeper.pid), signal.SIGKILL)
    assert select.select([fd], [], [], DEADLINE)[0] == [fd]
    os.close(fd)


def test_a_signal_goes_to_the_right_process_only(sleeper: subprocess.Popen[bytes]) -> None:
    tick = processes.start_tick(sleeper.pid)
    assert not processes.send(sleeper.pid, tick + 1, signal.SIGKILL)
    assert not processes.send(1, processes.start_tick(1), signal.SIGCONT)
    assert not processes.send(os.getpid(), processes.start_tick(os.getpid()), signal.SIGCONT)
    assert sleeper.poll() is None
    assert processes.send(sleeper.pid, tick, signal.SIGTERM)
    assert sleeper.wait(DEADLINE) == -signal.SIGTERM
    assert not processes.send(sleeper.pid, tick, signal.SIGTERM)


@pytest.fixture
def terminal() -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """A terminal and a program that has it as its controlling terminal and has said so."""
    pty_fd, tty_fd = os.openpty()
    code = "import fcntl, termios, os; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
    argv = [*python(code), "sh", "-c", "echo up; exec sleep 600"]
    child = subprocess.Popen(argv, stdin=tty_fd, stdout=tty_fd, start_new_session=True)
    os.close(tty_fd)
    assert select.select([pty_fd], [], [], DEADLINE)[0]
    yield pty_fd, child
    end(child)
    os.close(pty_fd)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_foreground_group_is_signalled_and_output_is_kept(
    terminal: tuple[int, subprocess.Popen[bytes]], signum: signal.Signals
) -> None:
    pty_fd, child = terminal
    assert processes.foreground_group(pty_fd) == child.pid
    assert processes.signal_foreground(pty_fd, signum)
    assert child.wait(DEADLINE) == -signum
    assert os.read(pty_fd, 100) == b"up\r\n"


def test_an_interrupt_comes_from_the_terminal_itself(
    terminal: tuple[int, subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pty_fd, child = terminal
    monkeypatch.delattr(os, "killpg")
    assert processes.signal_foreground(pty_fd, signal.SIGINT)
    assert child.wait(DEADLINE) == -signal.SIGINT


def test_nobody_is_signalled_where_no_group_is_in_the_foreground() -> None:
    pty_fd, tty_fd = os.openpty()
    try:
        for fd in pty_fd, tty_fd:
            assert processes.foreground_group(fd) is None
            assert not processes.signal_foreground(fd, signal.SIGINT)
            assert not processes.signal_foreground(fd, signal.SIGTERM)
    finally:
        os.close(pty_fd)
        os.close(tty_fd)


@linux_only
def test_another_sessions_holder_and_all_below_it_are_no_descendants(
    start: Callable[..., subprocess.Popen[bytes]],
) -> None:
    inner = "sh -c 'sleep 600 & sleep 600'"
    outer = start("sh", "-c", f"SESSION_MAGICS_HOLDER=x {inner} >/dev/null & sleep 600 >/dev/null & echo up; wait")
    try:
        until(lambda: len(_below(outer.pid)) == 4 and len(trees.descendants(outer.pid)) == 1)
        [own] = trees.descendants(outer.pid)
        assert not trees.held_session(own)
    finally:
        for pid in _below(outer.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _below(root_pid: int) -> set[int]:
    """Every living process below, holders too."""
    found, entries = {root_pid}, processes.table()
    for _ in range(5):
        found |= {one.pid for one in entries.values() if one.ppid in found and not one.gone}
    return found - {root_pid}
