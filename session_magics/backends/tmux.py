"""Sessions whose terminal a tmux server has, so that tmux can show it in any terminal.

Each session has a server of its own, with its socket in the session's directory: one that is killed takes one session
with it, and no name of one can mean another. Our holder keeps everything else, as for native sessions. The program
outlives its holder: the session is then lost, as nobody keeps its log, until it is stopped or started anew, which ends
the server too.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from session_magics.backends import Start
from session_magics.backends.native import ANSWER_LIMIT, NativeBackend, living_holder
from session_magics.environment import COOKIE
from session_magics.errors import SessionError, SessionNotRunning, SessionUnresponsive, StartFailed, UsageMistake
from session_magics.holder import processes, trees
from session_magics.holder.stop import end_tree
from session_magics.holder.tmux import PANE, SOCKET
from session_magics.model import SessionInfo, describe

OLDEST = (3, 2)
"""The first tmux that may be used; all that is asked of it is there (the youngest part, window-size, since 2.9)."""
VERSION_LIMIT = 5.0
"""Seconds for tmux to tell its version; it takes 0.002."""
SERVER_LIMIT = 2.0
"""Seconds for a killed server to be gone."""
SERVER_STEP = 0.005
ACTIONS: Mapping[str, tuple[str, ...]] = {
    "kill-pane": ("kill-pane",),
    "new-window": ("new-window",),
    "previous-window": ("previous-window",),
    "next-window": ("next-window",),
    "split-horizontally": ("split-window", "-h"),
    "split-vertically": ("split-window", "-v"),
    "next-pane": ("select-pane", "-t", ":.+"),
    "zoom": ("resize-pane", "-Z"),
    "tree": ("choose-tree",),
    "copy-mode": ("copy-mode",),
}
"""What ``act`` may have tmux do: nothing that could reach beyond the session's own server."""


class TmuxBackend(NativeBackend):
    """Starts holders that let tmux have the terminal. Holds nothing itself; any number may exist."""

    name = "tmux"

    def start(self, start: Start) -> None:
        """See Backend. StartFailed too where there is no tmux that can be used, and for shell sessions."""
        if start.program is not None:
            raise StartFailed(start.spec.name, "tmux holds no shells for cells: leave out --backend tmux")
        try:
            super().start(start)
        except StartFailed:
            self.force(start.directory, start.spec.id)  # the program of a holder that was killed meanwhile
            raise

    def extra(self, start: Start) -> Mapping[str, bytes]:
        """See NativeBackend."""
        try:
            program = find_tmux()
        except UsageMistake as mistake:
            raise StartFailed(start.spec.name, str(mistake)) from None
        return {"tmux": os.fsencode(program), "name": start.spec.name.encode()}

    def force(self, directory: Path, id: str) -> tuple[int, ...]:
        """See Backend. A server without a holder is ended too; that of a holder that hangs is left to it."""
        holder = living_holder(directory)
        survivors = super().force(directory, id)
        if holder:
            return survivors
        cookie = f"{COOKIE}={id}".encode()
        mark = trees.HOLDER_MARK + id.encode()
        servers = trees.carrying(mark)
        for server, tick in servers.items():
            survivors += end_tree(server, cookie)  # what has wiped its environment too
            processes.send(server, tick, signal.SIGKILL)
        deadline = time.monotonic() + SERVER_LIMIT
        while servers and time.monotonic() < deadline:
            servers = {pid: tick for pid, tick in servers.items() if _lives(pid, tick)}
            time.sleep(SERVER_STEP if servers else 0.0)
        if not servers:
            with contextlib.suppress(OSError):
                os.unlink(directory / SOCKET)
        return tuple(sorted({*survivors, *servers}))


def act(info: SessionInfo, action: str) -> None:
    """Have the tmux of a session do one of ACTIONS, in the window and pane that are in front.

    Raises:
        UsageMistake: tmux does not hold that session, or there is no such action.
        SessionNotRunning: the session has ended.
        SessionError: tmux refuses, and says why.
    """
    if info.backend != "tmux":
        raise UsageMistake(f"session {info.name!r} is not held by tmux: start one with --backend tmux")
    if not info.running:
        raise SessionNotRunning(info.name, describe(info.state))
    if action not in ACTIONS:
        near = difflib.get_close_matches(action, ACTIONS, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UsageMistake(f"{action[:40]!r} is no action: {hint}there are {', '.join(ACTIONS)}")
    words = ACTIONS[action]
    if action == "kill-pane":
        front = _asked(info, "display-message", "-p", "#{pane_id}")
        if front == PANE:
            raise UsageMistake(f"the program of {info.name!r} itself is in front: %session stop {info.name}")
        words = (*words, "-t", front)  # and none that has come to the front meanwhile
    _asked(info, *words)


def _asked(info: SessionInfo, *words: str) -> str:
    """What the server of a session answers."""
    try:
        answer = subprocess.run(
            [find_tmux(), "-S", SOCKET, *words],
            cwd=info.directory,  # the path of a socket may be too long for the system
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER_LIMIT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SessionUnresponsive(info.name, ANSWER_LIMIT) from None
    if answer.returncode:
        raise SessionError(f"tmux refuses: {answer.stderr.decode('utf-8', 'replace').strip()}")
    return answer.stdout.decode("utf-8", "replace").strip()


def find_tmux() -> str:
    """The path of a tmux that can be used; UsageMistake, in one line, if there is none."""
    program = shutil.which("tmux")
    if program is None:
        raise UsageMistake("no tmux on this machine: install tmux 3.2 or newer, or leave out --backend tmux")
    try:
        answer = subprocess.run(
            [program, "-V"], stdin=subprocess.DEVNULL, capture_output=True, timeout=VERSION_LIMIT, check=False
        )
        said = answer.stdout.decode("utf-8", "replace").strip()
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageMistake(f"{program} does not tell its version ({error}): leave out --backend tmux") from None
    version = re.search(r"(\d+)\.(\d+)", said)
    if not said.startswith("tmux ") or (version and (int(version[1]), int(version[2])) < OLDEST):
        raise UsageMistake(f"{program} is {said[:40] or 'no tmux'!r}: tmux 3.2 or newer is needed for --backend tmux")
    return program


def _lives(pid: int, tick: int) -> bool:
    one = processes.entry(pid)
    return one is not None and one.tick == tick and not one.gone
