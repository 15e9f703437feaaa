"""The Jupyter server that browser tests talk to: its folder, its kernels, the notebooks in it."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from session_magics import Registry

START_LIMIT = 120.0
"""Seconds for a server to answer."""
STOP_LIMIT = 60.0
"""Seconds for it to end with its kernels."""
STEP = 0.05
PORTS = range(20_000, 30_000)
"""Below those that the system gives to whoever asks for any, as all kernels do: nobody takes one between our look at it
and the server's begin."""
PORT_TRIES = 50

LOAD = "%load_ext session_magics"
SETTINGS = {
    "apputils-extension/notification": '{"fetchNews": "false"}',
    "completer-extension/manager": '{"providerTimeout": 60000}',  # after a second it would do without the kernel
}
"""Of JupyterLab, by their names."""


@dataclass(frozen=True)
class Server:
    """One Jupyter server with JupyterLab, Notebook 7 and nbclassic."""

    address: str
    folder: Path
    """What it shows."""
    registry: Registry
    """The sessions of its kernels."""

    def call(self, method: str, path: str, content: object = None) -> Any:
        """Use its REST interface."""
        data = None if content is None else json.dumps(content).encode()
        request = urllib.request.Request(f"{self.address}/{path}", data, method=method)
        with urllib.request.urlopen(request) as answer:
            return json.loads(answer.read() or b"null")

    def start_kernel(self) -> str:
        """Start a kernel; its id."""
        return str(self.call("POST", "api/kernels", {"name": "python3"})["id"])

    def end_kernel(self, kernel: str) -> None:
        """End a kernel that may have ended already."""
        with contextlib.suppress(urllib.error.HTTPError):
            self.call("DELETE", f"api/kernels/{kernel}")

    def settled(self, kernel: str, limit: float) -> bool:
        """Whether a kernel runs nothing any more, at the latest after ``limit`` seconds."""
        deadline = time.monotonic() + limit
        while True:
            try:
                state = self.call("GET", f"api/kernels/{kernel}")["execution_state"]
            except urllib.error.HTTPError:
                return False
            if state == "idle":
                return True
            if time.monotonic() > deadline:
                return False
            time.sleep(STEP)

    def bind(self, path: Path, kernel: str) -> None:
        """Have a notebook opened with this kernel."""
        name = str(path.relative_to(self.folder))
        self.call("POST", "api/sessions", {"path": name, "name": name, "type": "notebook", "kernel": {"id": kernel}})

    def clean(self) -> None:
        """Stop and forget all sessions."""
        self.registry.stop_all(now=True)
        for info in self.registry.infos():
            if not info.running and "@" not in info.name:
                self.registry.remove(info.name, force=True)


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[Server]:
    """A Jupyter server that keeps everything under a folder."""
    shown, home, sessions = folder / "notebooks", folder / "home", folder / "sessions"
    settings = home / ".jupyter" / "lab" / "user-settings" / "@jupyterlab"
    for name, content in SETTINGS.items():
        path = settings / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True)
        path.write_text(content)
    shown.mkdir()
    port = free_port()
    command = [
        sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root", f"--port={port}",
        "--ServerApp.port_retries=0", "--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True",
        "--LabApp.expose_app_in_browser=True", "--JupyterNotebookApp.expose_app_in_browser=True",
        f"--ServerApp.root_dir={shown}",
    ]  # fmt: skip
    env = dict(os.environ, HOME=str(home), SESSION_MAGICS_HOME=str(sessions), SHELL="/bin/bash")
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=shown)
    try:
        address = f"http://127.0.0.1:{port}"
        wait_answers(f"{address}/api", process, folder / "server.log")
        yield Server(address, shown, Registry(sessions))
    finally:
        process.terminate()
        try:
            process.wait(STOP_LIMIT)
        except subprocess.TimeoutExpired:  # of no interest here; its kernels end by themselves
            process.kill()
            process.wait()


def wait_answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a server that was started answers."""
    deadline = time.monotonic() + START_LIMIT
    while True:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(url).read()
            return
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(STEP)


def free_port() -> int:
    """A port that nobody listens on."""
    for port in random.sample(PORTS, PORT_TRIES):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("all ports are taken")


def write_notebook(path: Path, cells: Sequence[str], kernel: str = "python3") -> None:
    """Write a notebook of code cells for a kernel."""
    written = [
        {"cell_type": "code", "id": f"c{n}", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
        for n, source in enumerate(cells)
    ]
    spec = {"display_name": kernel, "language": "python" if kernel == "python3" else "bash", "name": kernel}
    content = {"cells": written, "metadata": {"kernelspec": spec}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(content))
