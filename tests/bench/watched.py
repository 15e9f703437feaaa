"""Output that is logged and watched: beside a bare terminal, tmux with pipe-pane, and viewers that do not read."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from report import Figure, median, ratio
from rig import scratch
from session_magics import Command, Registry
from session_magics.session import Session
from volume import bare_pty

# 105 MB of 70-column text, so that starting counts for little.
LINES, LINE = 1_480_000, "x" * 69
FLOOD = f"yes {LINE} | head -n {LINES}"
BYTES = LINES * (len(LINE) + 2)
ROUNDS = 7
STALLED = (1, 10, 50)
STALLED_ROUNDS = 5


def watched() -> Iterator[Figure]:
    """105 MB with log and one viewer, against a bare read loop and tmux with pipe-pane, interleaved."""
    taken: dict[str, list[float]] = {"bare": [], "session": [], "tmux": []}
    with scratch() as root:
        registry = Registry(root)
        for number in range(ROUNDS):
            taken["bare"].append(bare_pty(FLOOD))
            taken["session"].append(_session(registry, f"flood{number}"))
            if shutil.which("tmux"):
                taken["tmux"].append(_tmux())
    yield median("105 MB, bare PTY loop", taken["bare"], "s")
    yield median("105 MB, log and one viewer", taken["session"], "s")
    yield ratio("log and one viewer / bare PTY loop", taken["session"], taken["bare"], 1 / 0.85)
    if taken["tmux"]:
        yield median("105 MB, tmux with pipe-pane", taken["tmux"], "s")
        yield ratio("log and one viewer / tmux with pipe-pane", taken["session"], taken["tmux"], 0.5)


def _session(registry: Registry, name: str) -> float:
    """Seconds from the word to go until a viewer has had the last byte."""
    session = registry.start(name, Command(("sh", "-c", f"stty -echo; echo; read go; {FLOOD}")))
    session.wait_for("\n")
    output, seen = session.follow(session.info().log_bytes), 0
    session.send(b"\r")
    began = time.perf_counter()
    while seen < BYTES:
        seen += len(next(output))
    taken = time.perf_counter() - began
    output.close()
    registry.remove(name, force=True)
    return taken


def _tmux() -> float:
    """Seconds from the start of a tmux session until its end, with all output piped to a file."""
    directory = tempfile.mkdtemp(prefix="smtmux-")
    log, gate = f"{directory}/log", f"{directory}/gate"
    tmux = ("tmux", "-f", "/dev/null", "-S", f"{directory}/socket")
    try:
        began = time.perf_counter()
        program = f"mkfifo {gate}; read go <{gate}; {FLOOD}"
        subprocess.run((*tmux, "new-session", "-d", "-x", "80", "-y", "24", program), check=True)
        subprocess.run((*tmux, "pipe-pane", f"exec cat >{shlex.quote(log)}"), check=True)
        server = int(subprocess.run((*tmux, "display", "-p", "#{pid}"), capture_output=True, check=True).stdout)
        process = psutil.Process(server)
        Path(gate).write_text("go\n")
        process.wait()  # it may leave before the log has the last bytes
        return time.perf_counter() - began
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def stalled() -> Iterator[Figure]:
    """A program that prints 105 MB, while viewers that asked for it do not read: its own run time."""
    taken: dict[int, list[float]] = {count: [] for count in (0, *STALLED)}
    grown: list[float] = []
    with scratch() as root:
        registry = Registry(root)
        for _ in range(STALLED_ROUNDS):
            for count, seconds in taken.items():
                registry_grown = _with_stalled(registry, count, seconds)
                if count:
                    grown.append(registry_grown)
    for count in STALLED:
        yield ratio(f"run time with {count} stalled viewers / with none", taken[count], taken[0], 1.05)
    yield median("run time with none", taken[0], "s")
    yield Figure("growth of the holder's memory", max(grown), "MB", 1)


def _with_stalled(registry: Registry, count: int, seconds: list[float]) -> float:
    """One run; megabytes by which the holder has grown."""
    code = (
        "import subprocess, sys, time; input(); began = time.perf_counter(); "
        f"subprocess.run('yes {LINE} | head -n {LINES}', shell=True); "
        f"open(sys.argv[1], 'w').write(str(time.perf_counter() - began))"
    )
    result = registry.store.root / "seconds"
    session = registry.start("flood", Command((sys.executable, "-c", code, str(result))))
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            stack.enter_context(_stalled_viewer(session))
        holder = psutil.Process(session.info().pid or 0).parent()
        assert holder is not None
        before = holder.memory_info().rss
        most = [before]
        over = threading.Event()
        watcher = threading.Thread(target=_watch, args=(holder, most, over))
        watcher.start()
        session.send(b"\r")
        session.wait()
        over.set()
        watcher.join()
    seconds.append(float(result.read_text()))
    registry.remove("flood", force=True)
    return (max(most) - before) / 1e6


@contextlib.contextmanager
def _stalled_viewer(session: Session) -> Iterator[socket.socket]:
    """One that asks to be told of more output, and never reads that."""
    with session.link() as link:
        link.watch(0, 0)
        yield link


def _watch(process: psutil.Process, most: list[int], over: threading.Event) -> None:
    while not over.wait(0.02):
        with contextlib.suppress(psutil.Error):
            most.append(process.memory_info().rss)
