"""Does the terminal's foreground command wait for input?

Linux tells in which system call each thread is blocked and with which arguments. A read from our terminal is certain;
a poll, select or epoll that includes it means that input could be taken. Nothing is guessed from the output. Programs
that we may not inspect (setuid ones) and macOS, which has no such source, are reported as not waiting; the terminal's
own modes are always true.
"""

from __future__ import annotations

import os
import struct
import sys
import termios

from session_magics.holder import processes

READ, POLL, SELECT, EPOLL = "read", "poll", "select", "epoll"
GENERIC_CALLS = {63: READ, 65: READ, 73: POLL, 72: SELECT, 22: EPOLL, 441: EPOLL}
CALLS: dict[str, dict[int, str]] = {
    "x86_64": {
        0: READ, 19: READ, 7: POLL, 271: POLL, 23: SELECT, 270: SELECT, 232: EPOLL, 281: EPOLL, 441: EPOLL,
    },
    "aarch64": GENERIC_CALLS,
    "riscv64": GENERIC_CALLS,
}  # fmt: skip
"""Numbers of read, readv; poll, ppoll; select, pselect6; epoll_wait, epoll_pwait, epoll_pwait2."""

POLL_READABLE = 0x0001 | 0x0040  # POLLIN, POLLRDNORM; EPOLLIN and EPOLLRDNORM are the same bits
FDS_MAX = 256
"""Descriptors looked at in one poll or select; a look costs 5 µs, and terminals have low numbers."""
THREADS_MAX = 256
"""Threads looked at in one process; a look costs 10 µs, and the readers are among the first."""
LOCAL_FLAGS = 3  # the place of c_lflag in what tcgetattr returns
STOPPED_STATES = "Tt"


def probe(pty_fd: int, tty_path: str, shell_pid: int, group: int | None = None) -> tuple[str, bool, bool]:
    """``(wait, echo, canonical)``: how input is awaited, and the terminal's ECHO and ICANON.

    ``wait`` is ``"read"`` (certain), ``"poll"`` (could take input) or ``"no"``. ``tty_path`` is the program's end of
    the terminal; ``group`` the foreground group, where ``pty_fd`` cannot tell it.
    Takes 0.1–0.5 ms for a usual command and grows with the number of its processes and threads.
    """
    try:
        local = termios.tcgetattr(pty_fd)[LOCAL_FLAGS]
        wait = _foreground_wait(group or processes.foreground_group(pty_fd), tty_path, shell_pid)
        # Or a password would be asked for by the modes of before, where its program was quicker than this look.
        if termios.tcgetattr(pty_fd)[LOCAL_FLAGS] != local:
            wait = "no"
    except (termios.error, OSError):
        return "no", True, True
    return wait, bool(local & termios.ECHO), bool(local & termios.ICANON)


def _foreground_wait(group: int | None, tty_path: str, shell_pid: int) -> str:
    calls = CALLS.get(os.uname().machine) if sys.platform == "linux" else None
    if calls is None or group is None:
        return "no"
    answer = "no"
    for pid in _members(group, shell_pid):
        for tid in _listed(f"/proc/{pid}/task")[:THREADS_MAX]:
            found = _thread_wait(pid, tid, calls, tty_path)
            if found == "read":
                return found
            if found == "poll":
                answer = found
    return answer


def _members(group: int, shell_pid: int) -> list[int]:
    """The running processes of the group, found from the shell down and from our own children down.

    Ours, because a process whose parent has ended becomes a child of the holder. A walk, because reading all of /proc
    takes several times as long on a busy machine.
    """
    if not os.path.exists(f"/proc/{shell_pid}/task/{shell_pid}/children"):  # a kernel built without that file
        everyone = processes.table().values()
        return [one.pid for one in everyone if one.pgid == group and one.state not in STOPPED_STATES]
    members = []
    todo = [shell_pid, *_children(os.getpid())]
    seen = set()
    for pid in todo:
        if pid in seen:
            continue
        seen.add(pid)
        one = processes.entry(pid)
        if one is None or one.gone:
            continue
        if one.pgid == group and one.state not in STOPPED_STATES:
            members.append(pid)
        todo.extend(_children(pid))
    return members


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for tid in _listed(f"/proc/{pid}/task"):
        try:
            found.extend(map(int, processes.read_file(f"/proc/{pid}/task/{tid}/children").split()))
        except (OSError, ValueError):
            continue
    return found


def _listed(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _thread_wait(pid: int, tid: str, calls: dict[int, str], tty_path: str) -> str:
    try:
        words = processes.read_file(f"/proc/{pid}/task/{tid}/syscall").split()
        kind = calls.get(int(words[0]))  # the first word is "running" for a thread that is not blocked
        if kind is None:
            return "no"
        first, second = int(words[1], 16), int(words[2], 16)
        if kind is READ:
            return "read" if _is_terminal(pid, _signed(first), tty_path) else "no"
        if kind is POLL:
            fds = polled(_memory(pid, first, min(second, FDS_MAX) * 8))
        elif kind is SELECT:
            fds = selected(_memory(pid, second, (min(_signed(first), FDS_MAX) + 63) // 64 * 8) if second else b"")
        else:
            fds = registered(processes.read_file(f"/proc/{pid}/fdinfo/{_signed(first)}"))
    except (OSError, ValueError, IndexError, OverflowError):
        return "no"
    return "poll" if any(_is_terminal(pid, fd, tty_path) for fd in fds) else "no"


def polled(memory: bytes) -> list[int]:
    """The descriptors that an array of struct pollfd waits to read from."""
    entries = struct.iter_unpack("=ihh", memory[: len(memory) // 8 * 8])
    return [fd for fd, events, _ in entries if fd >= 0 and events & POLL_READABLE]


def selected(memory: bytes) -> list[int]:
    """The descriptors in an fd_set."""
    bits = int.from_bytes(memory, sys.byteorder)
    return [fd for fd in range(len(memory) * 8) if bits >> fd & 1]


def registered(fdinfo: bytes) -> list[int]:
    """The descriptors that an epoll's fdinfo text waits to read from: ``tfd: 5 events: 19 data: …``, events in hex."""
    found = []
    for line in fdinfo.splitlines():
        words = line.split()
        if words[:1] == [b"tfd:"] and int(words[3], 16) & POLL_READABLE:
            found.append(int(words[1]))
    return found[:FDS_MAX]


def _is_terminal(pid: int, fd: int, tty_path: str) -> bool:
    # /dev/tty is the controlling terminal; for a member of our foreground group that is ours: a group belongs to one
    # session, and a session has one terminal.
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}") in (tty_path, "/dev/tty")
    except OSError:
        return False


def _memory(pid: int, address: int, size: int) -> bytes:
    fd = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(fd, size, address)
    finally:
        os.close(fd)


def _signed(word: int) -> int:
    """A descriptor argument: the kernel shows the whole register, of which an int is the low half."""
    word &= 0xFFFFFFFF
    return word - (1 << 32) if word >> 31 else word
