"""Names, duplicates, races and removal: what a person who starts and stops sessions may count on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from others import in_another_process, said
from rounds import DEADLINE, until
from session_magics import (
    Command,
    FailedToStart,
    Registry,
    Running,
    SessionExists,
    SessionNotFound,
    StartFailed,
    UsageMistake,
)

SLEEP = Command(("sleep", "60"))
PROJECT = str(Path(__file__).parent.parent)


# ---------------------------------------------------------------------- names


@pytest.mark.parametrize("name", ["../x", "x" * 300, "a\0b", "", ".hidden", "a b", "ä", "a/b", "a@b@c/d"])
def test_a_bad_name_is_refused_in_one_line_and_nothing_is_made(fake: Registry, name: str) -> None:
    for call in (lambda: fake.start(name, Command(("true",))), lambda: fake.get(name), lambda: fake.remove(name)):
        with pytest.raises(UsageMistake) as caught:
            call()
        assert "\n" not in str(caught.value) and "\0" not in str(caught.value) and len(str(caught.value)) < 200
    assert os.listdir(fake.store.root / "names") == os.listdir(fake.store.root / "sessions") == []


@pytest.mark.parametrize("argv", [(), ("",), ("a\0b",), ("true", "\0")])
def test_a_bad_command_is_refused_and_nothing_is_made(fake: Registry, argv: tuple[str, ...]) -> None:
    with pytest.raises(UsageMistake):
        fake.start("one", Command(argv))
    assert fake.infos() == [] and os.listdir(fake.store.root / "sessions") == []


def test_an_unknown_name_lists_those_that_exist(fake: Registry) -> None:
    with pytest.raises(SessionNotFound, match="none exists yet"):
        fake.get("web")
    fake.start("api", Command(("true",)))
    fake.start("train", Command(("true",)))
    with pytest.raises(SessionNotFound, match="no session named 'web'; known: api, train") as caught:
        fake.get("web")
    assert caught.value.known == ["api", "train"]


def test_kernel_sessions_are_named_within_their_process(real: Registry) -> None:
    mine = real.shell("main", rc=False)
    other = in_another_process(
        real.store.root,
        "s = r.shell('main', rc=False)\nprint(s.id, r.owner, sorted(i.name for i in r.infos()), flush=True)\ninput()",
    )
    assert other.stdout is not None and other.stdin is not None
    theirs, token, names = other.stdout.readline().strip().split(" ", 2)
    assert theirs != mine.id
    assert names == str(sorted(["main", f"main@{real.owner}"]))
    assert {info.name for info in real.infos()} == {"main", f"main@{token}"}
    assert real.get("main").id == mine.id and real.get(f"main@{token}").id == theirs
    assert real.stop_all(now=True) == ["main"]
    assert isinstance(real.get(f"main@{token}").state(), Running)
    other.communicate("\n", timeout=DEADLINE)
    until(lambda: real.find(f"main@{token}") is None)


def test_detached_sessions_share_one_name_space(real: Registry) -> None:
    code = "s = r.start('web', Command(('sleep', '60')))\nprint(s.id)"
    id = said(in_another_process(real.store.root, code))
    assert real.get("web").id == id
    with pytest.raises(SessionExists, match=r"'web' exists \(running"):
        real.start("web", SLEEP)


def test_a_name_means_one_session_whatever_its_lifetime(fake: Registry) -> None:
    fake.shell("main")
    with pytest.raises(SessionExists):
        fake.start("main", Command(("forever",)))
    fake.start("web", Command(("forever",)))
    with pytest.raises(SessionExists):
        fake.start("web", Command(("forever",)), lifetime="kernel")
    fake.get("main").stop()
    started = fake.start("main", Command(("forever",)))
    assert fake.get("main").id == started.id
    assert [info.name for info in fake.infos()] == ["web", "main"]


def test_a_session_that_has_ended_is_replaced_with_its_log(fake: Registry) -> None:
    first = fake.start("one", Command(("true",)))
    assert first.wait(DEADLINE) == 0
    second = fake.start("one", Command(("forever",)))
    assert second.id != first.id and fake.get("one").id == second.id
    assert not first.directory.exists()
    with pytest.raises(SessionExists):
        fake.start("one", Command(("true",)))


def test_a_program_that_is_missing_leaves_a_record_that_says_so(real: Registry) -> None:
    with pytest.raises(StartFailed, match=r"no such file or directory: .?no-such-program") as caught:
        real.start("bad", Command(("no-such-program",)))
    assert "\n" not in str(caught.value)
    assert isinstance(real.get("bad").state(), FailedToStart)
    with pytest.raises(StartFailed, match=r"no such file or directory: .?/no/such/place"):
        real.start("bad", Command(("true",), cwd="/no/such/place"))
    assert real.start("bad", Command(("true",))).wait(DEADLINE) == 0


def test_labels_filter_lists_and_stops(fake: Registry) -> None:
    for name, labels in {"a": {"team": "x", "gpu": "0"}, "b": {"team": "x"}, "c": {}}.items():
        fake.start(name, Command(("forever",)), labels=labels)
    assert [info.name for info in fake.infos({"team": "x"})] == ["a", "b"]
    assert [info.name for info in fake.infos({"team": "x", "gpu": "0"})] == ["a"]
    assert fake.infos({"team": "y"}) == []
    assert fake.stop_all({"gpu": "0"}) == ["a"]
    assert [info.name for info in fake.infos() if info.running] == ["b", "c"]


# -------------------------------------------------------------------- removal


def test_only_what_has_ended_is_removed_unless_forced(fake: Registry) -> None:
    session = fake.start("one", Command(("forever",)))
    with pytest.raises(SessionExists):
        fake.remove("one")
    assert isinstance(session.state(), Running)
    fake.remove("one", force=True)
    assert fake.find("one") is None and not session.directory.exists()
    with pytest.raises(SessionNotFound):
        fake.remove("one")


def test_keep_log_keeps_the_output_and_frees_the_name(fake: Registry) -> None:
    session = fake.start("one", Command(("forever",)))
    session.wait_for("ready", DEADLINE)
    fake.remove("one", force=True, keep_log=True)
    assert fake.infos() == [] and session.output() == b"ready\n"
    fake.store.sweep()
    assert session.directory.exists()


def test_a_session_can_be_removed_the_moment_its_stop_returns(real: Registry) -> None:
    for _ in range(10):
        real.start("one", SLEEP).stop(now=True)
        real.remove("one")


# -------------------------------------------------------------------- restart


def test_a_restart_is_the_same_session_with_the_next_generation(fake: Registry) -> None:
    session = fake.start("one", Command(("forever",)))
    session.wait_for("ready", DEADLINE)
    assert fake.restart("one").id == session.id
    session.wait_for("ready", DEADLINE, begin=6)
    assert session.info().generation == 2
    session.stop()
    again = fake.restart("one")
    again.wait_for("ready", DEADLINE, begin=12)
    assert (again.id, again.info().generation) == (session.id, 3)


def test_values_of_the_environment_are_stored_nowhere_and_wanted_again(real: Registry) -> None:
    session = real.start("one", Command(("sh", "-c", "echo got $TOKEN; sleep 60"), env={"TOKEN": "s3cret"}))
    session.wait_for("got s3cret", DEADLINE)
    stored = b"".join(
        path.read_bytes() for path in session.directory.iterdir() if path.is_file() and path.stat().st_size
    )
    assert stored.count(b"s3cret") == 1  # the program's own output
    begin = len(session.output())
    real.restart("one")  # running: its holder knows
    session.wait_for("got s3cret", DEADLINE, begin=begin)
    session.stop(now=True)
    with pytest.raises(UsageMistake, match="the values of TOKEN are not stored"):
        real.restart("one")
    real.restart("one", env={"TOKEN": "other"})
    session.wait_for("got other", DEADLINE)
    with pytest.raises(UsageMistake, match="TOKEN"):
        real.restart("one", env={"MORE": "1"})
    assert isinstance(session.state(), Running), "a refused restart stops nothing"


def test_a_restart_that_fails_says_so(real: Registry, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nsleep 60\n")
    program.chmod(0o700)
    session = real.start("one", Command((str(program),)))
    program.unlink()
    with pytest.raises(StartFailed, match="no such file or directory"):
        real.restart("one")
    assert isinstance(session.state(), FailedToStart)
