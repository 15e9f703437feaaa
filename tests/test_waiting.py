"""The probe says "read" for programs that wait for input, and never for those that do not."""

from __future__ import annotations

import os
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import probed
from probed import PYTHON, OnTerminal
from rounds import DEADLINE
from session_magics.holder import processes, waiting

pytestmark = [
    pytest.mark.usefixtures("root"),
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process waits for"),
]

LOOKS = 60  # at one process each, in whose time a probe is over
PACKAGES = str(Path(waiting.__file__).parents[2])
launch = probed.launch


def needs(program: str) -> str:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    return program


READERS = {
    "bash read": ["bash", "-c", "read x; :"],
    "bash select": ["bash", "-c", "select x in a b; do :; done"],
    "sh in sh": ["sh", "-c", "sh -c 'read x; :'; :"],
    "command substitution": ["bash", "-c", "x=$(head -n 1); :"],
    "dash read": ["dash", "-c", "read x"],
    "zsh read": ["zsh", "-f", "-c", "read x"],
    "input()": [sys.executable, "-c", "input('name? ')"],
    "a thread": [*PYTHON, "import _thread, os, time; _thread.start_new_thread(os.read, (0, 9)); time.sleep(600)"],
    "readv": [*PYTHON, "import os; os.readv(0, [bytearray(10)])"],
    "another number": [*PYTHON, "import os; os.read(os.dup2(0, 300), 10)"],
    "/dev/tty": [*PYTHON, "open('/dev/tty').readline()"],
    "opened anew": [*PYTHON, "import os; open(os.ttyname(0)).readline()"],
    "cat": ["cat"],
    "cat in a pipeline": ["sh", "-c", "cat | wc"],
    "the last of a pipeline": ["sh", "-c", "sleep 600 | cat <&1"],
    "dd": ["dd", "bs=1", "count=1"],
    "behind stderr": ["sh", "-c", "exec cat <&2"],
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_a_program_that_reads_a_line_waits_for_certain(launch: Callable[..., OnTerminal], name: str) -> None:
    needs(READERS[name][0])
    assert launch(*READERS[name]).until_probed("read") == ("read", True, True)


HIDDEN = {
    "read -s": ["bash", "-c", "read -s x"],
    "getpass": [sys.executable, "-c", "import getpass; getpass.getpass()"],
    "stty -echo": ["sh", "-c", "stty -echo; read x; :"],
}


@pytest.mark.parametrize("name", HIDDEN)
def test_a_question_for_a_password_shows_by_the_echo(launch: Callable[..., OnTerminal], name: str) -> None:
    program = launch(*HIDDEN[name])
    limit = time.monotonic() + DEADLINE
    while program.probe() != ("read", False, True):  # between taking the echo away and reading it is "no"
        assert time.monotonic() < limit


def test_a_read_with_a_time_limit_waits(launch: Callable[..., OnTerminal]) -> None:
    found = launch("bash", "-c", "read -t 600 x; :").until_probed("read", "poll")
    assert found[1:] == (True, True)


def test_a_program_in_raw_mode_waits(launch: Callable[..., OnTerminal]) -> None:
    program = launch(needs("less"), "-X", "/etc/services")
    assert program.until_probed("read", "poll")[1:] == (False, False)


def test_a_repl_waits(launch: Callable[..., OnTerminal]) -> None:
    program = launch(sys.executable, "-i", "-c", "import readline")
    program.until_shown(b">>>")
    program.until_probed("read", "poll")


def test_an_event_loop_that_listens_to_the_terminal_could_take_input(launch: Callable[..., OnTerminal]) -> None:
    program = launch(needs("node"), "-e", "process.stdin.on('data', () => 1); console.log('up')")
    program.until_shown(b"up")
    assert program.until_probed("poll") == ("poll", True, True)


LISTENERS = {
    "select": "select.select([r, 0], [], [])",
    "select with a time limit": "select.select([r, 0], [], [], 600)",
    "poll": "p = select.poll(); p.register(r, 1); p.register(0, select.POLLIN); p.poll()",
    "epoll": "p = select.epoll(); p.register(r, 1); p.register(0, select.EPOLLIN); p.poll()",
}


@pytest.mark.parametrize("name", LISTENERS)
def test_a_program_that_polls_the_terminal_could_take_input(launch: Callable[..., OnTerminal], name: str) -> None:
    program = launch(*PYTHON, f"import os, select; r, w = os.pipe(); {LISTENERS[name]}")
    assert program.until_probed("poll") == ("poll", True, True)


NOT_WAITING = {
    "sleep": ["sh", "-c", "echo up; exec sleep 600"],
    "busy shell": ["bash", "-c", "echo up; while :; do :; done"],
    "loop of programs": ["bash", "-c", "echo up; while :; do /bin/true; done"],
    "sleep | cat": ["sh", "-c", "echo up; sleep 600 | cat"],
    "wait": ["sh", "-c", "sleep 600 & echo up; wait"],
    "tail -f": ["sh", "-c", "echo up; exec tail -f /dev/null"],
    "python sleep": [*PYTHON, "import time; print('up', flush=True); time.sleep(600)"],
    "socket": [*PYTHON, "import _socket; s = _socket.socket(); s.listen(); print('up', flush=True); s._accept()"],
    "pipe": [*PYTHON, "import os; r, w = os.pipe(); print('up', flush=True); os.read(r, 1)"],
    "another terminal": [*PYTHON, "import os; m, s = os.openpty(); print('up', flush=True); os.read(s, 1)"],
    "select of a pipe": [
        *PYTHON, "import os, select; r, w = os.pipe(); print('up', flush=True); select.select([r], [], [])",
    ],
    "poll for other things": [
        *PYTHON, "import select; p = select.poll(); p.register(0, select.POLLPRI); print('up', flush=True); p.poll()",
    ],
    "epoll for other things": [
        *PYTHON, "import select; p = select.epoll(); p.register(0, select.EPOLLPRI); print('up', flush=True); p.poll()",
    ],
    "listener in the background": [
        "bash", "-c", "exec 7<&0; set -m; " + shlex.join(
            [*PYTHON, "import select; print('up', flush=True); select.select([7], [], [])"]
        ) + " & sleep 600",
    ],
    "reader in the background": ["bash", "-c", "exec 7<&0; set -m; cat <&7 & echo up; sleep 600"],
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_WAITING)
def test_a_program_that_does_not_want_input_does_not_wait(launch: Callable[..., OnTerminal], name: str) -> None:
    program = launch(*NOT_WAITING[name])
    program.until_shown(b"up")
    program.assert_never_waits()


def test_a_stopped_reader_does_not_wait(launch: Callable[..., OnTerminal]) -> None:
    program = launch("cat")
    program.until_probed("read")
    os.kill(program.leader.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, program.leader.pid, os.WSTOPPED)
    program.assert_never_waits()
    os.kill(program.leader.pid, signal.SIGCONT)
    program.until_probed("read")


def test_a_program_that_cannot_write_does_not_wait(launch: Callable[..., OnTerminal]) -> None:
    program = launch("yes")
    assert select.select([program.pty_fd], [], [], DEADLINE)[0]
    for _ in range(15):
        assert waiting.probe(program.pty_fd, program.path, program.leader.pid)[0] == "no"


def test_a_shell_waits_in_its_commands_and_not_between_them(launch: Callable[..., OnTerminal]) -> None:
    reading, writing = os.pipe()
    shell = launch("bash", "--norc", "--noprofile", "--noediting", "-i", commands=reading)
    os.close(reading)
    tty = shell.path
    try:
        os.write(writing, b"PS1= PS2=; echo up\n")
        shell.until_shown(b"up")
        shell.assert_never_waits()
        os.write(writing, f"eval 'read x; echo got-$x' <{tty}\n".encode())
        shell.until_probed("read")
        os.write(shell.pty_fd, b"one\n")
        shell.until_shown(b"got-one")
        shell.assert_never_waits()
        os.write(writing, f"eval 'head -n 1 >/dev/null; sleep 0.01; echo over-$?' <{tty}\n".encode())
        shell.until_probed("read")
        os.write(shell.pty_fd, b"two\n")
        shell.until_shown(b"over-0")
        shell.assert_never_waits()
        os.write(writing, f"cat <{tty} &\necho on\n".encode())
        shell.until_shown(b"on\r\n")
        shell.assert_never_waits()
    finally:
        os.close(writing)


def test_an_orphan_in_the_foreground_group_is_found() -> None:
    # The parent of cat ends, so cat becomes a child of the holder; its group still has the terminal.
    code = f"""
import sys; sys.path.insert(0, {PACKAGES!r})
import contextlib, os, time
from session_magics.holder import processes, trees, waiting
assert processes.become_subreaper()
pid, pty_fd = os.forkpty()
if not pid:
    os.execvp("sh", ["sh", "-c", "tty; (exec 3<&0; cat <&3 &); sleep 600"])
path = os.read(pty_fd, 100).decode().strip()
limit = time.monotonic() + {DEADLINE}
def orphaned():
    # The shell in between ends some time after cat reads.
    found = [entry for p in trees.descendants(os.getpid()) if (entry := processes.entry(p))]
    return len(found) == 3 and [entry.ppid == os.getpid() for entry in found].count(True) == 2
while not (orphaned() and waiting.probe(pty_fd, path, pid)[0] == "read") and time.monotonic() < limit:
    time.sleep(0.01)
print(waiting.probe(pty_fd, path, pid)[0], orphaned())
for p in trees.descendants(os.getpid()):
    os.kill(p, 9)
with contextlib.suppress(ChildProcessError):  # the shell may have taken its child's status
    while True:
        os.wait()
"""
    assert subprocess.check_output([*PYTHON, code], text=True).splitlines()[-1] == "read True"


def test_a_kernel_without_lists_of_children_is_searched_in_full(
    launch: Callable[..., OnTerminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os.path, "exists", lambda path: False)
    launch("sh", "-c", "cat; :").until_probed("read")


def test_modes_that_change_during_a_look_are_not_told_with_what_it_found(
    launch: Callable[..., OnTerminal], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = launch("cat")
    program.until_probed("read")

    def slow(*_: object) -> str:
        modes = termios.tcgetattr(program.tty_fd)
        modes[3] ^= termios.ECHO
        termios.tcsetattr(program.tty_fd, termios.TCSANOW, modes)
        return "read"

    monkeypatch.setattr(waiting, "_foreground_wait", slow)
    assert program.probe()[0] == "no"
    monkeypatch.undo()
    assert program.until_probed("read") == ("read", False, True)


def test_the_modes_are_those_of_the_terminal(launch: Callable[..., OnTerminal]) -> None:
    program = launch("sh", "-c", "echo up; exec sleep 600")
    program.until_shown(b"up")
    modes = termios.tcgetattr(program.tty_fd)
    for echo in (0, termios.ECHO):
        for canonical in (0, termios.ICANON):
            modes[3] = modes[3] & ~(termios.ECHO | termios.ICANON) | echo | canonical
            termios.tcsetattr(program.tty_fd, termios.TCSANOW, modes)
            assert program.probe() == ("no", bool(echo), bool(canonical))


def test_what_is_no_terminal_or_has_no_program_does_not_wait() -> None:
    reading, writing = os.pipe()
    pty_fd, tty_fd = os.openpty()
    try:
        assert waiting.probe(reading, "/dev/tty", os.getpid()) == ("no", True, True)
        assert waiting.probe(pty_fd, os.ttyname(tty_fd), os.getpid()) == ("no", True, True)
    finally:
        for fd in (reading, writing, pty_fd, tty_fd):
            os.close(fd)


def took(call: Callable[[], object]) -> float:
    """Seconds of the processor."""
    began = time.thread_time()
    call()
    return time.thread_time() - began


def test_a_probe_costs_little(launch: Callable[..., OnTerminal]) -> None:
    program = launch("sh", "-c", "cat | wc")
    program.until_probed("read")
    least = [min(took(call) for _ in range(50)) for call in (program.probe, lambda: processes.entry(os.getpid()))]
    assert least[0] < LOOKS * least[1]


@given(st.sets(st.integers(0, 200)), st.integers(0, 1))
def test_the_descriptors_of_a_select_are_read_from_its_bits(fds: set[int], surplus: int) -> None:
    size = 32 + 8 * surplus
    memory = sum(1 << fd for fd in fds).to_bytes(size, sys.byteorder)
    assert waiting.selected(memory) == sorted(fds)


@given(st.lists(st.tuples(st.integers(-5, 2**31 - 1), st.integers(0, 2**15 - 1))), st.binary(max_size=7))
def test_the_descriptors_of_a_poll_are_those_it_wants_to_read(entries: list[tuple[int, int]], rest: bytes) -> None:
    memory = b"".join(struct.pack("=ihh", fd, events, 0) for fd, events in entries)
    expected = [fd for fd, events in entries if fd >= 0 and events & 0x41]
    assert waiting.polled(memory + rest) == expected


def test_the_descriptors_of_an_epoll_are_those_it_wants_to_read() -> None:
    text = b"pos:\t0\nflags:\t02\ntfd:       10 events:       19 data: a  pos:0 ino:3\ntfd: 11 events: 2 data: b\n"
    assert waiting.registered(text) == [10]
