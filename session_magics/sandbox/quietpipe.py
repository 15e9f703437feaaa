"""Runs a program whose output begins behind a line with a mark: ``python -I -S quietpipe.py MARK PROGRAM WORDS…``.

For ssh to a host where start-up files of the login shell print. Only the output passes through here; input and error
output are the program's own. Ends with its status. Of the standard library only, as it may outlive its package.
"""

from __future__ import annotations

import os
import sys

CHUNK = 1 << 16


def main(mark: bytes, words: list[str]) -> int:
    """Run the program; its status, 255 if it ended before the mark came and had none."""
    read_fd, write_fd = os.pipe()
    os.set_inheritable(write_fd, False)
    actions = [(os.POSIX_SPAWN_DUP2, write_fd, 1)]
    pid = os.posix_spawnp(words[0], words, os.environ, file_actions=actions)
    os.close(write_fd)
    _pass_on(read_fd, mark + b"\n")
    os.close(read_fd)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return status if status >= 0 else 128 - status


def _pass_on(read_fd: int, mark: bytes) -> None:
    seen, begun = b"", False
    while piece := os.read(read_fd, CHUNK):
        if not begun:
            seen += piece
            before, begun, piece = seen.partition(mark)[0], mark in seen, seen.partition(mark)[2]
            if not begun:
                seen = before[-len(mark) :]
        rest = memoryview(piece)
        while rest:
            try:
                rest = rest[os.write(1, rest) :]
            except BrokenPipeError:
                return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1].encode(), sys.argv[2:]))
