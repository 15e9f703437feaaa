"""Starting a program on a terminal of its own, and what the holder keeps of it."""

from __future__ import annotations

import _signal
import errno
import fcntl
import os
import struct
import termios

from session_magics.holder import processes, trees

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, NoReturn

READ_BYTES = 128 * 1024
"""Taken from the terminal in one wake-up at most, so that clients and timers get their turn."""
FIRST_ROOM = 4096
"""Bytes of the first buffer, as many as a terminal gives at once; it grows where a program says more."""
RESET_SIGNALS = [
    getattr(_signal, name)
    for name in (
        "SIGPIPE",
        "SIGINT",
        "SIGQUIT",
        "SIGTERM",
        "SIGHUP",
        "SIGCHLD",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGXFSZ",
    )
    if hasattr(_signal, name)
]
"""Python ignores SIGPIPE and SIGXFSZ, and an ignored signal stays ignored in what is started."""


USED_UP = "all that the system allows are in use (kernel.pty.max, or what /dev/pts was mounted with)"
"""What "no space left on device" means where a terminal is asked for."""


class SpawnError(Exception):
    """The program could not be started; the text says why, in the words of the system."""


class Terminal:
    """A program on a PTY. Owns ``pty_fd`` and ``tty_fd``; ``close`` gives both up.

    ``tty_fd`` stays open in the holder so that the terminal survives between jobs and can be flushed and reset.
    """

    piece = 4096
    """Bytes that ``write`` is given at most."""
    retry = 0.0
    """Seconds until ``write`` is worth another try where it took nothing; 0: as soon as ``pty_fd`` is writable."""
    answers = False
    """Whether the terminal itself answers what programs ask it."""
    mark_patience = 0.05
    """Seconds without output to wait for the mark once the record of a command's end is there; on Linux it has always
    come before."""
    far = False
    """Whether its program runs in another place, where nothing can be asked without waiting (see FarTerminal)."""

    def __init__(self, pid: int, pty_fd: int, tty_path: bytes, tty_fd: int = -1) -> None:
        self.pid, self.pty_fd, self.tty_path = pid, pty_fd, tty_path
        os.set_blocking(pty_fd, False)
        self.tty_fd = os.open(tty_path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC) if tty_fd < 0 else tty_fd
        self._sane: list[Any] = [] if tty_fd >= 0 else termios.tcgetattr(self.tty_fd)
        # Read into again and again: a new buffer for each read would leave megabytes of holes in the heap.
        self._room = memoryview(bytearray(FIRST_ROOM))
        self.at_end = False
        """Whether all that the program has written was read."""

    def is_end(self, pid: int) -> bool:
        """Whether the end of this child of ours, which was reaped just now, is the end of the program."""
        return pid == self.pid

    def read(self) -> bytes | None:
        """What the terminal has to say now, up to READ_BYTES; b"" for nothing yet, None for never again."""
        total, ended = 0, False
        while total < len(self._room) and not ended:
            try:
                count = os.readv(self.pty_fd, [self._room[total:]])
            except BlockingIOError:
                break
            except OSError:  # EIO: every descriptor of the program's end is closed
                count = 0
            total += count
            ended = not count
        data = bytes(self._room[:total])
        if total == len(self._room) < READ_BYTES:
            self._room = memoryview(bytearray(min(4 * total, READ_BYTES)))
        return None if ended and not total else data

    def write(self, data: bytes) -> int:
        """Put bytes into the program's input; the number that fitted, 0 if none did."""
        try:
            return os.write(self.pty_fd, data)
        except BlockingIOError:
            return 0
        except OSError as error:
            if error.errno == errno.EIO:
                return len(data)  # nobody will ever read it
            raise

    def mark_end(self) -> None:
        """Have ``at_end`` become true when all that was written until now is read. Here the end of file does that."""

    def press(self, key: bytes) -> None:
        """Write a key ahead of what waits to be written."""
        self.write(key)

    def resize(self, rows: int, columns: int) -> None:
        """Set the size; the foreground group gets SIGWINCH. Harmless after the end."""
        try:
            set_size(self.pty_fd, rows, columns)
        except OSError:
            pass

    def echoes(self) -> bool:
        """Whether the terminal shows what is typed."""
        return bool(termios.tcgetattr(self.tty_fd)[3] & termios.ECHO)

    def canonical(self) -> bool:
        """Whether input is handed over line by line."""
        return bool(termios.tcgetattr(self.tty_fd)[3] & termios.ICANON)

    def probe(self, then: Callable[[str, bool, bool], None]) -> None:
        """Tell how input is awaited, and the modes ECHO and ICANON (see ``waiting.probe``)."""
        from session_magics.holder import waiting  # as most sessions are never asked

        then(*waiting.probe(self.tty_fd, os.fsdecode(self.tty_path), self.pid, self.foreground()))

    def interrupts(self) -> bool:
        """Whether Ctrl-C means a signal (a full-screen program may have switched that off)."""
        return bool(termios.tcgetattr(self.tty_fd)[3] & termios.ISIG)

    def foreground(self) -> int | None:
        """The process group that the terminal listens to; None when there is none."""
        return processes.foreground_group(self.pty_fd)

    def signal_foreground(self, number: int) -> None:
        """Signal that group as the terminal does for a key."""
        processes.signal_foreground(self.pty_fd, number)

    def interrupt_there(self, rung: int) -> bool:
        """Have the foreground group interrupted where it runs, as that place can; False: it is to be done from here."""
        return False

    def missed_there(self) -> bool:
        """The same for an interrupt that was lost."""
        return False

    def left_behind(self) -> bool:
        """Whether anything of the program lives on."""
        return bool(trees.descendants(os.getpid()))

    def put(self, name: str, data: bytes) -> None:
        """Make a file for the program, in the directory that its shell is told of."""
        fd = os.open(name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        os.write(fd, data)
        os.close(fd)

    def reset(self) -> None:
        """Bring back the modes the terminal had at the start, and drop what was typed and not read."""
        if termios.tcgetattr(self.tty_fd) != self._sane:
            termios.tcsetattr(self.tty_fd, termios.TCSANOW, self._sane)
        termios.tcflush(self.tty_fd, termios.TCIFLUSH)

    def release(self) -> None:
        """Close the program's end, so that reading meets the end of the output."""
        if self.tty_fd >= 0:
            os.close(self.tty_fd)
            self.tty_fd = -1

    def kill_program(self) -> None:
        """SIGKILL to the program alone."""
        os.kill(self.pid, _signal.SIGKILL)

    def kill(self) -> None:
        """SIGKILL to the program and its group."""
        try:
            os.killpg(self.pid, _signal.SIGKILL)
        except OSError:
            pass

    def close(self) -> None:
        """Close both ends; the program's group gets SIGHUP if it still runs. Idempotent."""
        self.release()
        if self.pty_fd >= 0:
            os.close(self.pty_fd)
            self.pty_fd = -1


def set_size(fd: int, rows: int, columns: int) -> None:
    """Set a terminal's size; OSError if it is none. (``termios.tcsetwinsize`` is younger than far Pythons may be.)"""
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _prepare(report: int, size: tuple[int, int], stdin: int | None, raw_lines: bool, umask: int) -> None:
    """In the child, between fork and exec: terminal modes, signals, standard input."""
    os.umask(umask)
    modes = termios.tcgetattr(1)
    if raw_lines:
        modes[1] &= ~termios.ONLCR
    modes[3] |= termios.NOFLSH  # or the line discipline throws away output that was not read yet at Ctrl-C
    termios.tcsetattr(1, termios.TCSANOW, modes)
    set_size(1, *size)
    os.write(report, os.fsencode(os.ttyname(1)) + b"\0")
    if stdin is not None:
        os.dup2(stdin, 0)
    for number in RESET_SIGNALS:
        _signal.signal(number, _signal.SIG_DFL)
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def become(
    report: int,
    argv: list[bytes],
    env: Mapping[bytes, bytes],
    cwd: bytes,
    size: tuple[int, int],
    *,
    stdin: int | None = None,
    raw_lines: bool = False,
    umask: int = 0o022,
) -> NoReturn:
    """Become the program, in a process whose terminal is a new one. ``report`` hears the terminal's path, a NUL, and
    why it failed, if it did."""
    step = "terminal"
    try:
        _prepare(report, size, stdin, raw_lines, umask)
        step = repr(os.fsdecode(cwd))
        os.chdir(cwd)
        step = repr(os.fsdecode(argv[0]))
        os.execvpe(argv[0], argv, env)
    except OSError as error:
        os.write(report, f"{(error.strerror or 'error').lower()}: {step}".encode("utf-8", "surrogateescape"))
    finally:
        os._exit(127)


def spawn(
    argv: list[bytes],
    env: Mapping[bytes, bytes],
    cwd: bytes,
    size: tuple[int, int],
    *,
    stdin: int | None = None,
    raw_lines: bool = False,
    umask: int = 0o022,
) -> Terminal:
    """Start a program on a new terminal; raises SpawnError if that does not come to an exec.

    ``stdin`` takes the place of the terminal as descriptor 0; ``raw_lines`` leaves line ends as they are written.
    Every descriptor of the holder is close-on-exec, so none has to be closed here.
    """
    told, report = os.pipe()
    try:
        pid, pty_fd = os.forkpty()
    except OSError as error:
        os.close(told)
        os.close(report)
        reason = USED_UP if error.errno == errno.ENOSPC else error.strerror
        raise SpawnError(f"no terminal to be had: {reason}") from None
    if pid == 0:
        become(report, argv, env, cwd, size, stdin=stdin, raw_lines=raw_lines, umask=umask)
    os.close(report)
    heard = b""
    while piece := os.read(told, 4096):
        heard += piece
    os.close(told)
    tty_path, _, failure = heard.partition(b"\0")
    if failure or not tty_path:
        os.waitpid(pid, 0)
        os.close(pty_fd)
        raise SpawnError(failure.decode("utf-8", "surrogateescape") or "the terminal could not be set up")
    return Terminal(pid, pty_fd, tty_path)
