"""Kernels that are struck, sessions that have to go on all the same, and shells that have to go with their kernel."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL

import psutil

import leaks
from cell_kernel import LIVE, Kernel
from rounds import DEADLINE, alive, rounds, until
from session_magics import Registry, Running
from session_magics.holder import processes

SERVES_WITHIN = rounds(DEADLINE, 1.0)  # seconds after the blow; the second is for a machine that does nothing else

# Says once it serves on which port, then a number every 5 ms; answers each connection with its pid.
SERVER = """
import os, socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
print("port", listener.getsockname()[1], flush=True)
listener.settimeout(0.005)
number = 0
while True:
    print("tick", number, flush=True)
    number += 1
    try:
        connection, _ = listener.accept()
    except TimeoutError:
        continue
    connection.sendall(b"%d" % os.getpid())
    connection.close()
"""

# What a shell cell leaves running, in every way that is known to outlive a terminal. Each writes its pid.
LEFT_RUNNING = """
cat >stay <<'END'
echo $$ >>pids
exec sleep 1000
END
trap '' HUP
sh stay &
nohup sh stay >nohup.out 2>&1 &
setsid sh stay >/dev/null 2>&1 </dev/null &
(setsid nohup sh stay >/dev/null 2>&1 </dev/null &)
(setsid env -i PATH="$PATH" sh stay >/dev/null 2>&1 </dev/null &)
sh stay & disown
sh -c 'trap "" HUP INT TERM; exec sh stay' &
echo $$ >>pids
until [ "$(wc -l <pids)" = 8 ]; do sleep 0.01; done
"""
LEFT_COUNT = 8


@contextmanager
def new_kernel(root: Path) -> Iterator[Kernel]:
    """A kernel with the extension loaded. Unlike the fixture it leaves what the kernel started alone."""
    kernel = Kernel("session", sys.executable, {"env": {"SESSION_MAGICS_HOME": str(root)}})
    try:
        wrong = kernel.start()
        assert not wrong, f"{wrong}: {kernel.last_words()}"
        yield kernel
    finally:
        LIVE.discard(kernel)
        if kernel.client:
            kernel.client.stop_channels()
        kernel.manager.shutdown_kernel(now=True)
        shutil.rmtree(kernel.root, ignore_errors=True)


def run(kernel: Kernel, code: str) -> str:
    """Run a cell that has to succeed; its text."""
    record = kernel.execute(code, DEADLINE)
    assert not record.trouble, record.trouble
    assert record.reply["status"] == "ok", record.failure()
    return str(record.text())


def strike(kernel: Kernel, blow: str) -> None:
    """Do to the kernel what a person, a server or the out-of-memory killer does."""
    match blow:
        case "interrupt":
            kernel.manager.interrupt_kernel()
        case "restart":
            kernel.manager.restart_kernel(now=False, stdout=DEVNULL, stderr=DEVNULL)
        case "shutdown":
            kernel.manager.shutdown_kernel(now=False)
        case "kill the pid":
            os.kill(kernel.pid, signal.SIGKILL)
        case "kill the group":
            assert os.getpgid(kernel.pid) == kernel.pid
            os.killpg(kernel.pid, signal.SIGKILL)


def reconnect(kernel: Kernel) -> None:
    """Make a kernel that was restarted ready for cells."""
    kernel.client.stop_channels()
    kernel.pid, kernel.client = kernel.manager.provisioner.pid, kernel.manager.client()
    kernel.client.start_channels()
    kernel.client.wait_for_ready(timeout=DEADLINE)
    run(kernel, "%load_ext session_magics")


class Server:
    """A detached session, started from a kernel, that has to go on without a gap."""

    def __init__(self, kernel: Kernel, registry: Registry, backend: str = "native") -> None:
        argv, name = (sys.executable, "-I", "-S", "-u", "-c", SERVER), f"{backend}-server"
        start = f"Registry().start({name!r}, Command({argv!r}), backend={backend!r})"
        run(
            kernel,
            f"from session_magics import Command, Registry\n_ = {start}.wait_for('port [0-9]+\\\\n', {DEADLINE})",
        )
        self.session = registry.get(name)
        self.state = self.session.state()
        assert isinstance(self.state, Running)
        self.pid, self.tick = self.state.pid, processes.start_tick(self.state.pid)
        found = re.search(rb"port (\d+)\r", self.session.output())
        assert found
        self.port = int(found[1])

    def ticks(self) -> list[int]:
        """The numbers in the log, whole lines only."""
        lines = self.session.output().split(b"\n")[:-1]
        return [int(line[5:]) for line in lines if line.startswith(b"tick")]

    def answer(self) -> int:
        with socket.create_connection(("127.0.0.1", self.port), SERVES_WITHIN) as connection:
            connection.settimeout(SERVES_WITHIN)
            return int(connection.recv(64))

    def goes_on(self) -> None:
        seen = len(self.ticks())
        assert self.answer() == self.pid
        until(lambda: len(self.ticks()) > seen + 3, SERVES_WITHIN)
        assert alive(self.pid, self.tick)
        assert self.session.state() == self.state
        numbers = self.ticks()
        assert numbers == list(range(len(numbers)))


class Own:
    """A kernel's own shell with what its cells left running."""

    def __init__(self, kernel: Kernel, registry: Registry) -> None:
        text = run(kernel, "%%sh_session\n" + LEFT_RUNNING + "cat pids")  # and job notices
        self.started = {int(line): processes.start_tick(int(line)) for line in re.findall(r"^\d+$", text, re.M)}
        assert len(self.started) == LEFT_COUNT
        [info] = [one for one in registry.infos() if one.shell]
        self.directory = info.directory
        record = registry.store.run(info.id)
        assert record
        self.started[record.holder] = record.holder_tick
        assert self.left() == list(self.started)

    def left(self) -> list[int]:
        return [pid for pid, tick in self.started.items() if alive(pid, tick)]

    def tell(self) -> list[str]:
        """What is left, for a message."""
        return [leaks.describe(psutil.Process(pid)) for pid in self.left() if psutil.pid_exists(pid)]
