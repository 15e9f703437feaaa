"""Completion: what could come next, and that real shells show it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rounds import DEADLINE, sessions
from session_magics import Command, Registry, SessionInfo
from session_magics.cli.completion import answer, script
from session_magics.cli.words import VERBS
from session_magics.verbs.candidates import candidates
from session_magics.verbs.words import VERBS as COMMON
from terminals import Terminal

BIN = os.path.dirname(sys.executable)


@pytest.fixture
def registry(root: Path) -> Iterator[Registry]:
    with sessions(root) as registry:
        registry.start("web-one", Command(("sleep", "1000")), labels={"crew": "a"})
        registry.start("web-two", Command(("sleep", "1000")), labels={"crew": "b"})
        registry.start("done", Command(("true",))).wait(DEADLINE)
        yield registry
        if registry.find("main"):
            registry.remove("main", force=True)


def words(line: str, registry: Registry | None = None) -> list[str]:
    """What could stand at the end of the line."""

    def infos() -> list[SessionInfo]:
        assert registry is not None, "nobody should have looked"
        return registry.infos()

    return [one.word for one in candidates(line.split(" "), infos, {**COMMON, **VERBS})]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("comp", ["completion"]),
        ("help re", ["restart", "remove", "resize", "record"]),
        ("nonsense ", []),
        ("tail web -", ["--help", "--lines", "--follow", "--json"]),
        ("tail web --follow --f", []),
        ("start web --env A=b --e", ["--env"]),
        ("start web --restart o", ["on-failure"]),
        ("start web --max-restarts 5 --wait-p", ["--wait-port"]),
        ("start web --wait-port 8000 ", [":commands"]),
        ("cl", ["clean"]),
        ("clean --o", ["--older"]),
        ("clean ", []),
        ("wait web ", []),
        ("wait web --s", ["--silence"]),
        ("start web --lifetime=d", ["--lifetime=detached"]),
        ("start web --cwd ", [":directories"]),
        ("start ", []),
        ("start web ", [":commands"]),
        ("start web --size 24x80 ls --", [":files"]),
        ("send web --key PageU", ["PageUp"]),
        ("attach web --detach-key F1", ["F1", "F10", "F11", "F12"]),
        ("completion ", ["bash", "zsh", "fish"]),
        ("import ", [":files"]),
        ("import f --d", ["--dry-run"]),
        ("import f ", []),
        ("record web ", [":files"]),
        ("expect --file ", [":files"]),
        ("completion bash ", []),
        ("resize web 4", ["40x120"]),
        ("tmux web sp", ["split-horizontally", "split-vertically"]),
        ("start web --tool gem", ["gemini"]),
        ("start web --tool claude -- ", [":files"]),
        ("approve web --allow x --al", ["--allow"]),
    ],
)
def test_words_that_need_no_sessions(line: str, expected: list[str]) -> None:
    assert words(line) == expected


def test_names_are_of_sessions_that_the_verb_is_for(registry: Registry) -> None:
    assert set(words("attach ", registry)) == {"web-one", "web-two"}
    assert set(words("info ", registry)) == {"web-one", "web-two", "done"}
    assert words("remove ", registry) == ["done"]
    assert set(words("start new --parent ", registry)) == set(words("shell ", registry)) == {"web-one", "web-two"}
    assert words("stop web-one w", registry) == ["web-two"]
    assert words("attach web-one ", registry) == []
    assert words("wait --port web-t", registry) == words("wait --port 8000 web-t", registry) == ["web-two"]
    assert words("restart web-t", registry) == ["web-two"] and words("restart web-one ", registry) == []
    for verb in ("stop", "restart", "remove", "clean"):
        assert words(f"{verb} --label crew=", registry) == ["crew=a", "crew=b"]
    assert words("list --label c", registry) == ["crew=a", "crew=b"]
    assert answer(["stop", "web-o"]) == "web-one\trunning · sleep 1000\n"
    registry.start("agent", Command(()), tool="shell").stop(now=True)
    assert answer(["remove", "ag"]).endswith(" · shell\n")


def test_a_registry_that_cannot_be_read_has_no_names(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "file").write_text("")
    monkeypatch.setenv("SESSION_MAGICS_HOME", str(root / "file"))
    assert answer(["stop", ""]) == ""


def need(shell: str) -> None:
    if shutil.which(shell) is None or not os.path.exists(f"{BIN}/session-magics"):
        pytest.skip(f"{shell} or the script session-magics is not installed")


def environment() -> dict[str, str]:
    return {"PATH": f"{BIN}:{os.environ['PATH']}", "PS1": "> ", "PROMPT": "> ", "HISTFILE": ""}


def words_for_others(line: str) -> list[str]:
    """What another process would complete."""
    command = (sys.executable, "-m", "session_magics", "__complete", *line.split(" "))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [entry.split("\t")[0] for entry in done.stdout.splitlines()]


SET_UP = {
    "bash": (("bash", "--norc", "-i"), 'eval "$(session-magics completion bash)"; echo re""ady\r'),
    "zsh": (
        ("zsh", "-f", "-i"),
        'autoload -Uz compinit; compinit -u -D; eval "$(session-magics completion zsh)"; echo re""ady\r',
    ),
    "fish": (
        ("fish", "--no-config", "-i", "-C", "function fish_prompt; echo '> '; end"),
        'session-magics completion fish | source; echo re""ady\r',
    ),
}


@pytest.mark.parametrize("shell", SET_UP)
def test_a_real_shell_completes_verbs_options_names_and_labels(shell: str, registry: Registry) -> None:
    need(shell)
    command, set_up = SET_UP[shell]
    registry.shell("main", rc=False)  # which others know as the one of this process
    [others] = [name for name in words_for_others("attach main") if "@" in name]
    with Terminal(command, (40, 150), env=environment()) as terminal:
        terminal.until(">")
        terminal.type(set_up)
        terminal.until("ready")
        terminal.type("clear\r")
        terminal.until(">", gone="ready")  # keys before a prompt are echoed beside it
        for typed, shown in (
            ("att\t", "session-magics attach"),
            ("attach web-o\t", "session-magics attach web-one"),
            ("list --la\t", "session-magics list --label"),
            ("list --label crew=a\t", "session-magics list --label crew=a"),
            ("list --label=crew=b\t", "session-magics list --label=crew=b"),
            ("attach main@\t", f"session-magics attach {others}"),
            ("start x --restart on-f\t", "session-magics start x --restart on-failure"),
        ):
            terminal.type(f"session-magics {typed}")
            terminal.until(shown)
            terminal.type("\x15")
            terminal.until(gone=f"session-magics {typed[:3]}")
        terminal.type("session-magics stop web-\t\t")
        terminal.until("web-one", "web-two")
        terminal.type("\x15exit\r")
        terminal.wait()


def test_fish_tells_what_each_word_is(registry: Registry) -> None:
    need("fish")
    code = "session-magics completion fish | source; complete -C 'session-magics attach web-'"
    done = subprocess.run(
        ("fish", "--no-config", "-c", code), env={**os.environ, **environment()}, capture_output=True, text=True
    )
    assert done.stdout.splitlines() == ["web-one\trunning · sleep 1000", "web-two\trunning · sleep 1000"]


@pytest.mark.parametrize("shell", SET_UP)
def test_the_scripts_are_right_by_their_own_shells(shell: str, root: Path) -> None:
    need(shell)
    text = script(shell)
    assert subprocess.run((shell, "-n"), input=text, text=True, capture_output=True).stderr == ""
