"""``--explain``: what is said about common errors in each shell, for real; and where nothing is said."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import farplaces
from conftest import LiveKernel
from live import live_kernel, run_with
from rounds import DEADLINE, some
from session_magics import Registry, Session
from session_magics.run import run_cell
from session_magics.teaching import failure
from session_magics.teaching.advice import ADVICE
from session_magics.teaching.complaints import WORDINGS, complaints
from session_magics.teaching.explaining import explained, explanation
from session_magics.teaching.failure import Failure

home, place, there = farplaces.home, farplaces.place, farplaces.there

SHELLS = ("bash", "zsh", "dash", "fish")
ANY = "bash zsh dash fish"
POSIX = "bash zsh dash"
# Shells, command, and what the tip has in it; "" for no tip.
ROWS = (
    # programs
    (ANY, "grpe x", "Did you mean `grep`?"),
    (ANY, "ls | grpe x", "Did you mean `grep`?"),
    (POSIX, "grpe x | sort", "Did you mean `grep`?"),  # its status is 0
    (ANY, "Ls", "Did you mean `ls`?"),
    (ANY, "qwertyuiop", "There is no command `qwertyuiop` that this shell knows"),
    ("bash zsh fish", "greet_all", "Did you mean `greetall`?"),  # a function of the live shell
    (ANY, "cd..", "A space is missing after `cd`: `cd ..`"),
    (POSIX, "$ ls", "stands for the shell's prompt"),
    ("fish", "$ ls", "stands for the shell's prompt"),
    (ANY, "run.sh", "To run it, say where it is: `./run.sh`"),
    (ANY, "plain.sh", "not executable: `bash plain.sh` runs it"),
    (ANY, '"two words"', "a command's name is the first word alone"),
    (ANY, "x = 5", "without spaces around the equals sign: `x=value`"),
    (ANY, "x =5", "without spaces around the equals sign: `x=value`"),
    (ANY, "./crlf.sh", "has Windows line ends"),
    (ANY, "./lost.sh", "names `/no/such/program`, which is not on this machine"),
    (ANY, "./gone.sh", "There is no `gone.sh` in the present directory"),
    (ANY, "bash typo.sh", "Did you mean `grep`?"),
    (ANY, "bash broken.sh", "The shell cannot read `broken.sh`: look at line 2"),
    (ANY, "bash windows.sh", "`windows.sh` has Windows line ends"),
    # files
    (ANY, "cat gone", "There is no `gone` in the present directory: `ls` shows"),
    (ANY, "cat friut.txt", "There is no `friut.txt`. Did you mean `fruit.txt`?"),
    (ANY, "cat notes/friut.txt", "There is no `friut.txt` in `notes`: `ls notes`"),
    (ANY, "cat nots/fruit.txt", "There is no `nots`. Did you mean `notes`?"),
    (POSIX, "cat <friut.txt", "Did you mean `fruit.txt`?"),
    (POSIX, "echo x >gone/x", "The directory `gone` does not exist"),
    (ANY, "cd gone", "There is no `gone` in the present directory"),
    (ANY, "cd fruit.txt", "`fruit.txt` is a file, and `cd` goes into directories"),
    (ANY, "cd my notes", "A name with spaces needs quotes: `"),
    (ANY, "cat my notes/a", "A name with spaces needs quotes"),
    (ANY, "cat my file.txt", "There is no `file.txt` in the present directory"),
    (ANY, "mkdir a/b/c", "The directory `a` does not exist. `mkdir -p`"),
    (ANY, "mkdir notes", "There is a directory `notes` already"),
    (ANY, "mv gone x", "There is no `gone`"),
    (ANY, "cat /fruit.txt", "begins at the root of the file system: without it, `fruit.txt` is here"),
    (ANY, 'cat "~/x"', "Inside quotes `~` is no home directory"),
    (ANY, "cat *.csv", "No name here fits the pattern `*.csv`"),
    (ANY, "python3 gone.py", "There is no `gone.py` in the present directory"),
    ("bash zsh fish", "source gone.sh || . ./gone.sh", "There is no `gone.sh`"),
    (ANY, "ls fruit.txt/", "`fruit.txt` is a file and no directory"),
    (ANY, "cat notes", "`notes` is a directory: `cd notes` goes into it"),
    (ANY, "cat .", "`.` is a directory: `ls .` shows"),
    (ANY, "rm notes", "`rm -r` removes one with all that is in it"),
    (ANY, "cp notes x", "`cp -r` copies one"),
    (ANY, "rmdir notes", "`notes` is not empty"),
    (POSIX, "echo x >notes", "output can only go to a file"),
    (ANY, "./plain.sh", "is not executable yet: `chmod +x ./plain.sh`"),
    (ANY, "./fruit.txt", "`./fruit.txt` is no program: `cat ./fruit.txt`"),
    (POSIX, "./notes", "`./notes` is a directory"),
    # the shape of a command
    (ANY, "echo it's", "The apostrophe opens a quotation"),
    (ANY, 'echo "a', "A quotation is opened by `\"` and never closed"),
    (ANY, "echo 'a", "A quotation is opened by `'` and never closed"),
    (ANY, "echo $(ls", "A bracket is never closed: `)` is missing"),
    (ANY, "echo )", "There is a `)` that closes nothing"),
    (POSIX, "for i in 1 2; echo $i; done", "After `for …` a `; do` is missing"),
    (POSIX, "if true; echo; fi", "After the condition of `if` a `; then` is missing"),
    (POSIX, "if true; then echo", "`if` is not ended: `fi` is missing"),
    (POSIX, "while true; do echo", "`while` is not ended: `done` is missing"),
    (POSIX, "done", "`done` ends something that was not begun"),
    ("fish", "if true; echo", "an `end` is missing"),
    ("fish", "fi", "is ended by `end`"),
    (ANY, "ls |", "The command ends with `|`"),
    (ANY, "ls >", "The name of a file is missing after `>`"),
    (ANY, "[1 -eq 1]", "`[` is a command of its own"),
    (ANY, "[ 1 -eq 1]", "a space is missing before it"),
    (ANY, "[ a b c d ]", "takes a value, an operator and a value"),
    ("bash dash", "[ $NOPE = x ]", "`$NOPE` in `[ … ]` may be empty"),
    (ANY, "[ a -eq 1 ]", "and “a” is none: `=` compares texts"),
    (ANY, "echo x >$NOPE", "The name after `>` or `<` is empty"),
    (ANY, "/bin/echo $(seq 300000)", "Too many names for one command"),
    (POSIX, "(set -u; echo $NOPE)", "The variable `NOPE` has no value"),
    # programs called in a wrong way, and what a status says
    (ANY, "ls --foo", "`ls` has no option `--foo`"),
    (ANY, "sort -q fruit.txt", "`sort` has no option `-q`"),
    (ANY, "cp fruit.txt", "`cp` needs one name more"),
    (ANY, "mkdir", "`mkdir` was not told what to work on"),
    (ANY, "grep zebra fruit.txt", "`grep` found no line"),
    (ANY, "[ 1 -eq 2 ]", "The condition is false"),
    (ANY, "sh -c 'exit 126'", "Status 126"),
    (ANY, "sh -c 'exit 127'", "Status 127"),
    (ANY, "sh -c 'exit 130'", "128 + 2"),
    (ANY, "sh -c 'exit 137'", "128 + 9"),
    (ANY, "sh -c 'exit 141'", "128 + 13"),
    # nothing that could be wrong
    (ANY, "true", ""),
    (ANY, "sh -c 'exit 3'", ""),
    (ANY, "cat log.txt; sh -c 'exit 3'", ""),
    (ANY, "cat log.txt | sort", ""),
    (POSIX, "cat gone | sort", ""),  # a pipe ends as its last command does
    (ANY, "echo 'bash: foo: command not found'; sh -c 'exit 3'", ""),
    (ANY, "cat gone; mkdir gone; sh -c 'exit 3'", ""),  # it is there now
)  # fmt: skip


def fill(lesson: Path) -> None:
    """The files that the rows are about."""
    (lesson / "notes").mkdir(parents=True)
    (lesson / "my notes").mkdir()
    (lesson / "notes" / "fruit").touch()
    (lesson / "my notes" / "a").touch()
    for name, text, mode in (
        ("fruit.txt", "apple\n", 0o644),
        ("run.sh", "#!/bin/sh\necho hi\n", 0o755),
        ("plain.sh", "#!/bin/bash\necho hi\n", 0o644),
        ("crlf.sh", "#!/bin/bash\r\necho hi\r\n", 0o755),
        ("windows.sh", "nosuch\r\n\r\n", 0o644),
        ("lost.sh", "#!/no/such/program\n", 0o755),
        ("typo.sh", "echo a\ngrpe x\n", 0o644),
        ("broken.sh", "echo a\n)\n", 0o644),
        ("log.txt", "cat: old.txt: No such file or directory\nbash: foo: command not found\n", 0o644),
    ):
        (lesson / name).write_text(text)
        (lesson / name).chmod(mode)


def tip(session: Session, command: str) -> str:
    return explanation(session, run_cell(session, command, check=False)) or ""


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shell may take its time to say what it knows, as on a machine that stalls."""
    monkeypatch.setattr(failure, "NAMES_LIMIT", DEADLINE)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("shell", SHELLS)
def test_each_common_error_is_explained_and_nothing_else(root: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    registry, wrong = Registry(root), []
    try:
        fill(root / "lesson")
        session = registry.shell("main", shell=shell, rc=False, cwd=str(root / "lesson"))
        run_cell(session, "function greetall; true; end" if shell == "fish" else "greetall() { true; }")
        for shells, command, wanted in ROWS if shell == "bash" else some(ROWS, 3):
            if shell not in shells.split():
                continue
            told = tip(session, command)
            if (wanted not in told) if wanted else told:
                wrong.append(f"{command!r}: {told!r}, not {wanted!r}")
    finally:
        registry.stop_all()
    assert not wrong, "\n".join(wrong)


def test_every_kind_of_complaint_has_advice() -> None:
    assert {kind for kind, _ in WORDINGS} == set(ADVICE)


@given(st.text())
def test_any_output_is_read(text: str) -> None:
    assert all(complaint.kind in ADVICE for complaint in complaints(text))


@pytest.mark.usefixtures("patient")
def test_a_session_elsewhere_is_explained_by_what_is_there(there: Registry) -> None:
    session = there.shell("s", shell="bash", rc=False)
    run_cell(session, "mkdir lesson; cd lesson; touch fruit.txt; faraway() { :; }")
    for command, wanted in (("cat friut.txt", "`fruit.txt`"), ("farawya", "`faraway`")):
        result = run_cell(session, command, check=False)
        one = Failure.of(session, result)
        told = explained(Failure(session, one.dialect, True, one.status, one.command, one.tail, "/"))
        assert wanted in (told or "")


# ---------------------------------------------------------------- in a notebook


@pytest.fixture(scope="module")
def shared(client_loop: None) -> Iterator[LiveKernel]:
    with live_kernel() as live:
        live.run(f"from session_magics.teaching import failure; failure.NAMES_LIMIT = {DEADLINE}")
        yield live


@pytest.mark.kernel
def test_a_cell_that_fails_carries_its_tip_if_that_is_asked_for(shared: LiveKernel) -> None:
    asked = shared.run("%%sh_session explain --explain\ngrpe '<b>'")
    assert asked.error.startswith("CellCommandError: exit status 127")
    [shown] = [output for output in asked.record.outputs if output["html"]]
    assert "<code>grpe</code>" in shown["html"]
    assert shown["text"] == "Tip: There is no command `grpe`. Did you mean `grep`?"
    assert "Tip" not in shared.run("%%sh_session explain\ngrpe x").text
    shared.run("%config SessionMagics.explain = True")
    assert "Tip" in shared.run("%%sh_session explain\ngrpe x").text
    assert "Tip" not in shared.run("%%sh_session explain --no-explain\ngrpe x").text
    assert "Tip" not in shared.run("%%sh_session explain\necho fine; true").text
    assert shared.run("%%sh_session explain --no-raise-error\ngrpe x").status == "ok"
    shared.run("%config SessionMagics.explain = False")


@pytest.mark.kernel
def test_an_explanation_changes_nothing_in_the_shell(shared: LiveKernel) -> None:
    shared.run("%%sh_session same\nset -o pipefail; trap 'echo trapped' ERR; X=1")
    shared.run("%%sh_session same --explain\ngrpe x")
    shown = shared.run('%%sh_session same\necho "$? $X ${__sm_k-unset}"; set -o | grep pipefail')
    assert shown.text.split() == ["127", "1", "unset", "pipefail", "on"]


@pytest.mark.kernel
def test_an_interrupted_cell_needs_no_explanation(shared: LiveKernel) -> None:
    outcome = run_with(
        shared, "%%sh_session stopped --explain\necho on; sleep 100", ("on", lambda: shared.cells.interrupt(False))
    )
    assert outcome.error.startswith("CellInterrupted")
    assert "Tip" not in outcome.text
