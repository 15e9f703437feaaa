"""Whether shell text is complete, as real shells read it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from session_magics import syntax
from session_magics.syntax import read

PATIENCE = 30.0
"""Seconds for a reading here, where the machine may stall."""

WHOLE = ["", "ls", "# it is \\", "cat <<E\nx\nE", "cat <<E\nx\nE\n", "echo '<<E'", "echo $((1<<2))", "f() { x; }\nf"]
BEGUN = [
    *("if true; then", "ls |", "ls &&", "echo 'a", 'echo "a', "cat <<E\nx", "echo $(ls", "echo `ls", "for i in a"),
    *("f() {", "case x in", "echo a \\", "echo a \\\n", "echo ${x", "while true", "f()"),
]
WRONG = ["fi", "ls )", "do", "echo a;;", "}"]
ROWS = {
    "bash": ([*WHOLE, "@(a|b)", "[[ a == @(b) ]]"], [*BEGUN, "x=(a", "(( x +"], [*WRONG, "[[ a"]),
    "zsh": ([*WHOLE, "for i in *(N:t); do x; done"], [*BEGUN, "x=(a", "[[ a"], WRONG),
    "dash": (WHOLE, BEGUN, [*WRONG, "x=(a"]),
    "fish": (
        ["", "ls", "# it is \\", "if true; ls; end", "function f; end", "echo (ls)"],
        ["if true", "ls |", "echo 'a", "echo (ls", "for i in a b", "function f", "switch x", "echo a \\", "begin"],
        ["ls )", "end", "echo ${x}", "else", "cat <<E"],
    ),
}
SHELLS = [
    pytest.param(name, marks=pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed"))
    for name in ROWS
]
DIALECTS = {"dash": "sh"}


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "TIME_LIMIT", PATIENCE)


def status(text: str, shell: str) -> str:
    return read(text, shell, DIALECTS.get(shell, shell)).status


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_tells_whole_begun_and_wrong_text_apart(shell: str) -> None:
    for expected, texts in zip(("complete", "incomplete", "invalid"), ROWS[shell], strict=True):
        assert {text: status(text, shell) for text in texts} == dict.fromkeys(texts, expected)


@pytest.mark.parametrize("shell", SHELLS)
def test_nothing_of_the_text_is_run(shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = tmp_path / "trace"
    rc = tmp_path / "rc"
    rc.write_text(f"touch {trace}\n")
    for name in ("BASH_ENV", "ENV"):
        monkeypatch.setenv(name, str(rc))
    for text in (
        "touch T",
        "x=$(touch T)",
        "echo `touch T`",
        "echo (touch T)",
        "echo hi > T",
        "set +n; touch T",
        "touch T |",
    ):
        status(text.replace("T", str(trace)), shell)
    assert not trace.exists()


def test_what_cannot_be_asked_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syntax, "TIME_LIMIT", 0.1)
    assert read("ls", str(tmp_path / "none"), "bash").status == "unknown"
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    assert read("ls", str(slow), "bash").status == "unknown"


@pytest.mark.parametrize(
    ("text", "indent"),
    [
        ("for i in 1; do", "    "),
        ("if x\nthen", "    "),
        ("  while x; do", "      "),
        ("f() {", "    "),
        ("if x; then\n    echo a |", "    "),
        ("echo 'a", ""),
        ("x=(", "    "),
    ],
)
def test_the_next_line_is_indented_behind_what_opens_a_block(text: str, indent: str) -> None:
    reading = read(text, "bash", "bash")
    assert (reading.status, reading.indent) == ("incomplete", indent)
