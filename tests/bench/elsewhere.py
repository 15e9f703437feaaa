"""How long `true` takes in a container and over ssh, beside a local shell and a command started for each.

As a cell of a notebook, which is what a person waits for, and as a call from Python: that is what compares with a
command that is started by a call.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator

from dockers import Dockerd
from latency import WARM_UP, milliseconds
from report import Figure, median, ratio
from rig import running_kernel
from session_magics import Registry
from session_magics.shell import Attachment
from sshds import Sshd

ROUNDS = 40
# Of the sessions, by what they are shown as.
NAMES = {"here": "main", "docker": "box", "docker without python": "bare", "ssh": "far"}


def elsewhere() -> Iterator[Figure]:
    """`true` in a live shell here, in a container with and without Python, and over ssh; and as a command each."""
    with contextlib.ExitStack() as stack:
        engine, server = Dockerd(), Sshd()
        stack.callback(server.stop)
        stack.callback(engine.stop)
        engine.start()
        os.environ["DOCKER_HOST"] = engine.host
        with_python, without = engine.run("tools"), engine.run("bash")
        cells = {
            "here": "%%sh_session\ntrue",
            "docker": f"%%sh_session box --on container:{with_python}\ntrue",
            "docker without python": f"%%sh_session bare --on container:{without}\ntrue",
            "ssh": f"%%sh_session far --on ssh:far,config={server.config}\ntrue",
        }
        commands = {
            "docker exec": ("docker", "-H", engine.host, "exec", with_python, "true"),
            "ssh host": ("ssh", "-F", str(server.config), "far", "true"),
        }
        taken: dict[str, list[float]] = {name: [] for name in (*cells, *map(_called, cells), *commands)}
        home = stack.enter_context(tempfile.TemporaryDirectory())
        with running_kernel(environment={"SESSION_MAGICS_HOME": home}) as kernel:
            attached = {}
            for name, code in cells.items():
                kernel.good(code.replace("%%sh_session", "%%sh_session --lifetime detached"))
                session = Registry(home).get(NAMES[name])
                attached[name] = stack.enter_context(contextlib.closing(session.attach()))
            for number in range(WARM_UP + ROUNDS):
                now = {name: milliseconds(kernel, code) for name, code in cells.items()}
                now |= {_called(name): _call(shell) for name, shell in attached.items()}
                now |= {name: _milliseconds(words) for name, words in commands.items()}
                for name, value in now.items() if number >= WARM_UP else ():
                    taken[name].append(value)
            kernel.good("%session stop --all")
    for name, values in taken.items():
        yield median(name, values, "ms")
    for name in list(cells)[1:]:
        yield ratio(f"cell: {name} / here", taken[name], taken["here"], 2.0)
    for name in list(cells)[1:]:
        yield ratio(f"call: {name} / here", taken[_called(name)], taken[_called("here")], 2.0)
    for name in ("docker", "docker without python"):
        yield ratio(f"call: {name} / docker exec", taken[_called(name)], taken["docker exec"], 1 / 20)
    yield ratio("call: ssh / ssh host true", taken[_called("ssh")], taken["ssh host"], 1 / 20)


def _called(name: str) -> str:
    return f"{name}, called"


def _call(shell: Attachment) -> float:
    began = time.monotonic()
    cell = shell.cell("true")
    while cell.result is None:
        cell.receive(None)
    return (time.monotonic() - began) * 1000


def _milliseconds(words: tuple[str, ...]) -> float:
    began = time.monotonic()
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    return (time.monotonic() - began) * 1000
