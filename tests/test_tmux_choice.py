"""Whether tmux is to hold a session: asked for, preferred, on record; and refused where it cannot be had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import panes
from panes import NEEDED
from rounds import DEADLINE as LIMIT
from session_magics import Command, Registry, StartFailed, UsageMistake
from session_magics.backends.choice import abandoned
from session_magics.backends.tmux import TmuxBackend
from session_magics.store.records import read_spec, spec_bytes
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_verb

pytestmark = NEEDED
registry = panes.registry


@pytest.fixture
def fake_tmux(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only tmux on the path, to be written by the test."""
    (tmp_path / "tmux").touch()
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path / "tmux"


@pytest.mark.parametrize("said", ["tmux 3.1c", "tmux 2.9a", "tmux 1.8", "screen 4.9", ""])
def test_a_tmux_that_is_too_old_is_refused_in_one_line(root: Path, fake_tmux: Path, said: str) -> None:
    fake_tmux.write_text(f"#!/bin/sh\necho '{said}'\n")
    fake_tmux.chmod(0o755)
    with pytest.raises(UsageMistake, match=r"3\.2 or newer is needed") as caught:
        Registry(root).start("one", Command(("/bin/true",)), backend="tmux")
    assert "\n" not in str(caught.value)
    assert Registry(root).infos() == []
    with pytest.raises(StartFailed, match=r"3\.2 or newer"):
        Registry(root, backend=TmuxBackend()).start("one", Command(("/bin/true",)))


def test_a_missing_tmux_is_told_and_auto_does_without(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageMistake, match="no tmux on this machine"):
        Registry(root, backend="tmux").start("one", Command(("/bin/true",)))
    assert Registry(root).start("one", Command(("/bin/true",))).wait(LIMIT) == 0


def test_a_tmux_that_fails_leaves_nothing(root: Path, fake_tmux: Path) -> None:
    fake_tmux.write_text('#!/bin/sh\n[ "$1" = -V ] && echo tmux next-3.4 && exit\necho no room >&2\nexit 1\n')
    fake_tmux.chmod(0o755)
    with pytest.raises(StartFailed, match="tmux: no room"):
        Registry(root, backend="tmux").start("one", Command(("/bin/true",)))


def test_the_record_says_who_holds_a_session(root: Path, registry: Registry) -> None:
    held = registry.start("held", Command(("sleep", "1000")))
    plain_one = registry.start("plain", Command(("sleep", "1000")), backend="native")
    shell = registry.shell("main", lifetime="detached", rc=False)
    assert [info.backend for info in Registry(root).infos()] == ["tmux", "native", "native"]
    rows = json.loads(Verbs(registry, print).call(parse_verb("list --json")))  # type: ignore[arg-type]
    assert [row["backend"] for row in rows["value"]] == ["tmux", "native", "native"]
    for session in (held, plain_one, shell):
        Registry(root).get(session.name).stop(now=True)  # which prefers the other
    assert not abandoned(held.directory)


def test_a_record_without_a_backend_is_native(registry: Registry) -> None:
    session = registry.start("old", Command(("true",)), backend="native")
    record = json.loads(spec_bytes(read_spec(str(session.directory))))
    assert record.pop("backend") == "native"
    (session.directory / "spec.json").write_text(json.dumps(record))
    assert (session.info().backend, session.info().argv) == ("native", ("true",))


def test_a_backend_that_is_not_to_be_had_is_refused(registry: Registry) -> None:
    with pytest.raises(UsageMistake, match="auto, native, tmux"):
        registry.start("one", Command(("true",)), backend="screen")
    with pytest.raises(UsageMistake, match="auto, native, tmux"):
        Registry(registry.store.root, backend="screen")
    with pytest.raises(UsageMistake, match="tmux holds no shells"):
        parse_verb("start main --shell bash --backend tmux")
    assert registry.infos() == []


def test_verbs_start_with_what_is_preferred_and_what_is_asked_for(root: Path) -> None:
    registry = Registry(root)
    verbs = Verbs(registry, print, backend="tmux")
    verbs.call(parse_verb("start one -- sleep 1000"))
    verbs.call(parse_verb("start two --backend native -- sleep 1000"))
    verbs.call(parse_verb("start main --shell bash"))
    assert [info.backend for info in registry.infos()] == ["tmux", "native", "native"]
    registry.stop_all(now=True)
