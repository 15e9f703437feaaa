"""Registries of other programs become finished sessions of ours."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import old_registries
from old_registries import NOW, Old, keyed, listed, stamp, taken_over
from rounds import DEADLINE
from session_magics import Command, Registry
from session_magics.errors import UsageMistake
from session_magics.importing import importer, living
from session_magics.importing.importer import import_file
from session_magics.importing.report import Report
from session_magics.model import Exited, Lost
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_verb

old = old_registries.old


def test_a_version_one_registry_becomes_finished_sessions(real: Registry, old: Old) -> None:
    log = old.file.parent / "logs" / "web.log"
    log.write_bytes(b"one\ntwo\n")
    old.sessions(
        web=keyed(exit_code=0, log_path=str(log), labels={"crew": "a"}, dir="/somewhere"),
        failed=keyed(exit_code=3),
        died=keyed(exit_code=-1),
        stopped=keyed(state="stopped"),
        running=keyed(state="running", pid=os.getpid()),
    )
    report = taken_over(real, old)
    assert len(report.imported) == 5 and not report.skipped and not report.set_aside
    infos = {info.name: info for info in real.infos()}
    web = infos["web"]
    assert isinstance(web.state, Exited) and web.state.code == 0 and abs(web.state.at - (NOW - 30)) < 0.01
    assert (web.cwd, web.labels, web.argv) == ("/somewhere", {"crew": "a"}, ())
    assert abs(web.created - (NOW - 60)) < 0.01
    assert real.get("web").tail() == "one\ntwo" == real.get("web").snapshot().strip()
    assert real.get("failed").wait(0) == 3
    assert isinstance(infos["died"].state, Lost) and "signal" in infos["died"].state.reason
    assert infos["stopped"].state == Lost("recorded as stopped, without an exit code")
    assert infos["running"].state == Lost("recorded as running, without an exit code"), "this process is not so old"
    assert real.stop_all() == [], "nothing to stop"


def test_a_code_beside_the_log_counts_and_a_log_is_found_where_the_registry_was_moved(real: Registry, old: Old) -> None:
    logs = old.file.parent / "logs"
    for name, code in (("good", b"7\n"), ("garbage", b"seven")):
        (logs / f"{name}.log").write_bytes(b"out\n")
        (logs / f"{name}.log.exit").write_bytes(code)
    rows = {name: keyed(state="running", log_path=f"/gone/logs/{name}.log") for name in ("good", "garbage", "none")}
    report = taken_over(real, old.sessions(**rows))
    assert real.get("good").wait(0) == 7
    assert isinstance(real.get("garbage").state(), Lost), "what is no number is no 0"
    assert real.get("garbage").tail() == "out"
    assert [one.note for one in report.imported if one.name == "none"] == ["its log /gone/logs/none.log is missing"]


def test_a_process_that_certainly_lives_is_told_and_left_alone(real: Registry, old: Old) -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        began = psutil.Process(process.pid).create_time()
        try:
            old.sessions(
                same=keyed(state="running", pid=process.pid, started_at=stamp(0, began)),
                reused=keyed(state="running", pid=process.pid),
            )
            notes = {one.name: one.note for one in taken_over(real, old).imported}
            assert f"process {process.pid} still lives" in notes["same"] and "lives" not in notes["reused"]
            for name in ("same", "reused"):
                real.get(name).stop(now=True)
                real.remove(name, force=True)
            assert process.poll() is None
        finally:
            process.kill()


def test_c12_a_list_of_tools_becomes_finished_sessions(real: Registry, old: Old) -> None:
    output = b"\x1b[31mred\x1b[0m\r\nlast\r\n"
    day = 24 * 3600
    old.holds(
        [
            listed("s_1", args=["--resume", "x"], exitCode=1, lastOutput=base64.b64encode(output).decode()),
            listed("s_2", status="running", tmuxSessionName="kojo_s_2", lastRows=50, lastCols=132),
            listed("s_3", 6.9 * day, exitCode=0),
            listed("s_4", 7.1 * day, exitCode=0),
            listed("s_5", 8 * day, status="running"),
            listed("s_6", 8 * day, status="running", tmuxSessionName="kojo_s_6", exitCode=0),
        ]
    )
    report = taken_over(real, old)
    assert [one.was for one in report.skipped] == ["s_4", "s_5"]
    assert {one.reason for one in report.skipped} == {"older than 7 days"}
    infos = {info.name: info for info in real.infos()}
    assert set(infos) == {"s_1", "s_2", "s_3", "s_6"}
    assert infos["s_1"].argv == ("claude", "--resume", "x") and infos["s_1"].labels == {"tool": "claude"}
    assert isinstance(infos["s_1"].state, Exited) and infos["s_1"].state.code == 1
    assert real.get("s_1").output() == output and real.get("s_1").tail() == "red\nlast"
    assert infos["s_2"].size == (50, 132)
    assert isinstance(infos["s_6"].state, Lost), "the code is that of an earlier run"


def test_c12_a_session_that_tmux_still_has_is_told(
    real: Registry, old: Old, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUX_TMPDIR", str(tmp_path))
    monkeypatch.delenv("TMUX", raising=False)
    monkeypatch.setattr(living, "TMUX_LIMIT", DEADLINE)
    old.holds([listed(name, status="running", tmuxSessionName=f"kojo_{name}") for name in ("s_1", "s_10")])
    subprocess.run(["tmux", "-f", "/dev/null", "new-session", "-d", "-s", "kojo_s_10", "sleep 1000"], check=True)
    try:
        notes = {one.name: one.note for one in import_file(real.store, old.file).imported}
        assert "tmux session kojo_s_10 still lives" in notes["s_10"] and not notes["s_1"], "not by prefix"
        real.remove("s_10", force=True)
        subprocess.run(["tmux", "has-session", "-t", "=kojo_s_10"], check=True)
    finally:
        subprocess.run(["tmux", "kill-server"], check=True)


def test_c12_a_tool_that_was_taken_over_goes_on_with_its_conversation(
    real: Registry, old: Old, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "claude"
    program.write_text('#!/bin/sh\necho "called with $*"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    number = "0199a213-81a0-7800-8aa0-bbab2a035a53"
    rows = [
        listed("s_1", args=["--model", "opus", "--continue"], toolSessionId=number, workDir=str(tmp_path), exitCode=0)
    ]
    taken_over(real, old.holds([*rows, listed("s_2", tool="tmux", exitCode=0)]))
    real.restart("s_1").wait(DEADLINE)
    assert real.get("s_1").tail(1) == f"called with --model opus --resume {number}"
    assert real.get("s_2").info().tool is None


def test_tools_are_told_from_programs_by_the_file_in_the_root_and_by_what_is_built_in(
    real: Registry, old: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = real.store.root / "tools.json"
    own.write_text('{"mine": {"program": ["sh"]}}')
    taken_over(real, old.holds([listed("s_1", tool="mine", exitCode=0)]))
    own.write_text("{")
    taken_over(real, old.holds([listed("s_2", exitCode=0), listed("s_3", tool="mine", exitCode=0)]))
    assert [real.get(name).info().tool for name in ("s_1", "s_2", "s_3")] == ["mine", "claude", None]


def test_a_file_that_is_imported_again_adds_nothing(real: Registry, old: Old, tmp_path: Path) -> None:
    old.sessions(web=keyed(exit_code=0), other=keyed(exit_code=0), bad=1)
    first = taken_over(real, old)
    before = sorted(path for path in real.store.root.rglob("*") if path.is_file())
    copy = tmp_path / "copy"
    copy.mkdir()
    again = import_file(real.store, old.file)
    moved = import_file(real.store, old.file.rename(copy / "sessions.json"))
    assert not again.imported and not moved.imported
    assert [one.reason for one in again.skipped] == ["imported before"] * 2
    after = sorted(path for path in real.store.root.rglob("*") if path.is_file())
    assert [path for path in after if path.parent.name != "set-aside"] == [
        path for path in before if path.parent.name != "set-aside"
    ]
    assert again.kept == first.kept


def test_names_are_mapped_and_numbered_and_none_is_overwritten(fake: Registry, old: Old) -> None:
    fake.start("web", Command(("forever",)))
    names = ["web", "a/b", "a-b", "v1.2", "../x", "", "é@ü", "x" * 80, "x" * 81]
    report = taken_over(fake, old.sessions(**{name: keyed(exit_code=0) for name in names}))
    new = {one.was: one.name for one in report.imported}
    assert new == {
        "web": "web-2", "a/b": "a-b-2", "a-b": "a-b", "v1.2": "v1.2", "../x": "x", "": "session", "é@ü": "session-2",
        "x" * 80: "x" * 64, "x" * 81: "x" * 62 + "-2",
    }  # fmt: skip
    assert "imported web-2, which was called 'web': exited 0" in str(report)
    assert fake.get("web").info().running and all(fake.find(name) for name in new.values())
    fake.stop_all(now=True)


def test_a_trial_writes_nothing(real: Registry, old: Old) -> None:
    old.sessions(web=keyed(exit_code=0), **{"a b": keyed(exit_code=0), "bad": 1})
    trial = import_file(real.store, old.file, dry_run=True)
    assert trial.dry_run and not real.infos() and not (real.store.root / "set-aside").exists()
    assert taken_over(real, old).imported == trial.imported


def test_of_a_long_log_the_newest_is_kept(real: Registry, old: Old, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importer, "LOG_CAP", 100_000)
    log = old.file.parent / "logs" / "web.log"
    log.write_bytes(b"".join(b"%07d\n" % number for number in range(50_000)))
    taken_over(real, old.sessions(web=keyed(exit_code=0, log_path=str(log))))
    assert real.get("web").output() == b"".join(b"%07d\r\n" % number for number in range(37_500, 50_000))


def test_lines_of_a_pipe_end_as_a_terminal_shows_them_wherever_they_are_cut(
    real: Registry, old: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importer, "CHUNK_BYTES", 1)
    for name in ("a", "b"):
        (old.file.parent / "logs" / name).write_bytes(b"one\ntwo\r\n\nthree")
    rows = {
        "pipe": keyed(exit_code=0, log_path="logs/a"),
        "pane": keyed(backend="tmux", exit_code=0, log_path="logs/b"),
    }
    taken_over(real, old.sessions(**rows))
    assert real.get("pipe").output() == b"one\r\ntwo\r\n\r\nthree"
    assert real.get("pane").output() == b"one\ntwo\r\n\nthree"


def test_an_import_that_was_killed_is_taken_up_again(real: Registry, old: Old) -> None:
    old.sessions(web=keyed(exit_code=4))
    name = taken_over(real, old).imported[0].name
    real.store.release(name, real.get(name).id)  # killed after the directory was made, before the name was claimed
    assert [one.name for one in taken_over(real, old).imported] == ["web"]
    assert real.get("web").wait(0) == 4 and len(os.listdir(real.store.root / "sessions")) == 1


def test_a_program_that_is_not_on_record_cannot_be_restarted_and_one_that_is_can(real: Registry, old: Old) -> None:
    taken_over(real, old.sessions(web=keyed(exit_code=0)))
    with pytest.raises(UsageMistake, match="not on record"):
        real.restart("web")
    old.file.unlink()
    output = base64.b64encode(b"before\r\n").decode()
    taken_over(
        real, old.holds([listed("s_1", tool="echo", args=["after"], workDir="/", exitCode=0, lastOutput=output)])
    )
    session = real.restart("s_1")
    assert session.wait(DEADLINE) == 0 and session.tail() == "before\nafter" and session.info().generation == 2


def test_of_two_imports_at_once_one_does_the_work(real: Registry, old: Old) -> None:
    old.sessions(**{f"s{number}": keyed(exit_code=0) for number in range(30)})
    command = [sys.executable, "-m", "session_magics", "import", str(old.file), "--json"]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    values = [json.loads(process.communicate()[0])["value"] for process in both]
    assert sorted(len(value["imported"]) for value in values) == [0, 30]
    assert len(real.infos()) == 30


def test_the_verb_gives_lines_a_value_and_json(real: Registry, old: Old) -> None:
    old.sessions(web=keyed(exit_code=3), **{"a b": keyed(exit_code=0)}, bad=1)
    call = f"import {old.file}"
    trial = Verbs(real, print).call(parse_verb(f"{call} --dry-run"))
    assert isinstance(trial, Report)
    assert str(trial).splitlines() == [
        "imported web: exited 3; no log was recorded",
        "imported a-b, which was called 'a b': exited 0; no log was recorded",
        "set aside 'bad': it is no object",
        "2 imported, 0 skipped, 1 set aside; this was a trial: nothing was written",
    ]
    answer = json.loads(str(Verbs(real, print).call(parse_verb(f"{call} --json"))))
    assert answer["ok"] and [row["name"] for row in answer["value"]["imported"]] == ["web", "a-b"]
    assert answer["value"]["kept"].startswith(str(real.store.root)) and not answer["value"]["dry_run"]
