"""The leak check finds every kind of leak, and names it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

import leaks
from rounds import DEADLINE


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(leaks, "SETTLE", 0.2)
    return tmp_path


def sleeper(**environment: str) -> subprocess.Popen[bytes]:
    """A process that carries the given variables; it says when it runs, as its environment is read from outside."""
    code = "print(flush=True); import time; time.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", code], env=os.environ | environment, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    return process


def test_a_clean_test_has_no_leak(place: Path) -> None:
    assert leaks.leaked(place, leaks.baseline()) == []


def test_a_process_of_the_root_is_named_and_killed(place: Path) -> None:
    process = sleeper(SESSION_MAGICS_HOME=str(place))
    before = leaks.baseline()
    found = leaks.leaked(place, before)
    assert [line.split()[:2] for line in found] == [["process", str(process.pid)]]
    assert process.wait(DEADLINE) is not None


def test_a_process_is_known_by_the_cookie_of_its_session(place: Path) -> None:
    (place / "sessions" / "s1").mkdir(parents=True)
    process = sleeper(SESSION_MAGICS_SESSION="s1")
    assert [found.pid for found in leaks.processes_of(place)] == [process.pid]
    leaks.leaked(place, leaks.baseline())
    assert process.wait(DEADLINE) is not None


def test_an_unwaited_child_is_a_leak(place: Path) -> None:
    before = leaks.baseline()
    process = sleeper()
    found = leaks.leaked(place, before)
    assert found and found[0].startswith(f"child {process.pid}")
    process.wait(DEADLINE)


def test_a_thread_is_a_leak(place: Path) -> None:
    before = leaks.baseline()
    gate = threading.Event()
    thread = threading.Thread(target=gate.wait, name="forgotten")
    thread.start()
    assert leaks.leaked(place, before) == ["thread forgotten"]
    gate.set()
    thread.join()


def test_a_descriptor_is_a_leak(place: Path) -> None:
    if not leaks.descriptors():
        pytest.skip("this system does not list descriptors")
    before = leaks.baseline()
    with tempfile.NamedTemporaryFile(dir=place) as file:
        assert leaks.leaked(place, before) == [f"descriptor {file.fileno()} -> {file.name}"]
