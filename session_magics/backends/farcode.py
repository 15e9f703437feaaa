"""What of the package is sent to a far side, so that a session can be held there by Python alone."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path

from session_magics.holder import launch

NEAR_ONLY = ("relay*.py", "tmux.py", "pane.py", "gate.py", "far*.py", "control.py")
"""Files of the holder that nothing loads on a far side."""
READER = """import os
def r(n):
 b = b""
 while len(b) < n:
  p = os.read(0, n - len(b))
  if not p: os._exit(1)
  b += p
 return b
exec(r(int(r(8))))"""
"""What Python is started with there: it reads from its standard input what to do."""


@dataclass(frozen=True)
class FarCode:
    """The code, as ``agentboot`` takes it."""

    boot: bytes
    """Python that defines ``boot``."""
    call: str
    """The arguments of ``boot`` behind the reader and the mark: what the code consists of."""
    packed: bytes


def far_code() -> FarCode:
    """Read it from the package; it takes some 20 ms."""
    folder = Path(launch.__file__).parent
    left_out = {path for pattern in NEAR_ONLY for path in folder.glob(pattern)}
    texts = {
        f"session_magics/holder/{path.relative_to(folder)}": path.read_bytes()
        for path in sorted(folder.rglob("*.py"))
        if path not in left_out
    }
    text = b"".join(texts.values())
    files = [(name, len(data)) for name, data in texts.items()]
    digest = hashlib.sha256(repr(files).encode() + text).hexdigest()[:32]
    boot = (folder / "agentboot.py").read_bytes()
    return FarCode(boot, f"{digest!r}, {files!r}", zlib.compress(text))
