"""Known tools: the built-in ones, the user's own, where their programs are and which version they have."""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import session_magics.agents.probing as probing
from rounds import DEADLINE, until
from session_magics.agents.probing import installed, version
from session_magics.agents.tools import Tool, command_line, find, tool_named, tools, tools_or_built_in
from session_magics.errors import UsageMistake
from session_magics.holder import processes

BUILT_IN = ["claude", "codex", "gemini", "grok", "aider", "opencode", "shell", "custom"]


@pytest.fixture(autouse=True)
def empty_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No program but those a test makes and the system's own; no file of tools; and all the time that a probe needs."""
    monkeypatch.setattr(probing, "PROBE_SECONDS", DEADLINE)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("SESSION_MAGICS_TOOLS", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def configured(folder: Path, entries: object) -> dict[str, Tool]:
    folder.mkdir(exist_ok=True)
    (folder / "tools.json").write_text(entries if isinstance(entries, str) else json.dumps(entries))
    return dict(tools(folder))


def test_the_built_in_tools() -> None:
    known = tools()
    assert list(known) == BUILT_IN
    for name, tool in known.items():
        assert (tool.name, bool(tool.title), bool(tool.programs), bool(tool.processes)) == (name, True, True, True)


def test_the_custom_tool_is_claude_with_a_server_and_a_dummy_key(monkeypatch: pytest.MonkeyPatch) -> None:
    claude, custom = tools()["claude"], tools()["custom"]
    assert (custom.programs, custom.resume_args, custom.prompts) == (claude.programs, claude.resume_args, "claude")
    assert custom.env["ANTHROPIC_BASE_URL"] == "http://localhost:8080"
    assert custom.env["ANTHROPIC_AUTH_TOKEN"] and custom.env["ANTHROPIC_API_KEY"] == ""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://localhost:11434")
    assert tools()["custom"].env["ANTHROPIC_BASE_URL"] == "http://localhost:11434"
    assert claude.env == {}


def test_the_shell_is_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    assert (tools()["shell"].programs, tools()["shell"].processes) == (("/bin/sh", "-l"), ("sh",))
    monkeypatch.setenv("SHELL", "/nowhere/fish")
    assert os.access(tools()["shell"].programs[0], os.X_OK)


def test_a_tool_is_found_on_path_before_its_known_places(tmp_path: Path) -> None:
    grok = tools()["grok"]
    assert find(grok) is None
    program(tmp_path / "home/.grok/bin/grok", "")
    assert find(grok) == f"{tmp_path}/home/.grok/bin/grok"
    program(tmp_path / "bin/grok", "")
    assert find(grok) == f"{tmp_path}/bin/grok"
    assert command_line(grok, ["-m", "g"]) == (f"{tmp_path}/bin/grok", "-m", "g")


def test_a_file_that_cannot_be_executed_is_no_program(tmp_path: Path) -> None:
    program(tmp_path / "bin/grok", "").chmod(0o644)
    assert find(tools()["grok"]) is None


def test_a_named_file_that_may_not_be_executed_is_told(tmp_path: Path) -> None:
    program(tmp_path / "agent.py", "").chmod(0o644)
    demo = configured(tmp_path, {"demo": {"program": "./agent.py"}})["demo"]
    with pytest.raises(UsageMistake, match=r"agent\.py may not be executed: chmod \+x"):
        command_line(demo, [])


def test_what_is_not_installed_says_where_it_was_looked_for() -> None:
    with pytest.raises(UsageMistake) as caught:
        command_line(tools()["grok"], [])
    for part in (
        "Grok CLI is not installed",
        "grok on PATH",
        "~/.grok/bin/grok",
        "tools.json",
        "$SESSION_MAGICS_TOOLS",
    ):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_tool_has_a_nearest_name() -> None:
    with pytest.raises(UsageMistake, match=r"no tool 'cladue': did you mean 'claude'\? known are claude, codex"):
        tool_named("cladue", tools())
    with pytest.raises(UsageMistake, match="no tool 'zzz': known are"):
        tool_named("zzz", tools())
    assert tool_named("codex", tools()).name == "codex"


# ------------------------------------------------------------- the user's file


def test_the_users_own_tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "own"
    program(folder / "demo_agent.py", "")
    known = configured(
        folder,
        {
            "demo": {"program": ["python3", "demo_agent.py"], "like": "claude"},
            "local": {"like": "claude", "env": {"ANTHROPIC_BASE_URL": "http://localhost:9000"}},
            "mine": {"program": "bin/agent", "title": "Mine", "approve_args": ["--yes"]},
            "claude": {"places": ["/opt/claude/claude"]},
        },
    )
    assert list(known) == [*BUILT_IN, "demo", "local", "mine"]
    claude, demo, local, mine = tools()["claude"], known["demo"], known["local"], known["mine"]
    assert demo.programs == ("python3", f"{folder}/demo_agent.py")
    assert (demo.title, demo.processes, demo.places) == ("demo", ("demo_agent.py",), ())
    assert (demo.id_given, demo.options, demo.prompts) == (claude.id_given, claude.options, "claude")
    assert (local.title, local.programs, local.processes) == ("local", claude.programs, claude.processes)
    assert local.env == {"ANTHROPIC_BASE_URL": "http://localhost:9000"}
    assert (mine.programs, mine.processes, mine.title) == ((f"{folder}/bin/agent",), ("agent",), "Mine")
    assert (mine.approve_args, mine.latest_args) == (("--yes",), ())
    assert (known["claude"].places, known["claude"].title) == (("/opt/claude/claude",), "Claude Code")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("SESSION_MAGICS_TOOLS", "tools.json")
    assert tools()["demo"] == tools(tmp_path)["demo"] == demo


def test_values_that_are_objects_are_merged(tmp_path: Path) -> None:
    custom, claude = tools()["custom"], tools()["claude"]
    entries = {"box": {"like": "custom", "env": {"HTTPS_PROXY": "x"}, "options": {"latest": ["--again"]}}}
    box = configured(tmp_path, entries)["box"]
    assert box.env == {**custom.env, "HTTPS_PROXY": "x"}
    assert (box.options.latest, box.options.resume) == (("--again",), claude.options.resume)


def test_the_named_file_goes_before_that_of_the_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configured(tmp_path / "root", {"one": {"like": "claude"}})
    configured(tmp_path / "own", {"two": {"like": "claude"}})
    monkeypatch.setenv("SESSION_MAGICS_TOOLS", str(tmp_path / "own/tools.json"))
    assert list(tools(tmp_path / "root")) == [*BUILT_IN, "two"]


def test_a_registry_without_a_file_has_the_built_in_tools(tmp_path: Path) -> None:
    assert list(tools(tmp_path)) == BUILT_IN


MISTAKES: list[tuple[Any, str]] = [
    ("{", "not JSON: .*line 1"),
    ("[]", "has to be an object of tools"),
    ({"a b": {}}, "tool 'a b': a name is made of"),
    ({"demo": []}, "tool 'demo': has to be an object"),
    ({"demo": {}}, "tool 'demo': no field 'program': give one, or 'like'"),
    ({"demo": {"progam": "x"}}, r"tool 'demo': no field 'progam': did you mean 'program'\?"),
    ({"demo": {"program": []}}, "tool 'demo': field 'program' has to begin with a program"),
    ({"demo": {"program": [""]}}, "tool 'demo': field 'program' has to begin with a program"),
    ({"demo": {"program": 7}}, "tool 'demo': field 'program' has to be a list of texts"),
    ({"demo": {"like": "cloude"}}, r"tool 'demo': field 'like' names no built-in tool: did you mean 'claude'\?"),
    ({"demo": {"like": ["claude"]}}, "tool 'demo': field 'like' has to be text"),
    ({"demo": {"like": "claude", "env": {"A": 1}}}, "tool 'demo': field 'env' has to be an object of texts"),
    ({"demo": {"like": "claude", "env": []}}, "tool 'demo': field 'env' has to be an object of texts"),
    ({"demo": {"like": "claude", "env": {"A=B": "x"}}}, "tool 'demo': field 'env' has to be .* no name .* has a '='"),
    ({"demo": {"like": "claude", "env": {"": "x"}}}, "tool 'demo': field 'env' has to be .* no name is empty"),
    ({"demo": {"like": "claude", "env": {"A": "\0"}}}, "tool 'demo': field 'env' has to be .* without a NUL"),
    ({"demo": {"program": ["a", "b\0"]}}, "tool 'demo': field 'program' has to be a list of texts without a NUL"),
    ({"demo": {"like": "claude", "resume_first": "yes"}}, "tool 'demo': field 'resume_first' has to be true or false"),
    ({"demo": {"like": "claude", "id_pattern": "("}}, "tool 'demo': field 'id_pattern' has to be a regular expression"),
    ({"demo": {"like": "claude", "id_pattern": "id"}}, "tool 'demo': field 'id_pattern' has to be .* in parentheses"),
    (
        {"demo": {"like": "claude", "options": {"latst": []}}},
        r"field 'options': no field 'latst': did you mean 'latest'\?",
    ),
    ({"demo": {"like": "claude", "options": []}}, "tool 'demo': field 'options' has to be an object"),
    ({"demo": {"like": "claude", "name": "x"}}, "tool 'demo': no field 'name'"),
]


@pytest.mark.parametrize(("entries", "said"), MISTAKES)
def test_a_mistake_in_the_users_file_is_told_in_one_line(tmp_path: Path, entries: object, said: str) -> None:
    with pytest.raises(UsageMistake) as caught:
        configured(tmp_path, entries)
    text = str(caught.value)
    assert text.startswith(f"{tmp_path}/tools.json: ") and re.search(said, text) and "\n" not in text


def test_a_named_file_has_to_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (tmp_path / "nowhere.json", tmp_path):
        monkeypatch.setenv("SESSION_MAGICS_TOOLS", str(path))
        with pytest.raises(UsageMistake, match=re.escape(f"{path}: ")):
            tools()


# -------------------------------------------------------------------- versions


def probe(path: Path, script: str) -> str | None:
    return version(tools()["claude"], str(program(path / "bin/claude", script)))


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ('[ "$*" = --version ] && echo "2.1.220 (Claude Code)"', "2.1.220"),
        ("echo codex-cli 0.145.0-alpha.2", "0.145.0-alpha.2"),
        ("echo aider 0.86 >&2", "0.86"),
        ("echo no number", None),
        ("echo node 14.2.1 is too old; exit 1", None),
        ("exit 0", None),
        ("echo 1.2.3; yes", "1.2.3"),
    ],
)
def test_version(tmp_path: Path, script: str, told: str | None) -> None:
    assert probe(tmp_path, script) == told


def test_a_program_that_cannot_be_started_has_no_version(tmp_path: Path) -> None:
    assert version(tools()["claude"], str(tmp_path / "nowhere")) is None


def test_a_probe_reads_no_input(tmp_path: Path) -> None:
    kept, (reader, writer) = os.dup(0), os.pipe()
    os.dup2(reader, 0)
    try:
        assert probe(tmp_path, "read answer; echo 1.2.3") == "1.2.3"
    finally:
        os.dup2(kept, 0)
        for fd in (kept, reader, writer):
            os.close(fd)


def test_the_first_arguments_of_a_program_are_part_of_the_probe(tmp_path: Path) -> None:
    program(tmp_path / "own/agent", 'echo "agent 3.2.1"')
    demo = configured(tmp_path / "own", {"demo": {"program": ["sh", "agent"]}})["demo"]
    assert [row.version for row in installed({"demo": demo})] == ["3.2.1"]
    assert command_line(demo, ["-x"])[1:] == (f"{tmp_path}/own/agent", "-x")


def gone(pid: int) -> bool:
    one = processes.entry(pid)
    return one is None or one.gone


@pytest.mark.parametrize("last", ["wait", "exit 0"])
def test_a_probe_that_hangs_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, last: str
) -> None:
    told = tmp_path / "pid"
    looks = itertools.count()

    def clock() -> float:  # it has told its version: nearly all of the time for that, which had begun before, is over
        over = next(looks) and told.exists() and told.read_text().endswith("\n")
        return time.monotonic() + (DEADLINE - 0.2 if over else 0.0)

    monkeypatch.setattr(probing, "time", SimpleNamespace(monotonic=clock))
    assert probe(tmp_path, f"trap '' TERM; sleep 1000 & echo $! > {told}; echo 1.2.3; {last}") == "1.2.3"
    pid = int(told.read_text())
    until(lambda: gone(pid))


def test_the_environment_of_the_tool_reaches_the_probe(tmp_path: Path) -> None:
    agent = program(tmp_path / "own/agent", 'echo "$AGENT_VERSION $1"')
    entries = {"mine": {"program": ["./agent"], "env": {"AGENT_VERSION": "7.8"}, "version_args": ["-V"]}}
    mine = configured(tmp_path / "own", entries | {"quiet": {"program": ["./agent"], "version_args": []}})
    assert version(mine["mine"], str(agent)) == "7.8"
    assert version(mine["quiet"], str(agent)) is None


def test_a_pattern_with_a_group_names_the_version(tmp_path: Path) -> None:
    entries = {"mine": {"program": "./agent", "version_pattern": r"build (\d+)"}}
    agent = program(tmp_path / "own/agent", "echo runtime 1.2, build 34")
    assert version(configured(tmp_path / "own", entries)["mine"], str(agent)) == "34"


def test_installed_asks_all_tools_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")  # each of the two waits for the other
    program(tmp_path / "bin/codex", f"echo x > {tmp_path}/fifo; echo codex-cli 1.0.1")
    program(tmp_path / "bin/gemini", f"read x < {tmp_path}/fifo; echo 2.0.2")
    rows = {row.name: row for row in installed(tools())}
    assert list(rows) == BUILT_IN
    assert (rows["codex"].path, rows["codex"].version) == (f"{tmp_path}/bin/codex", "1.0.1")
    assert (rows["gemini"].title, rows["gemini"].version) == ("Gemini CLI", "2.0.2")
    assert (rows["claude"].path, rows["claude"].version) == (None, None)
    assert rows["shell"].path is not None
    assert installed({}) == []


# ---- where nobody can be told


def test_without_a_file_that_is_right_the_built_in_tools_are_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools.json").write_text('{"demo": {"program": ["sh"]}}')
    assert "demo" in tools_or_built_in(tmp_path)
    monkeypatch.setenv("SESSION_MAGICS_TOOLS", str(tmp_path / "nowhere.json"))
    assert tools_or_built_in(tmp_path) == tools_or_built_in() and "claude" in tools_or_built_in()
