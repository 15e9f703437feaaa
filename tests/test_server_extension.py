"""The extension of the Jupyter server, in a real server with real connections."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("jupyter_server")
from tornado.websocket import websocket_connect

from rounds import until
from session_magics import server

HERE = Path(__file__).parent
OURS = HERE.parent / "session_magics" / "server.json"
LIMIT = 30.0
# Tells of every connection to a kernel whether TCP_NODELAY is set.
TELLER = """
import gc, json, socket
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.services.kernels.websocket import KernelWebsocketHandler

class Teller(JupyterHandler):
    def get(self):
        sockets = [one.ws_connection.stream.socket for one in gc.get_objects()
                   if isinstance(one, KernelWebsocketHandler) and one.ws_connection]
        self.finish(json.dumps([bool(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)) for one in sockets]))

def _jupyter_server_extension_points():
    return [{"module": "teller"}]

def _load_jupyter_server_extension(app):
    app.web_app.add_handlers(".*$", [(r"/teller", Teller)])
"""


@contextlib.contextmanager
def running(place: Path, *options: str) -> Iterator[int]:
    """A server that reads our file as an installed one does, on the port that is given.

    It takes any port, and another if that is gone meanwhile; a file of its own says which.
    """
    files = place / "config" / "jupyter_server_config.d"
    files.mkdir(parents=True)
    (files / "session_magics.server.json").write_text(OURS.read_text())
    (place / "teller.py").write_text(TELLER)
    env = os.environ | {
        "HOME": str(place),
        "JUPYTER_RUNTIME_DIR": str(place / "runtime"),
        "JUPYTER_CONFIG_PATH": str(place / "config"),
        "PYTHONPATH": os.pathsep.join([str(place), str(HERE.parent)]),
    }
    command = [
        *(sys.executable, "-m", "jupyter_server", "--no-browser", "--allow-root", "--port=0"),
        *("--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True"),
        *(f"--ServerApp.root_dir={place}", "--ServerApp.jpserver_extensions=teller=True", *options),
    ]
    with (place / "server.log").open("wb") as log:
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=place)
    try:
        until(lambda: process.poll() is not None or port_of(place, process.pid), LIMIT, what=place / "server.log")
        assert process.poll() is None, (place / "server.log").read_text()
        yield port_of(place, process.pid)
    finally:
        process.terminate()
        process.wait(LIMIT)


def port_of(place: Path, pid: int) -> int:
    """The port of a server that answers; 0 for one that does not yet."""
    with contextlib.suppress(OSError, ValueError):
        port = int(json.loads((place / "runtime" / f"jpserver-{pid}.json").read_text())["port"])
        ask(port, "api")
        return port
    return 0


def ask(port: int, path: str, data: bytes | None = None) -> object:
    """What the server says."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", data) as answer:
        return json.loads(answer.read())


async def with_connection(port: int) -> object:
    """What the teller says while there is a connection to a kernel."""
    loop = asyncio.get_running_loop()
    kernel = await loop.run_in_executor(None, ask, port, "api/kernels", b"{}")
    assert isinstance(kernel, dict)
    connection = await websocket_connect(f"ws://127.0.0.1:{port}/api/kernels/{kernel['id']}/channels?session_id=x")
    try:
        return await loop.run_in_executor(None, ask, port, "teller")
    finally:
        connection.close()
        while await connection.read_message() is not None:
            pass


@pytest.mark.kernel
def test_connections_to_kernels_send_at_once(tmp_path: Path) -> None:
    with running(tmp_path) as port:
        assert asyncio.run(with_connection(port)) == [True]


@pytest.mark.kernel
def test_it_is_switched_off_as_any_extension(tmp_path: Path) -> None:
    with running(tmp_path, "--ServerApp.jpserver_extensions=session_magics.server=False") as port:
        assert asyncio.run(with_connection(port)) == [False]


def test_a_server_without_such_connections_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "jupyter_server.services.kernels.websocket", SimpleNamespace())
    caplog.set_level(logging.INFO)
    server._load_jupyter_server_extension(SimpleNamespace(log=logging.getLogger("server")))
    assert len(caplog.records) == 1
