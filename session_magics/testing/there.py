"""What the checks of sandboxes do in a place, and what they send there."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from typing import Any

from session_magics.model import Command
from session_magics.sandbox import Process, Result, Sandbox
from session_magics.testing.rig import LIMIT, same

EVERY_BYTE = bytes(range(256))
MUCH = EVERY_BYTE * (8 * 1024 * 1024 // 256)
HARD_TEXTS = ("", " ", "a b", "it's", 'say "so"', "line\nline\n", "\n", "$HOME `id` $(id)", "back\\slash\\", "-n", "*",
              "ünï ✓ 漢字", "~", "#", "!!", "a=b", "%s%n", "\t\x01\x7f", ";&|<>(){}[]?^")  # fmt: skip
"""What a careless quoting breaks; none holds a NUL."""
STEP = 0.02
"""Seconds between two looks at what should have ended."""
GONE = """
while read -r pid; do
  kill -0 "$pid" 2>/dev/null || continue
  case $(cat "/proc/$pid/stat" 2>/dev/null) in *") Z "*) continue;; esac
  echo "$pid"
done
"""
"""Prints those of the pids on standard input that live."""


@contextlib.contextmanager
def folder(sandbox: Sandbox) -> Iterator[str]:
    """A fresh folder below the root, by its relative name."""
    name = f"check-{os.urandom(4).hex()}"
    same(sandbox.exec(Command(("mkdir", name))).code, 0, "status of mkdir")
    try:
        yield name
    finally:
        sandbox.exec(Command(("rm", "-rf", name)))


@contextlib.contextmanager
def live(sandbox: Sandbox, *argv: str) -> Iterator[Process]:
    with closing(sandbox.start_process(Command(argv))) as process:
        yield process


@contextlib.contextmanager
def closing(process: Process) -> Iterator[Process]:
    try:
        yield process
    finally:
        process.kill()
        process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()


def sh(sandbox: Sandbox, script: str) -> Result:
    return sandbox.exec(Command(("sh", "-c", script)))


def pwd(sandbox: Sandbox, cwd: str | None) -> str:
    return sandbox.exec(Command(("pwd",), cwd)).stdout.decode().removesuffix("\n")


def all_end(sandbox: Sandbox, file: str, count: int) -> None:
    """So many pids are in the file, and what they name ends."""
    pids = sh(sandbox, f"cat {file}").stdout
    same(len(pids.split()), count, "pids noted")
    deadline = time.monotonic() + LIMIT
    while alive := sandbox.exec(Command(("sh", "-c", GONE)), stdin=pids).stdout:
        if time.monotonic() > deadline:
            raise AssertionError(f"still running there: {alive.decode().split()}")
        time.sleep(STEP)


def near(wrapped: Command) -> dict[str, Any]:
    """How a wrapped command is started here."""
    env = {**os.environ, **wrapped.env}
    return {"cwd": wrapped.cwd, "env": {name: value for name, value in env.items() if value is not None}}


def differs(found: bytes, wanted: bytes) -> str:
    """Where; short, as both may be long."""
    if found == wanted:
        return ""
    at = next((n for n, (one, other) in enumerate(zip(found, wanted, strict=False)) if one != other), -1)
    return f"{len(found)} bytes for {len(wanted)}" + (f", which differ from byte {at} on" if at >= 0 else "")
