"""A server of files that come half at first, for programs that show their progress, and a package for pip among them."""

from __future__ import annotations

import contextlib
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import BinaryIO

PIECE_BYTES = 64 * 1024
PAUSE = 0.02
"""Seconds between two pieces: 3 MB/s, slow enough for programs to draw many frames."""
FILE_BYTES = 2 * 1024 * 1024
HALF = FILE_BYTES // 2
HELD_LIMIT = 60.0
"""Seconds for which the second half is held back at most."""
WHEEL = "slowly-1.0-py3-none-any.whl"


class SlowHandler(SimpleHTTPRequestHandler):
    """Serves a directory, slowly and without a word; the second half of a large file once it is let go."""

    def __init__(self, *rest: object, go: threading.Event, directory: str) -> None:
        self._go = go
        super().__init__(*rest, directory=directory)  # type: ignore[arg-type]

    def copyfile(self, source: BinaryIO, outputfile: BinaryIO) -> None:  # type: ignore[override]
        given = 0
        while piece := source.read(PIECE_BYTES):
            outputfile.write(piece)
            given += len(piece)
            if given >= HALF:
                self._go.wait(HELD_LIMIT)
            time.sleep(PAUSE)

    def log_message(self, *_: object) -> None:
        pass


@dataclass(frozen=True)
class Source:
    """Where slow files are."""

    address: str
    go: threading.Event
    """Set: files come whole."""


@contextlib.contextmanager
def serve_slowly(folder: Path) -> Iterator[Source]:
    """A server that has ``data.bin`` and a package "slowly" for pip."""
    (folder / "data.bin").write_bytes(b"\0" * FILE_BYTES)
    with zipfile.ZipFile(folder / WHEEL, "w") as wheel:
        wheel.writestr("slowly.bin", b"\0" * FILE_BYTES)
        info = "slowly-1.0.dist-info"
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: slowly\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")
    go = threading.Event()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SlowHandler, directory=str(folder), go=go)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Source(f"http://127.0.0.1:{server.server_port}", go)
        go.set()
        server.shutdown()
        thread.join()
