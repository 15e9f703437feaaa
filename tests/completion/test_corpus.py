"""Completion in real shells, row by row; run with -s to see the rows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

import completion_rows as corpus
from completion_rows import wrong
from rounds import some, until
from session_magics.completion import Completions, asking
from session_magics.completion.answering import Completer
from talk import Talk, talk

# Seconds for an answer here, where other tests may keep the machine busy; how long it takes is for the benchmark.
PATIENCE = 20.0
SHARE = 0.03
"""Of it for a command's own completion, in rows whose function never ends."""


@pytest.fixture
def place(root: Path) -> Path:
    """A directory with the files of the corpus, which is a repository with a branch; and a home."""
    place = root / "place"
    for name in corpus.FILES:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("")
    (place / "run.sh").chmod(0o755)
    (root / "home").mkdir()
    (root / "home" / "corpus-home.txt").write_text("")
    if shutil.which("git"):
        git = ["git", "-C", str(place), "-c", "user.name=n", "-c", "user.email=e"]
        for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "m"], ["branch", "corpus-branch"]):
            subprocess.run([*git, *words], check=True)
    return place


def environment(place: Path) -> Mapping[str, str | None]:
    return {"HOME": str(place.parent / "home"), "XDG_CONFIG_HOME": None}


def completing(say: Talk, shell: str) -> Callable[[str, int], Completions]:
    completer = Completer(PATIENCE)
    return lambda text, cursor: completer.complete(text, cursor, say.session, shell)


@pytest.mark.parametrize("shell", ["bash", "zsh", "dash"])
def test_a_live_shell(shell: str, root: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    rows = [*corpus.COMMON, *corpus.BASH] if shell == "bash" else some(corpus.COMMON, 3)
    with talk(root, shell, cwd=place, env=environment(place)) as say:
        say(f"{corpus.NAMES}; alias corpus_alias=git\n{corpus.BASH_NAMES if shell == 'bash' else ''}")
        slow = [row for row in rows if "slow" in row.text]
        failed = wrong([row for row in rows if row not in slow], completing(say, shell))
        monkeypatch.setattr(asking, "SHELL_SHARE", SHARE)
        failed += wrong(slow, completing(say, shell))
        assert not failed, "\n".join(failed)
        assert say("echo here $corpus_var") == (0, b"here 1\n")


def test_a_live_fish(root: Path, place: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    with talk(root, "fish", cwd=place, env=environment(place)) as say:
        say(corpus.FISH_NAMES)
        failed = wrong(corpus.FISH, completing(say, "fish"))
        assert not failed, "\n".join(failed)
        assert say("echo here $corpus_var") == (0, b"here 1\n")


def test_a_busy_shell_is_not_asked(root: Path, place: Path) -> None:
    with talk(root, "bash", cwd=place, env=environment(place)) as say:
        say(f"{corpus.NAMES}; alias corpus_alias=git; corpus_function() {{ :; }}")
        complete = completing(say, "bash")
        complete("tru", 3)  # what it has is seen then
        cell = say.session.cell("cd 'my dir'; echo on; sleep 100")
        try:
            until(lambda: say.session.output().endswith(b"on\n"))
            failed = wrong(corpus.BUSY, complete)
            assert not failed, "\n".join(failed)
            assert cell.result is None
        finally:
            cell.interrupt()
            until(lambda: (cell.receive(1), cell.result)[1])
            cell.close()


def test_no_shell_yet(root: Path, place: Path) -> None:
    completer = Completer(PATIENCE)
    rows = [row for row in corpus.COMMON if not re.search("orpus|CORPUS|~/|git checkout", row.text)]
    failed = wrong(some(rows, 2), lambda text, cursor: completer.complete(text, cursor, None, "bash", os.fspath(place)))
    assert not failed, "\n".join(failed)
