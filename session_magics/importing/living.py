"""Whether the process of another registry's session certainly lives. It is only looked at, never touched."""

from __future__ import annotations

import os
import shutil
import subprocess

from session_magics.importing.past import Past

SAME_START = 2.0
"""Seconds by which a process's start and the recorded one may differ: the record is written after the start."""
TMUX_LIMIT = 2.0
"""Seconds for tmux to list its sessions; it takes 5 ms."""


def living(past: Past) -> str:
    """What of the session lives, in a clause; "" where nothing is proven.

    A pid alone proves nothing, as the system gives it to others: the process has to be as old as the session.
    """
    if past.pid > 0 and past.created:
        import psutil  # slow to import

        try:
            if abs(psutil.Process(past.pid).create_time() - past.created) <= SAME_START:
                return f"process {past.pid}"
        except (psutil.Error, OverflowError):
            pass
    if past.tmux and _in_tmux(*past.tmux):
        return f"tmux session {past.tmux[1]}"
    return ""


def _in_tmux(socket: str, session: str) -> bool:
    program = shutil.which("tmux")
    if program is None:
        return False
    command = [program, *(("-L", socket) if socket else ()), "list-sessions", "-F", "#{session_name}"]
    env = {key: value for key, value in os.environ.items() if key != "TMUX"}  # or the server we run in is asked
    try:  # listing starts no server
        listed = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=TMUX_LIMIT, env=env)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return session in listed.stdout.decode("utf-8", "surrogateescape").split("\n")
