"""Output that tells by itself at which offset of a log it belongs, and a program that prints it.

Every byte is a function of its offset, so that a reader who begins anywhere, or comes after a gap, can check all it
gets. Run as a program, ``python floods.py FILE``: prints one byte, then as many as each line on its input says ("on":
until TERM). FILE tells how many that are so far.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import termios
from pathlib import Path

# Bytes after which it repeats itself; no power of two, so that nothing that is lost by blocks goes unseen.
PERIOD = 1_000_003
# No control characters: they would mean something to the terminal on the way.
PATTERN = random.Random(17).randbytes(PERIOD).translate(bytes(48 + byte % 64 for byte in range(256)))
DOUBLE = PATTERN * 2
PIECE = 65536


def expected(offset: int, size: int) -> bytes:
    """The bytes that belong at an offset."""
    begin = offset % PERIOD
    return (PATTERN * ((begin + size) // PERIOD + 1))[begin : begin + size]


def flood(file: str) -> tuple[str, ...]:
    """The argv of a program that prints it."""
    return (sys.executable, "-I", "-S", str(Path(__file__).resolve()), file)


def main(file: str) -> None:
    modes = termios.tcgetattr(0)
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(0, termios.TCSANOW, modes)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    at, left = 0, 1.0
    with open(file, "w+b", buffering=0) as count:
        while True:
            while left > 0:
                begin = at % PERIOD
                # A write that is interrupted by the end must have been counted: both happen within one call.
                signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM,))
                written = os.write(1, DOUBLE[begin : begin + int(min(left, PIECE))])
                at, left = at + written, left - written
                os.pwrite(count.fileno(), b"%d" % at, 0)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM,))
            line = sys.stdin.readline().strip()
            if not line:
                return
            left = float("inf") if line == "on" else int(line)


if __name__ == "__main__":
    main(sys.argv[1])
