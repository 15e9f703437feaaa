"""Who has the terminal: names from programs, arguments and scripts, and the leader of a real foreground group."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil
import pytest

from agent_screens import write_agent
from rounds import until
from session_magics import Command, Registry
from session_magics.agents import identity
from session_magics.agents.identity import foreground, names_of


@pytest.mark.parametrize(
    ("image", "argv", "wanted"),
    [
        ("/opt/claude/versions/2.0.1", ["claude"], {"2.0.1", "claude"}),
        ("/usr/bin/node", ["claude"], {"node", "claude"}),
        ("/usr/bin/node", ["claude --resume x"], {"node", "claude"}),
        ("/usr/bin/node", ["node", "/opt/bin/gemini", "-p", "x"], {"node", "gemini"}),
        ("/usr/bin/node", ["node", "--stack-size=9", "-r", "./claude", "/a/cli.js"], {"node", "cli.js", "cli"}),
        ("/usr/bin/python3.12", ["/venv/bin/python", "/venv/bin/aider"], {"python3.12", "python", "aider"}),
        ("/usr/bin/python3.12", ["python3", "-m", "aider", "--yes"], {"python3.12", "python3", "aider"}),
        ("/usr/bin/python3.12", ["python3", "-c", "print()", "claude"], {"python3.12", "python3"}),
        ("/usr/bin/node", ["node", "-e", "1", "claude"], {"node"}),
        ("/bin/cat", ["cat", "claude"], {"cat"}),
        ("/bin/cat", ["cat", "/usr/bin/node", "claude"], {"cat"}),
        ("/bin/bash", ["-bash"], {"bash"}),
        ("", ["/opt/homebrew/bin/codex", "resume"], {"codex"}),
        ("", [], set()),
        ("/x", [" "], {"x"}),
    ],
)  # fmt: skip
def test_names(image: str, argv: list[str], wanted: set[str]) -> None:
    assert set(names_of(image, argv)) == wanted


def agent(tmp_path: Path) -> str:
    return str(write_agent(tmp_path / "bin", 'show("ready", "")\ntime.sleep(300)'))


def shown(real: Registry, *argv: str) -> tuple[str, ...] | None:
    """The foreground programs of a session in which ``ready`` has appeared."""
    session = real.start("a", Command(argv))
    session.wait_for("ready", 20)
    pid = session.info().pid
    assert pid is not None
    return foreground(pid)


def test_a_script_is_known_by_its_name(real: Registry, tmp_path: Path) -> None:
    assert "claude" in (shown(real, agent(tmp_path)) or ())


def test_a_program_under_another_name_is_not(real: Registry, tmp_path: Path) -> None:
    os.symlink(sys.executable, tmp_path / "other")
    found = shown(real, str(tmp_path / "other"), "-c", "import time; print('ready'); time.sleep(300)", "claude")
    assert found is not None and "other" in found and "claude" not in found


def test_below_a_shell_that_only_waits(real: Registry, tmp_path: Path) -> None:
    found = shown(real, "sh", "-c", f"{agent(tmp_path)}; true")
    assert found is not None and "claude" in found and "sh" not in found


def test_a_shell_that_runs_nothing_is_itself(real: Registry) -> None:
    assert set(shown(real, "bash", "-c", "echo ready; read x; true") or ()) == {"bash"}


def test_a_shell_in_the_foreground_does_not_stand_for_its_jobs(real: Registry, tmp_path: Path) -> None:
    session = real.start("a", Command(("bash", "-c", f"set -m; {agent(tmp_path)} & read x; true")))
    pid = session.info().pid or 0
    until(lambda: any("claude" in identity.names(child.pid) for child in psutil.Process(pid).children()))
    assert set(foreground(pid) or ()) == {"bash"}


def test_another_program_in_the_foreground_counts_alone(real: Registry, tmp_path: Path) -> None:
    # Job control: the agent is in the background, where it is stopped as it sets the terminal; cat has the foreground.
    session = real.start("a", Command(("bash", "-c", f"set -m; {agent(tmp_path)} & cat")))
    until(lambda: (foreground(session.info().pid or 0) or ("",))[0] == "cat")
    assert "claude" not in (foreground(session.info().pid or 0) or ())


def test_nothing_is_known_of_what_has_ended(real: Registry) -> None:
    session = real.start("a", Command(("true",)))
    session.wait(20)
    until(lambda: not session.info().running)
    assert foreground(2**22 + 1) is None
    assert identity.names(2**22 + 1) == ()
