"""Reports about holders: each has one session and an environment of its own, and may be of another version."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import session_magics
from held import command_line, kill_holder, record
from rounds import DEADLINE
from session_magics import Command, Exited, Lost, Registry, Session
from session_magics.holder import trees, wire
from session_magics.store import records
from terminals import attached

SLEEP = Command(("sleep", "1000"))

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="finds processes through /proc")


@pytest.fixture
def older(registry: Registry, tmp_path: Path) -> Session:
    """A session whose holder speaks the protocol before ours and has told of no features."""
    package = tmp_path / "session_magics"
    ignored = shutil.ignore_patterns("static", "labextension", "frontend", "nbconvert", "__pycache__")
    shutil.copytree(Path(session_magics.__file__).parent, package, ignore=ignored)
    ours = (package / "holder" / "wire.py").read_text()
    begin = ours.index("VERSION = ")
    past = f"VERSION = {wire.VERSION - 1}\nFEATURES = ()\n"
    (package / "holder" / "wire.py").write_text(ours[:begin] + past + ours[ours.index("\nHELLO") :])
    code = "r.start('old', Command(('sh', '-c', 'echo up; while read word; do echo got $word; done')))"
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from session_magics import *; r = Registry(); {code}"
    env = os.environ | {"SESSION_MAGICS_HOME": str(registry.store.root)}
    subprocess.run([sys.executable, "-c", code], check=True, env=env, cwd=tmp_path)
    session = registry.get("old")
    session.wait_for("up", DEADLINE)
    return session


def test_shpool_377_a_holder_of_the_protocol_before_is_spoken_to(older: Session) -> None:
    """After an update the new client could not speak to the old daemon, and all in it was lost."""
    assert record(older).protocol == wire.VERSION - 1
    with attached("old") as terminal:
        terminal.told("detaches")
        terminal.until("up")
        terminal.type("hello\r")
        terminal.until("got hello")
        terminal.type(b"\x1c")
        assert terminal.wait() == 0
    assert command_line("tail", "old")[1].endswith("got hello\n")
    assert command_line("stop", "old")[0] == 0 and isinstance(older.state(), Exited)


def test_pueue_562_json_is_json_whatever_the_versions(registry: Registry, older: Session) -> None:
    """A warning about versions came before the JSON."""
    newer = registry.start("newer", Command(("true",)))
    newer.wait(DEADLINE)
    spec = json.loads((newer.directory / "spec.json").read_text())
    (newer.directory / "spec.json").write_text(json.dumps(spec | {"schema": records.SCHEMA + 1}))
    status, out, _ = command_line("list", "--json")
    rows = {row["name"]: row["state"] for row in json.loads(out)["value"]}
    assert status == 0 and set(rows) == {"old", "newer"}
    older.stop(now=True)


def test_pueue_297_what_is_taken_out_of_the_environment_is_not_in_the_holders_way(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon's own environment came through to what it started."""
    monkeypatch.setenv("SECRET", "of-the-starter")
    session = registry.start("one", Command(("sleep", "1000"), env={"SECRET": None}))
    assert b"of-the-starter" in Path(f"/proc/{record(session).holder}/environ").read_bytes()
    for _ in range(2):
        environment = Path(f"/proc/{record(session).pid}/environ").read_bytes()
        assert b"SECRET" not in environment and trees.HOLDER_MARK not in environment
        registry.restart("one")


def test_tmux_2626_a_killed_holder_takes_one_of_ten_sessions(registry: Registry) -> None:
    """The one server of all was killed for its memory, and all sessions with it."""
    ten = [registry.start(f"s{number}", SLEEP) for number in range(10)]
    before = [session.state() for session in ten]
    kill_holder(ten[4])
    assert ten[4].state() == Lost("holder killed")
    others = [number for number in range(10) if number != 4]
    assert [ten[number].state() for number in others] == [before[number] for number in others]
    for number in others:
        ten[number].resize(30, 90)  # its holder answers
