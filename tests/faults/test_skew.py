"""Holders of earlier versions, alive, under today's client (line 42 of the programme of faults).

A holder keeps the code that it was started with, so after an upgrade the sessions that run have the old one. The
holders here are those of two earlier versions, each whole; they are started as their own version started them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from rounds import DEADLINE, alive, until
from session_magics import Registry
from session_magics.environment import environment
from session_magics.errors import CellCommandError
from session_magics.holder import trees, wire
from session_magics.model import Exited, Running, Spec
from session_magics.programs import find_shell
from session_magics.run import run_cell
from session_magics.session import Session
from terminals import attached

HOLDERS = Path(__file__).parent / "holders"
VERSIONS = ("first", "padded")
ENCODE = """
import ast, sys
sys.path.insert(0, sys.argv[1])
from session_magics.holder import launch
assert launch.__file__.startswith(sys.argv[1]), launch.__file__
sys.stdout.buffer.write(launch.encode(**ast.literal_eval(sys.stdin.read())))
"""
Start = Callable[..., Session]


@pytest.fixture(params=VERSIONS)
def start(real: Registry, tmp_path: Path, request: pytest.FixtureRequest) -> Start:
    """Starts a session that the holder of an earlier version holds."""
    with zipfile.ZipFile(HOLDERS / f"{request.param}.zip") as package:
        package.extractall(tmp_path)

    def start_it(name: str, *argv: str, shell: str | None = None) -> Session:
        spec = Spec(real.store.new_id(), name, argv, "/", shell=shell, created=time.time())
        directory = real.store.create(spec)
        record = json.loads((directory / "spec.json").read_text())
        del record["backend"]
        (directory / "spec.json").write_text(json.dumps(record))
        real.store.claim(name, spec.id)
        env = environment({}, session_id=spec.id, shell=shell is not None)
        fields = {
            "directory": os.fsencode(directory), "argv": wire.pack(*map(os.fsencode, argv)), "cwd": b"/",
            "env": wire.pack(*[os.fsencode(part) for pair in env.items() for part in pair]), "rows": b"24",
            "columns": b"80", "shell": (shell or "").encode(), "rc": b"0",
        }  # fmt: skip
        encode = [sys.executable, "-I", "-S", "-c", ENCODE, str(tmp_path)]
        message = subprocess.run(encode, input=repr(fields).encode(), stdout=subprocess.PIPE, check=True).stdout
        mark = trees.HOLDER_MARK.decode().rstrip("=")
        answer = subprocess.run(
            [sys.executable, "-I", "-S", str(tmp_path / "session_magics" / "holder" / "__main__.py")],
            input=message, stdout=subprocess.PIPE, start_new_session=True, cwd="/", env={**os.environ, mark: spec.id},
        )  # fmt: skip
        assert answer.stdout == b"ok"
        return real.get(name)

    return start_it


def test_line_42_an_earlier_holders_session_is_listed_read_typed_to_and_stopped(real: Registry, start: Start) -> None:
    session = start("old", "sh", "-c", "echo ready; while read word; do echo got $word; stty size; done")
    run = real.store.run(session.id)
    assert run is not None and os.fsencode(HOLDERS.parent) not in command_of(run.holder) and alive(run.pid, run.tick)
    session.wait_for("ready", DEADLINE)
    (info,) = real.infos()
    assert isinstance(info.state, Running) and info.pid == run.pid and info.backend == "native"
    session.send("one\r")
    session.wait_for("got one", DEADLINE)
    assert session.tail(2).split("\n")[0] in ("one", "got one")
    session.resize(30, 100)
    session.send("two\r")
    session.wait_for("30 100", DEADLINE)
    real.stop_all()
    assert isinstance(session.state(), Exited) and not alive(run.pid, run.tick)
    until(lambda: not alive(run.holder, run.holder_tick))
    real.remove("old")


def test_line_42_a_terminal_attaches_to_an_earlier_holder(start: Start, root: Path) -> None:
    session = start("old", "sh", "-c", "echo ready; read word; echo got $word; sleep 1000")
    session.wait_for("ready", DEADLINE)
    with attached("old") as terminal:
        terminal.until("ready")
        terminal.type("two\r")
        terminal.until("got two")
        terminal.type("\x1c")  # the key that detaches
        assert terminal.wait() == 0
    assert isinstance(session.state(), Running)


def test_line_42_an_earlier_holder_interrupts_and_starts_anew(real: Registry, start: Start) -> None:
    session = start("old", "sh", "-c", "trap 'echo interrupted' INT; echo ready; while :; do sleep 0.05; done")
    session.wait_for("ready", DEADLINE)
    session.interrupt()
    session.wait_for("interrupted", DEADLINE)
    real.restart("old", grace=0)
    assert session.info().generation == 2 and isinstance(session.state(), Running)
    session.stop(now=True)
    assert real.restart("old").info().generation == 3, "by today's holder now"


def test_line_42_a_cell_runs_in_a_shell_of_an_earlier_holder(start: Start) -> None:
    session = start("old", find_shell("bash")[0], shell="bash")
    with pytest.raises(CellCommandError) as failed:
        run_cell(session, "sleep 0.2; echo out; cd /tmp; (exit 5)")
    assert failed.value.returncode == 5 and failed.value.result is not None
    result = failed.value.result
    assert (session.output(result.begin, result.end), result.cwd) == (b"out\n", "/tmp")


def command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
