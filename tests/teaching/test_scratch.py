"""Scratch directories: made, filled, emptied; and nothing that is somebody's is touched."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import LiveKernel
from live import live_kernel
from rounds import sessions, until
from session_magics.errors import SessionBusy, SessionNotFound, UsageMistake
from session_magics.run import run_cell
from session_magics.teaching.scratch import prepare
from session_magics.verbs.actions import Verbs
from session_magics.verbs.parser import parse_words


def tree(path: Path) -> list[str]:
    return sorted(str(one.relative_to(path)) for one in path.rglob("*"))


def test_what_cannot_be_copied_is_named_in_a_sentence(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    os.mkfifo(source / "pipe")
    (source / "given").touch()
    with pytest.raises(UsageMistake, match=f"--from {source}: {source}/pipe cannot be copied: [^']*$"):
        prepare(tmp_path / "lesson", source)
    assert tree(tmp_path / "lesson") == ["given"]


def test_it_is_filled_once_and_emptied_when_that_is_asked_for(tmp_path: Path) -> None:
    source, lesson = tmp_path / "source", tmp_path / "deep" / "lesson"
    (source / "data").mkdir(parents=True)
    (source / "data" / "a.txt").write_text("given")
    (source / "link").symlink_to("data/a.txt")
    assert prepare(lesson, source) == lesson
    assert tree(lesson) == ["data", "data/a.txt", "link"]
    (lesson / "data" / "a.txt").write_text("mine")
    (lesson / "more").touch()
    prepare(lesson, source)
    assert (lesson / "data" / "a.txt").read_text() == "mine"
    before = lesson.stat().st_ino
    prepare(lesson, source, reset=True)
    assert (tree(lesson), lesson.stat().st_ino) == (["data", "data/a.txt", "link"], before)
    assert (lesson / "data" / "a.txt").read_text() == "given"
    prepare(lesson, reset=True)
    assert tree(lesson) == []


def test_nothing_outside_is_lost_by_links_and_odd_permissions(tmp_path: Path) -> None:
    outside, lesson = tmp_path / "outside", prepare(tmp_path / "lesson")
    outside.mkdir(mode=0o750)
    (outside / "kept").touch()
    (lesson / "link").symlink_to(outside)
    (lesson / "loop").symlink_to(lesson)
    (lesson / "closed" / "inner").mkdir(parents=True)
    (lesson / "closed" / "inner" / "link").symlink_to(outside)
    (lesson / "closed" / "inner").chmod(0)
    (lesson / "closed").chmod(0o500)
    os.mkfifo(lesson / "pipe")
    lesson.chmod(0o500)
    prepare(lesson, reset=True)
    assert (tree(lesson), tree(outside), outside.stat().st_mode & 0o777) == ([], ["kept"], 0o750)


def test_a_directory_that_was_not_made_here_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    (home / "work" / "thesis").touch()
    monkeypatch.setenv("HOME", str(home))
    (tmp_path / "link").symlink_to(home / "work")
    prepare(tmp_path / "moved")
    shutil.move(tmp_path / "moved", tmp_path / "elsewhere")
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / "mine").touch()
    prepare(tmp_path / "linked").rmdir()
    (tmp_path / "linked").symlink_to(home / "work")
    (tmp_path / "file").touch()
    for path in (
        "/",
        home,
        home / "work",
        tmp_path / "link",
        tmp_path / "moved",
        tmp_path / "linked",
        tmp_path / "file",
    ):
        for reset in (False, True):
            with pytest.raises(UsageMistake):
                prepare(Path(path), reset=reset)
    assert (home / "work" / "thesis").exists() and (tmp_path / "moved" / "mine").exists()
    lesson = prepare(tmp_path / "lesson")
    for source in (lesson, lesson / "below", tmp_path / "gone"):
        source.parent.mkdir(exist_ok=True)
        with pytest.raises(UsageMistake, match="--from"):
            prepare(lesson, source, reset=True)


def test_the_verb_moves_the_shell_and_leaves_the_rest_alone(root: Path, tmp_path: Path) -> None:
    def scratch(*words: str) -> object:
        return Verbs(registry, lambda text: None).call(
            parse_words(("scratch", *words, "--dir", str(tmp_path / "it's")))
        )

    with sessions(root) as registry:
        with pytest.raises(SessionNotFound):
            scratch()
        for shell in filter(shutil.which, ("bash", "zsh", "dash", "fish")):
            session = registry.shell(shell, shell=shell, rc=False)
            run_cell(session, "false", check=False)
            assert scratch(shell) == str(tmp_path / "it's")
            shown = run_cell(session, "echo $status; pwd" if shell == "fish" else "echo $?; pwd")
            assert session.output(shown.begin, shown.end).decode() == f"1\n{tmp_path}/it's\n"
            run_cell(session, "mkdir below; cd below")
            scratch(shell, "--reset")
            assert run_cell(session, "pwd").cwd == f"{tmp_path}/it's"
            assert tree(tmp_path / "it's") == []
        with contextlib.closing(session.cell("sleep 1000")):
            until(lambda: session.command())
            with pytest.raises(SessionBusy):
                scratch(shell)


@pytest.fixture(scope="module")
def shared(client_loop: None) -> Iterator[LiveKernel]:
    with live_kernel() as live:
        yield live


@pytest.mark.kernel
def test_a_lesson_begins_with_it_in_a_shell_of_the_notebooks_kind(shared: LiveKernel, tmp_path: Path) -> None:
    shared.run("%config SessionMagics.shell_program = 'dash'")
    assert shared.run(f"%session scratch --dir {tmp_path}/lesson").text == f"{tmp_path}/lesson\n"
    assert shared.run("%%sh_session\npwd; ps -o comm= -p $$").text == f"{tmp_path}/lesson\ndash\n"
    assert "was not made by %session scratch" in shared.run(f"%session scratch --dir {tmp_path} --reset").text
