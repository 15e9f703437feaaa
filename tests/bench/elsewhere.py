"""How long an empty cell takes in a container and over ssh, beside a local one and a command started for each."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator

from dockers import Dockerd
from latency import WARM_UP, milliseconds
from report import Figure, median, ratio
from rig import running_kernel
from sshds import Sshd

ROUNDS = 40


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
        taken: dict[str, list[float]] = {name: [] for name in (*cells, *commands)}
        with running_kernel() as kernel:
            for number in range(WARM_UP + ROUNDS):
                now = {name: milliseconds(kernel, code) for name, code in cells.items()}
                now |= {name: _milliseconds(words) for name, words in commands.items()}
                for name, value in now.items() if number >= WARM_UP else ():
                    taken[name].append(value)
            kernel.good("%session stop box bare far")
    for name, values in taken.items():
        yield median(name if name in commands else f"true {name}", values, "ms")
    for name in ("docker", "docker without python", "ssh"):
        yield ratio(f"true: {name} / here", taken[name], taken["here"], 2.0)
    yield ratio("true: docker / docker exec", taken["docker"], taken["docker exec"], 1 / 20)
    yield ratio(
        "true: docker without python / docker exec", taken["docker without python"], taken["docker exec"], 1 / 20
    )
    yield ratio("true: ssh / ssh host true", taken["ssh"], taken["ssh host"], 1 / 20)


def _milliseconds(words: tuple[str, ...]) -> float:
    began = time.monotonic()
    subprocess.run(words, check=True, stdin=subprocess.DEVNULL)
    return (time.monotonic() - began) * 1000
