"""Records that earlier versions wrote are read for what they say.

``records/NAME`` is a registry as that version left it: ``first``, ``padded`` (``run.json`` filled up, so that a full
disk has room for the next), ``backend`` (who holds a session is on record). Of their machine only the name and the
number of its boot were changed.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from rounds import DEADLINE
from session_magics import Registry
from session_magics.errors import SessionNotRunning, StoreError
from session_magics.listing import Listing, Observer
from session_magics.log import EventReader
from session_magics.model import Exited, FailedToStart, Lost, Unknown

RECORDS = Path(__file__).parent / "records"
SHAPES = ("first", "padded", "backend")


@pytest.fixture(params=SHAPES)
def registry(root: Path, request: pytest.FixtureRequest) -> Iterator[Registry]:
    """A copy of what a version left, with the rights that it gave its directories."""
    shutil.copytree(RECORDS / request.param, root, dirs_exist_ok=True)
    for folder, _, files in os.walk(root):
        os.chmod(folder, 0o700)
        for file in files:
            os.chmod(f"{folder}/{file}", 0o600)
    yield Registry(root)


def test_what_an_earlier_version_left_is_listed_shown_and_removed(registry: Registry) -> None:
    infos = {info.name: info for info in registry.infos()}
    assert {"exited", "killed", "failed", "lost", "cells"} <= set(infos)
    exited, cells, failed = infos["exited"], infos["cells"], infos["failed"]
    assert isinstance(exited.state, Exited) and (exited.state.code, exited.state.background) == (3, False)
    assert (exited.labels, exited.size, exited.cwd, exited.argv[0]) == ({"crew": "a"}, (30, 100), "/", "sh")
    assert isinstance(infos["killed"].state, Exited) and infos["killed"].state.signal == 9
    assert isinstance(failed.state, FailedToStart) and "no such file" in failed.state.reason
    assert infos["lost"].state == Lost("on host elsewhere")
    assert cells.shell == "bash" and [info.backend for info in infos.values()].count("native") >= 5
    assert "exited 3" in str(Listing(Observer().rows(list(infos.values())), {}))
    for name in set(infos) - {"failed"}:
        assert registry.get(name).tail() == f"out of {name}" == registry.get(name).snapshot().strip()
    events, _ = EventReader(cells.directory).events()
    assert [event.kind for event in events] == ["begin", "end", "exit"]
    for name in infos:
        registry.remove(name)
    assert not registry.infos() and not os.listdir(registry.store.root / "sessions")


def test_waiting_and_stopping_tell_the_end_that_is_on_record(registry: Registry) -> None:
    assert (registry.get("exited").wait(0), registry.get("killed").wait(0)) == (3, -9)
    for name in ("failed", "lost"):
        with pytest.raises(SessionNotRunning):
            registry.get(name).wait(0)
    assert registry.stop_all() == []
    assert isinstance(registry.get("lost").stop(), Lost), "never an end that nobody saw"


def test_a_loss_on_this_machine_was_a_reboot(registry: Registry) -> None:
    record = registry.get("lost").directory / "run.json"
    record.write_text(record.read_text().replace("elsewhere", socket.gethostname()))
    assert registry.get("lost").state() == Lost("reboot")


def test_what_an_earlier_version_left_is_started_anew(registry: Registry) -> None:
    session = registry.restart("exited")
    assert session.wait(DEADLINE) == 3 and session.info().generation == 2
    assert session.tail() == "out of exited\nout of exited"


@pytest.mark.parametrize("file", ["spec.json", "run.json"])
def test_a_record_of_a_later_version_is_told_and_left_alone(registry: Registry, file: str) -> None:
    session = registry.get("exited")
    record = session.directory / file
    record.write_text(json.dumps({**json.loads(record.read_text()), "schema": 2}))
    state = session.info().state
    assert isinstance(state, Unknown | Lost)
    assert "newer session-magics (schema 2): update this one" in state.reason
    if file == "spec.json":
        with pytest.raises(StoreError, match="update this one"):
            registry.restart("exited")
    assert json.loads(record.read_text())["schema"] == 2
