"""What a word of a cell is: the live shell's answer, and what is known without it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from live import live_kernel
from rounds import DEADLINE, until
from session_magics import inspection, manual
from session_magics.inspection import Subject, inspect, subject
from session_magics.session import Session
from session_magics.text import strip_styles
from talk import Talk, talk

UNHURRIED = Path(__file__).with_name("unhurried.py")
needs_man = pytest.mark.skipif(not shutil.which("man"), reason="man is not installed")

PAGE = """\
THING(1)                     User Commands                     THING(1)

NAME
       thing - do it

SYNOPSIS
       thing [OPTION]...

DESCRIPTION
       Does it.

       -a, --all
              like -l, and more

       -l     one a line

              indeed

       --sort=WORD
              by WORD

AUTHOR
       Somebody.
"""


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is asked may take as long as it takes on a machine that is busy."""
    monkeypatch.setattr(inspection, "ANSWER_LIMIT", DEADLINE)
    monkeypatch.setattr(manual, "TIME_LIMIT", DEADLINE)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("l‸s -l", Subject("ls", "ls")),
        ("ls -l‸", Subject("ls", "-l")),
        ("git com‸mit -m x", Subject("git", "commit")),
        ("git commit -m‸ x", Subject("git", "-m", "commit")),
        ("'l's‸ x", Subject("ls", "ls")),
        ("a | grep‸", Subject("grep", "grep")),
        ("sudo l‸s", Subject("ls", "ls")),
        ("X=1 make‸", Subject("make", "make")),
        ("x=$(da‸te +%s)", Subject("date", "date")),
        ("for i in 1; do wc‸ $i; done", Subject("wc", "wc")),
        ("echo $HO‸ME/x", Subject(variable="HOME")),
        ('echo "${PA‸TH}"', Subject(variable="PATH")),
        ("ls # wh‸at", None),
        ("cat <<E\nl‸s\nE", None),
        ("‸", None),
    ],
)
def test_what_stands_at_the_cursor(text: str, found: Subject | None) -> None:
    assert subject(text.replace("‸", ""), text.index("‸")) == found


def test_the_beginning_and_an_option_of_a_page() -> None:
    assert manual.beginning(PAGE).splitlines()[:2] == ["NAME", "       thing - do it"]
    assert "Somebody" not in manual.beginning(PAGE)
    assert manual.option(PAGE, "-l") == "       -l     one a line\n\n              indeed"
    assert manual.option(PAGE, "--all").endswith("like -l, and more")
    assert manual.option(PAGE, "--sort").endswith("by WORD")
    assert manual.option(PAGE, "-x") == ""


def test_a_page_is_clean_text_and_bounded_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    man = tmp_path / "man"
    man.write_text("#!/bin/sh\nprintf 'X(1)\\n\\nN\\bNA\\bAM\\bME\\bE\\n  _\\bx \\033[1mdoes\\033[0m it\\n'\n")
    man.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert manual.page("clean-text-test") == "X(1)\n\nNAME\n  x does it"
    man.write_text("#!/bin/sh\nsleep 60 | cat\n")
    monkeypatch.setattr(manual, "TIME_LIMIT", 0.3)
    with pytest.raises(LookupError):
        manual.page("slow-test")
    for name in ("-x", "a b", "../x", "x;y", ""):
        with pytest.raises(LookupError):
            manual.page(name)


def shown(text: str, session: Session | None, program: str = "bash", detail: int = 0) -> str:
    return strip_styles(inspect(text, len(text), session, program, detail=detail) or "")


DEFINED = {
    "bash": "greet() { echo hello $1; }; alias ll='ls -l'; words='one two'",
    "zsh": "greet() { echo hello $1; }; alias ll='ls -l'; words='one two'",
    "sh": "greet() { echo hello $1; }; alias ll='ls -l'; words='one two'",
    "fish": "function greet; echo hello $argv; end; alias ll 'ls -l'; set words one two",
}


@pytest.mark.parametrize("shell", list(DEFINED))
def test_the_live_shell_tells_what_a_word_is_and_is_not_changed(root: Path, tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    with talk(root, shell, env={"HOME": str(tmp_path), "XDG_CONFIG_HOME": None}, cwd=tmp_path) as say:
        say(DEFINED[shell])
        before = _state(say, shell)
        body = "" if shell == "sh" else "echo hello"
        assert body in shown("greet", say.session)
        assert "function" in shown("greet", say.session)
        assert "ls -l" in shown("ll", say.session)
        assert re.search(r"one.*two", shown("echo $words", say.session), re.S)
        assert re.search(r"builtin|function", shown("cd /", say.session))
        assert shown("no-such-thing", say.session) == ""
        assert _state(say, shell) == before


def _state(say: Talk, shell: str) -> set[bytes]:
    """What a shell has, but for what each cell changes; ``$?`` is 1."""
    say("false")
    lines = say("echo last $status; set" if shell == "fish" else "echo last $?; set; alias; trap")[1].splitlines()
    assert b"last 1" in lines
    names = rb"HIST|RANDOM|SECONDS|EPOCH|LINENO|TTYIDLE|BASH_|history|^status_generation|^CMD_DURATION"
    changing = re.compile(rb"__sm|^_=|" + names)
    return {line for line in lines if not changing.search(line)}


def test_a_busy_session_is_not_waited_for(root: Path, tmp_path: Path) -> None:
    with talk(root, "bash", cwd=tmp_path) as say:
        say("greet() { :; }")
        cell = say.session.cell("read x")
        try:
            until(lambda: say.session.begun() is not None)
            assert "builtin" in shown("cd", say.session)
            assert shown("greet", say.session) == ""
            assert "not known while a command runs" in shown("$x", say.session)
        finally:
            cell.interrupt()
            until(lambda: (cell.receive(1), cell.result)[1])
            cell.close()


@needs_man
def test_without_a_session_a_command_has_its_page_and_an_option_its_lines() -> None:
    if "NAME" not in (page := shown("ls", None)):
        pytest.skip("the manual has no page of ls")
    assert page.index("NAME") < page.index("SYNOPSIS") < page.index("DESCRIPTION")
    assert len(page.splitlines()) < 60 < len(shown("ls", None, detail=1).splitlines())
    assert "\x1b" not in page and "\b" not in page
    assert shown("ls -l", None).startswith("ls -l\n")
    assert shown("ls", None, "fish")
    if git := shown("git commit", None):
        assert "git-commit" in git
        assert shown("git commit x --amend", None).startswith("git commit --amend\n")


@pytest.mark.kernel
def test_a_python_notebook_answers_for_cells_of_ours_and_leaves_the_others_to_python() -> None:
    with live_kernel() as live:

        def asked(code: str, cursor: int | None = None) -> str:
            client = live.cells.client
            client.inspect(code, len(code) if cursor is None else cursor)
            reply = client.get_shell_msg(timeout=20)["content"]
            return strip_styles(reply["data"].get("text/plain", "")) if reply["found"] else ""

        live.run(f"%run {UNHURRIED}")
        live.run("%%sh_session\ngreet() { echo hello; }")
        assert "echo hello" in asked("%%sh_session\ngreet")
        assert "Docstring" in asked("len")
        assert asked("%%sh_session main --timeout 3", 20).startswith("--timeout S\n")
        assert asked("%session info main").startswith("main\nstate      running")
        assert asked("%session tail x", 12).startswith("usage: %session tail NAME")
        assert asked("%session start x --cwd", 20).startswith("--cwd DIR\n")
        assert asked("%session").startswith("Start, list")
        live.run("%unload_ext session_magics")
        assert asked("%%sh_session\ngreet") == ""
        assert live.run("print('do_inspect' in vars(get_ipython().kernel))").text == "False\n"


@pytest.mark.kernel
def test_a_question_mark_in_a_shell_kernel_shows_the_page() -> None:
    with live_kernel(target="shell-kernel") as live:

        def pages(code: str) -> list[str]:
            reply = live.cells.client.execute_interactive(code, timeout=20, output_hook=lambda message: None)
            return [strip_styles(one["data"]["text/plain"]) for one in reply["content"]["payload"]]

        assert pages(f"%run {UNHURRIED}") == []
        assert pages('cd "$(mktemp -d)"; greet() { echo hello; }; shopt -s nullglob') == []
        assert "echo hello" in pages("greet?")[0]
        assert "builtin" in pages("?cd")[0]
        assert pages("%session?")[0]
        assert pages("echo ok?") == pages("no-such-thing?") == []
        pages("touch greets")
        assert pages("greet?") == []  # which a file matches
