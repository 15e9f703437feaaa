"""A server of files that come slowly, for programs that show their progress, and a package for pip among them."""

from __future__ import annotations

import contextlib
import threading
import time
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO

PIECE_BYTES = 64 * 1024
PAUSE = 0.05
"""Seconds between two pieces: 1.3 MB/s, slow enough for programs to draw many frames."""
FILE_BYTES = 2 * 1024 * 1024
WHEEL = "slowly-1.0-py3-none-any.whl"


class SlowHandler(SimpleHTTPRequestHandler):
    """Serves a directory, slowly and without a word."""

    def copyfile(self, source: BinaryIO, outputfile: BinaryIO) -> None:  # type: ignore[override]
        while piece := source.read(PIECE_BYTES):
            outputfile.write(piece)
            time.sleep(PAUSE)

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serve_slowly(folder: Path) -> Iterator[str]:
    """The address of a server that has ``data.bin`` and a package "slowly" for pip."""
    (folder / "data.bin").write_bytes(b"\0" * FILE_BYTES)
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        wheel.writestr("slowly.bin", b"\0" * FILE_BYTES)
        info = "slowly-1.0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: slowly\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SlowHandler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()
