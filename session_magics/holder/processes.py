"""What the holder asks the operating system about a process: the one seam between Linux and macOS.

Linux answers from /proc. macOS has no such files, so `ps` and `sysctl` are run there. A pid alone names nobody for
long; wherever it matters a process is (pid, start tick). State letters Z and X mean gone.
"""

from __future__ import annotations

import _signal
import binascii
import fcntl
import os
import select
import sys

if sys.platform == "linux":
    TIOCSIG = 0x40045436
else:
    TIOCSIG = 0x2000745F

GONE_STATES = "ZX"
STOPPED_STATES = "Tt"
PR_SET_CHILD_SUBREAPER = 36
SYS_PIDFD_OPEN = 434
"""The same number on every architecture: it was added after the tables were united."""
READ_SIZE = 65536
"""Bytes asked per read; an environment or a `ps` listing takes one to three of them."""
PS_FIELDS = ("pid", "ppid", "pgid", "tpgid", "state", "lstart")


class ProcessEntry:
    """One process as it was at the moment of the look."""

    __slots__ = ("image", "pgid", "pid", "ppid", "sid", "state", "tick", "tpgid")

    def __init__(
        self, pid: int, ppid: int, pgid: int, sid: int, state: str, tick: int, tpgid: int, image: bytes = b""
    ) -> None:
        self.pid, self.ppid, self.pgid, self.sid = pid, ppid, pgid, sid
        self.state, self.tick, self.tpgid = state, tick, tpgid
        self.image = image
        """Where in memory its environment at the start is, if that is told: the same for all that a program has
        forked, and another one, as good as surely, after each exec."""

    def __repr__(self) -> str:
        return f"<process {self.pid} {self.state} parent {self.ppid} group {self.pgid} tick {self.tick}>"

    @property
    def gone(self) -> bool:
        """Has it ended, reaped or not?"""
        return self.state in GONE_STATES


def parse_stat(raw: bytes) -> ProcessEntry:
    """Read one /proc/PID/stat; raises ValueError or IndexError on a damaged one.

    The second field is the program's name in parentheses and may itself hold spaces, parentheses and newlines, so
    the fields are counted from the last parenthesis.
    """
    fields = raw[raw.rindex(b")") + 1 :].split()
    state = fields[0].decode("ascii", "replace")
    if state == "Z" and int(fields[17]) > 1:
        state = "S"  # only the main thread has ended: the process lives on in its other threads
    return ProcessEntry(
        pid=int(raw[: raw.index(b"(")]),
        ppid=int(fields[1]),
        pgid=int(fields[2]),
        sid=int(fields[3]),
        state=state,
        tick=int(fields[19]),
        tpgid=int(fields[5]),
        image=b" ".join(fields[45:49]) if fields[47:48] not in ([], [b"0"]) else b"",
    )


def parse_ps(listing: bytes) -> dict[int, ProcessEntry]:
    """Read what `ps -A` printed for PS_FIELDS; lines of another shape are skipped.

    The session id is filled in by asking the kernel, because the ps of macOS prints an address for it.
    """
    found: dict[int, ProcessEntry] = {}
    for line in listing.splitlines():
        words = line.split(None, 5)
        try:
            pid, ppid, pgid, tpgid = (int(word) for word in words[:4])
            state, started = words[4][:1].decode("ascii", "replace"), words[5].strip()
        except (ValueError, IndexError):
            continue
        try:
            sid = os.getsid(pid)
        except OSError:
            sid = 0
        found[pid] = ProcessEntry(pid, ppid, pgid, sid, state, binascii.crc32(started), tpgid)
    return found


def table() -> dict[int, ProcessEntry]:
    """Every process that can be seen, zombies included.

    Not a snapshot: a process that is re-parented meanwhile can appear under a parent that is no longer listed.
    """
    if sys.platform != "linux":
        return parse_ps(ps("-A", *_ps_columns()))
    else:
        found: dict[int, ProcessEntry] = {}
        for name in os.listdir("/proc"):
            if name.isdigit() and (one := entry(int(name))) is not None:
                found[one.pid] = one
        return found


def entry(pid: int) -> ProcessEntry | None:
    """One process; None when there is none of that number."""
    if sys.platform != "linux":
        return parse_ps(ps("-p", str(pid), *_ps_columns())).get(pid)
    else:
        try:
            return parse_stat(read_file(f"/proc/{pid}/stat"))
        except (OSError, ValueError, IndexError):
            return None


def start_tick(pid: int) -> int:
    """When the process started, in a unit only good for comparing; 0 when it is gone."""
    one = entry(pid)
    return 0 if one is None else one.tick


def boot_id() -> str:
    """A text that is another one after each start of the machine; empty when the system does not tell."""
    if sys.platform != "linux":
        return _output_of("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid").decode("ascii", "replace").strip()
    else:
        try:
            return read_file("/proc/sys/kernel/random/boot_id").decode("ascii", "replace").strip()
        except OSError:
            return ""


def pid_namespace() -> int:
    """A number for the world in which our pids mean something; 0 where there is but one, or the system does not tell.

    It may be given again after the end of a namespace: two that differ are certain, two that are equal are not.
    """
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def become_subreaper() -> bool:
    """Make orphans among our descendants our children instead of init's; False where the system cannot."""
    if sys.platform != "linux":
        return False
    try:
        import _ctypes  # the C half alone: the whole of ctypes would cost each holder a megabyte

        prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
        return bool(_ctypes.call_cdeclfunction(prctl, (PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def watch_exit(pid: int, tick: int) -> int:
    """A descriptor that polls as readable once the process has ended; the caller closes it.

    Raises ProcessLookupError when it has ended already, or when ``tick`` is not 0 and the pid is now another's.
    Raises OSError where the system has no such descriptors (Linux before 5.3).
    """
    fd = _exit_fd(pid)
    one = entry(pid)  # looked up after opening, so that the descriptor and the tick are the same process's
    if one is None or one.gone or (tick and one.tick != tick):
        os.close(fd)
        raise ProcessLookupError(f"process {pid} has ended")
    return fd


def send(pid: int, tick: int, signum: int) -> bool:
    """Signal one process if it still is the one that started at ``tick``; False when it is not or we may not.

    Refuses pids up to 1 and our own. Through a pidfd where there is one, so that nobody else can be hit.
    """
    if pid <= 1 or pid == os.getpid():
        return False
    fd = -1
    try:
        if hasattr(os, "pidfd_open") and hasattr(_signal, "pidfd_send_signal"):
            try:
                fd = os.pidfd_open(pid)
            except ProcessLookupError:
                return False
            except OSError:
                pass  # an old kernel or a sandbox that forbids the call: the check below is all there is
        if start_tick(pid) != tick:
            return False
        if fd >= 0:
            _signal.pidfd_send_signal(fd, signum)
        else:
            os.kill(pid, signum)
    except OSError:
        return False
    finally:
        if fd >= 0:
            os.close(fd)
    return True


def foreground_group(pty_fd: int) -> int | None:
    """The process group that the terminal listens to; None when there is none."""
    try:
        group = os.tcgetpgrp(pty_fd)
    except OSError:
        return None
    return group if group > 0 else None  # Linux answers 0 for none, and killpg(0) would hit ourselves


def signal_foreground(pty_fd: int, signum: int) -> bool:
    """Signal the terminal's foreground group; False when there was nobody to signal.

    Done by the terminal itself at once, without echo and without dropping queued bytes, as a typed ^C would. Linux
    does that for INT, QUIT and TSTP only; other signals go to the group.
    """
    group = foreground_group(pty_fd)
    if group is None:
        return False
    try:
        fcntl.ioctl(pty_fd, TIOCSIG, int(signum))
        return True
    except OSError:
        pass
    if group == 1 or group == os.getpgrp():
        return False
    try:
        os.killpg(group, signum)
    except OSError:
        return False
    return True


def read_file(path: str) -> bytes:
    """The whole of a small file of unknown size, as those under /proc are."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _read_all(fd)
    finally:
        os.close(fd)


def _read_all(fd: int) -> bytes:
    pieces = []
    while piece := os.read(fd, READ_SIZE):
        pieces.append(piece)
    return b"".join(pieces)


def _exit_fd(pid: int) -> int:
    if sys.platform != "linux":
        queue = select.kqueue()
        try:
            event = select.kevent(
                pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD | select.KQ_EV_ONESHOT, select.KQ_NOTE_EXIT
            )
            queue.control([event], 0)
            return os.dup(queue.fileno())  # the object closes its own number when it goes
        finally:
            queue.close()
    elif hasattr(os, "pidfd_open"):
        return os.pidfd_open(pid)
    else:
        import ctypes  # Pythons built against old headers (conda's) lack os.pidfd_open on kernels that have it

        fd: int = ctypes.CDLL(None, use_errno=True).syscall(SYS_PIDFD_OPEN, pid, 0)
        if fd < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return fd  # close-on-exec from birth, as every pidfd


def _ps_columns() -> list[str]:
    # One -o for each: after a "=" POSIX takes the rest of the argument for the heading, commas and all.
    return [word for field in PS_FIELDS for word in ("-o", field + "=")]


def ps(*arguments: str) -> bytes:
    """What ps prints, on systems where it has to be asked."""
    return _output_of("/bin/ps", *arguments)


def _output_of(program: str, *arguments: str) -> bytes:
    """Standard output of a short program, empty when it cannot be run; it is reaped here."""
    reading, writing = os.pipe()
    try:
        actions = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, writing, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        try:
            pid = os.posix_spawn(program, [program, *arguments], {"LC_ALL": "C"}, file_actions=actions)
        except OSError:
            return b""
        finally:
            os.close(writing)
        output = _read_all(reading)
        os.waitpid(pid, 0)
        return output
    finally:
        os.close(reading)
