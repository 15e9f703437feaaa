"""Known tools as sessions: how they are started, and how they go on with their conversation (rows C1, C10, C13)."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rounds import DEADLINE, until
from session_magics import Command, Registry, Session, SessionExists, SessionNotRunning, StartFailed, UsageMistake
from session_magics.agents.activity import NAMES, ActivityReader
from session_magics.model import Spec
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_verb

# A tool that notes how it was called, prints what it is told to, and ends at a key with the status that it names.
TOOL = """#!{python} -S
import json, os, sys
with open("{work}/calls", "a") as calls:
    calls.write(json.dumps([sys.argv[1:], os.environ.get("BASE_URL")]) + "\\n")
print(open("says").read() if os.path.exists("says") else "ready", flush=True)
sys.exit(int(sys.stdin.readline() or 0))
"""
ID = "0199a213-81a0-7800-8aa0-bbab2a035a53"

Calls = Callable[[], list[list[Any]]]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def calls(root: Path, work: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Tools ``c`` (like claude), ``x`` (like codex) and ``g`` (like grok); the calls of them so far."""
    program = work / "tool"
    program.write_text(TOOL.format(python=sys.executable, work=work))
    program.chmod(0o755)
    config = {name: {"like": like, "program": [str(program)]} for name, like in (("x", "codex"), ("g", "grok"))}
    config["c"] = {"like": "claude", "program": [str(program)], "env": {"BASE_URL": "http://localhost:1"}}
    (root / "tools.json").write_text(json.dumps(config))
    noted = work / "calls"
    return lambda: [json.loads(line) for line in noted.read_text().splitlines()] if noted.exists() else []


def start(real: Registry, work: Path, tool: str, *args: str, **options: Any) -> Session:
    session = real.start("a", Command(args, str(work)), tool=tool, **options)
    session.wait_for("(?i)ready|session", DEADLINE)
    return session


def end(session: Session, status: int = 0) -> None:
    session.send(f"{status}\r")
    session.wait(DEADLINE)


def test_c10_a_conversation_has_an_id_from_the_start_and_a_restart_goes_on_with_it(
    real: Registry, work: Path, calls: Calls
) -> None:
    session = start(real, work, "c", "--model", "opus", "fix the tests", approve_all=True)
    end(session, 3)
    real.restart("a")
    session.wait_for(r"ready[^$]*ready", DEADLINE)
    end(session)
    (first, url), (second, _) = calls()
    switch = "--dangerously-skip-permissions"
    number = first[first.index("--session-id") + 1]
    assert sorted(first) == sorted(["--model", "opus", "fix the tests", switch, "--session-id", number])
    assert sorted(second) == sorted(["--model", "opus", switch, "--resume", number])
    assert url == "http://localhost:1" and session.info().size == (36, 120)
    assert session.info().argv[1:] == tuple(second) and session.info().generation == 2


@pytest.mark.parametrize("ending", ["running", "policy"])
def test_c10_a_restart_while_it_runs_and_one_by_policy_go_on_too(
    real: Registry, work: Path, calls: Calls, ending: str
) -> None:
    policy: Any = {"restart": "on-failure"} if ending == "policy" else {}
    session = start(real, work, "c", **policy)
    if ending == "policy":
        session.send("1\r")
    else:
        real.restart("a")
    until(lambda: len(calls()) == 2)
    (first, _), (second, url) = calls()
    assert second == ["--resume", first[1]] and url == "http://localhost:1"


def test_c10_an_id_that_the_person_gave_is_kept(real: Registry, work: Path, calls: Calls) -> None:
    session = start(real, work, "c", f"--session-id={ID}")
    end(session)
    real.restart("a")
    until(lambda: len(calls()) == 2)
    assert [args for args, _ in calls()] == [[f"--session-id={ID}"], ["--resume", ID]]


def test_c10_an_id_is_read_from_the_output_wherever_it_is_there(real: Registry, work: Path, calls: Calls) -> None:
    (work / "says").write_text(f"\033[1mSession\033[0m ID: \033[2m{ID[:9]}\033[0m{ID[9:]}\n" + "x" * 400_000)
    session = start(real, work, "x", "--search", "a question", approve_all=True)
    until(lambda: session.info().log_bytes > 400_000)
    real.restart("a")
    until(lambda: len(calls()) == 2)
    args = calls()[1][0]
    assert args[args.index("resume") + 1] == ID
    assert {"--search", "--dangerously-bypass-approvals-and-sandbox"} < set(args) and "a question" not in args


def test_c10_without_an_id_the_newest_conversation_is_taken(real: Registry, work: Path, calls: Calls) -> None:
    end(start(real, work, "x"))
    real.restart("a")
    until(lambda: len(calls()) == 2)
    assert calls()[1][0] == ["resume", "--last"]


def test_c13_a_captured_id_outlives_the_log_that_told_it(real: Registry, work: Path, calls: Calls) -> None:
    (work / "says").write_text(f"session id: {ID}\n")
    session = start(real, work, "x")
    end(session)
    real.restart("a")
    until(lambda: len(calls()) == 2)
    end(session)
    for segment in session.directory.glob("log.0*"):
        segment.unlink()
    real.restart("a")
    until(lambda: len(calls()) == 3)
    assert calls()[2][0] == ["resume", ID]


def test_a_kill_of_the_holder_does_not_lose_the_conversation(real: Registry, work: Path, calls: Calls) -> None:
    session = start(real, work, "c")
    os.kill(session.info().pid or 0, signal.SIGKILL)
    with pytest.raises(SessionNotRunning):
        until(lambda: not session.info().running)
        session.send("")
    real.restart("a")
    until(lambda: len(calls()) == 2)
    assert calls()[1][0] == ["--resume", calls()[0][0][1]]


# ---- what cannot be started, in the order in which it is looked at


def test_c1_an_unknown_tool_a_missing_one_and_a_missing_directory(
    real: Registry, work: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(work))
    nowhere = Command((), "/no/such/directory")
    with pytest.raises(UsageMistake, match="no tool 'claud': did you mean 'claude'"):
        real.start("a", nowhere, tool="claud")
    with pytest.raises(UsageMistake, match="Codex CLI is not installed"):
        real.start("a", nowhere, tool="codex")
    assert real.infos() == []
    with pytest.raises(StartFailed, match="directory"):
        real.start("a", nowhere, tool="c")
    assert calls() == []


def test_c1_a_running_one_is_not_replaced_and_not_removed(real: Registry, work: Path, calls: Calls) -> None:
    start(real, work, "c")
    with pytest.raises(SessionExists):
        real.start("a", Command((), str(work)), tool="c")
    with pytest.raises(SessionExists):
        real.remove("a")


def test_a_broken_file_of_tools_is_told_and_breaks_no_list(
    real: Registry, root: Path, work: Path, calls: Calls
) -> None:
    start(real, work, "c")
    (root / "tools.json").write_text('{"c": {"programm": []}}')
    with pytest.raises(UsageMistake, match=re.escape(str(root / "tools.json"))):
        real.start("b", Command((), str(work)), tool="c")
    verbs = Verbs(real, lambda text: None)
    assert "a" in str(verbs.call(parse_verb("list")))


def test_a_tool_that_is_not_known_here_is_told(
    real: Registry, work: Path, calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(real, work, "c")
    (work / "other.json").write_text("{}")
    monkeypatch.setenv("SESSION_MAGICS_TOOLS", str(work / "other.json"))
    for line in ("restart a", "approve a --allow ls"):
        with pytest.raises(UsageMistake, match=r"no tool 'c': .*your own are in tools\.json .*\$SESSION_MAGICS_TOOLS"):
            Verbs(real, lambda text: None).call(parse_verb(line))


def test_the_table_of_tools_says_what_is_there(real: Registry, work: Path, calls: Calls) -> None:
    verbs = Verbs(real, lambda text: None)
    table = str(verbs.call(parse_verb("tools")))
    assert re.search(rf"^c +\S+ .*{re.escape(str(work / 'tool'))}$", table, re.M)
    rows = json.loads(str(verbs.call(parse_verb("tools --json"))))["value"]
    assert {"claude", "codex", "gemini", "grok", "aider", "opencode", "shell", "c"} <= {row["name"] for row in rows}
    assert all(row["path"] is None or os.path.exists(row["path"]) for row in rows)


@pytest.mark.parametrize(("lines", "left"), [(NAMES, " · 1 attachment"), (NAMES + 1, "")])
def test_attachments_are_counted_where_that_holds_no_list_up(
    real: Registry, tmp_path: Path, lines: int, left: str
) -> None:
    (tmp_path / "a.png").touch()
    spec = Spec(id=real.store.new_id(), name="a", argv=("agent",), cwd=str(tmp_path), tool="claude", created=1.0)
    real.store.record_past(spec, [b"a.png\r\n" * lines], 0, 3.0, "")
    real.store.claim("a", spec.id)
    assert str(ActivityReader().read(real.get("a").info())) == f"finished after 2s{left}"
