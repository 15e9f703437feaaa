"""Files and folders come into a sandbox and out of it whole, or not at all, and nowhere else."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import leaks
from plants import HARD_NAMES, plant, tree
from session_magics.errors import SandboxError, SessionError, UsageMistake
from session_magics.model import Command
from session_magics.sandbox import Probe, Process, Result
from session_magics.sandbox.archives import Unpacker, Unsafe
from session_magics.sandbox.copying import TEMPORARY, copy_in, copy_out
from session_magics.sandbox.local import LocalSandbox

BUSYBOX = shutil.which("busybox")
NEEDED = ("sh", "mv", "rm", "chmod", "du", "stat", "cat")
WAYS = {
    "tar": [*NEEDED, "tar"],
    "busybox": [BUSYBOX or "busybox"],
    "python": [*NEEDED, "python3"],
}


class Bare(LocalSandbox):
    """This machine with a few programs alone."""

    def __init__(self, root: Path, path: Path) -> None:
        super().__init__(root)
        self._path = {"PATH": str(path)}

    def exec(self, command: Command, *, stdin: bytes | None = None, timeout: float | None = None) -> Result:
        return super().exec(self._with(command), stdin=stdin, timeout=timeout)

    def start_process(self, command: Command) -> Process:
        return super().start_process(self._with(command))

    def _with(self, command: Command) -> Command:
        return Command(command.argv, command.cwd, {**command.env, **self._path})


def programs(folder: Path, names: list[str]) -> Path:
    """A folder with these programs; of a busybox, with all that it can be."""
    folder.mkdir()
    for name in names:
        path = shutil.which(name)
        assert path is not None
        if path == BUSYBOX:
            for applet in (*NEEDED, "tar"):
                (folder / applet).symlink_to(path)
        else:
            (folder / name).symlink_to(os.path.realpath(path))
    return folder


@pytest.fixture(params=WAYS)
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LocalSandbox]:
    if request.param == "busybox" and BUSYBOX is None:
        pytest.skip("needs busybox")
    yield from made(tmp_path, WAYS[request.param])


@pytest.fixture
def usual(tmp_path: Path) -> Iterator[LocalSandbox]:
    yield from made(tmp_path, WAYS["tar"])


def made(tmp_path: Path, names: list[str]) -> Iterator[LocalSandbox]:
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    before = leaks.baseline()
    with contextlib.closing(Bare(tmp_path / "there", programs(tmp_path / "bin", names))) as sandbox:
        yield sandbox
    assert leaks.leaked(tmp_path, before) == []
    assert list(tmp_path.rglob(f"{TEMPORARY}*")) == []


def test_a_folder_goes_in_and_comes_out_as_it_was(sandbox: LocalSandbox, tmp_path: Path) -> None:
    source = plant(tmp_path / "here" / "source")
    copied = copy_in(sandbox, str(source), "away")
    assert tree(tmp_path / "there" / "away") == tree(source)
    assert (copied.files, copied.left_out, copied.target) == (
        len([*source.rglob("*")]) - len([p for p in source.rglob("*") if p.is_dir() and not p.is_symlink()]),
        (),
        "away",
    )
    back = copy_out(sandbox, "away", str(tmp_path / "here" / "back"))
    assert tree(tmp_path / "here" / "back") == tree(source)
    assert (back.files, back.bytes >= 300_000) == (copied.files, True)


@pytest.mark.parametrize("name", HARD_NAMES)
def test_a_file_keeps_its_name_content_and_mode(sandbox: LocalSandbox, tmp_path: Path, name: str) -> None:
    source = tmp_path / "here" / name
    source.write_bytes(bytes(range(256)) * 1000)
    source.chmod(0o754)
    (tmp_path / "there" / "folder").mkdir()
    copy_in(sandbox, str(source), "folder")
    copy_in(sandbox, str(source), f"other {name}")
    for path in (tmp_path / "there" / "folder" / name, tmp_path / "there" / f"other {name}"):
        assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (source.read_bytes(), 0o754)
    copy_out(sandbox, f"folder/{name}", str(tmp_path / "here" / "back"))
    copied = copy_out(sandbox, f"{sandbox.root}/folder/{name}", str(tmp_path))
    for path in (tmp_path / "here" / "back", tmp_path / name):
        assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (source.read_bytes(), 0o754)
    assert (copied.files, copied.bytes, copied.target) == (1, 256_000, str(tmp_path / name))


def test_the_root_itself_is_a_target_and_a_source(usual: LocalSandbox, tmp_path: Path) -> None:
    (tmp_path / "here" / "file").write_text("x")
    for number, root in enumerate((usual.root, f"{usual.root}/", "", ".")):
        copied = copy_in(usual, str(tmp_path / "here" / "file"), root)
        assert (tmp_path / "there" / "file").read_text() == "x", copied.target
        (tmp_path / "there" / "file").unlink()
        (tmp_path / "there" / "other").write_text("y")
        copy_out(usual, root, str(tmp_path / f"all{number}"))
        assert [path.name for path in (tmp_path / f"all{number}").iterdir()] == ["other"]
        with pytest.raises(UsageMistake, match="give the new folder a name"):
            copy_out(usual, root, str(tmp_path))


def test_a_file_replaces_a_file_and_a_folder_replaces_nothing(usual: LocalSandbox, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "one").write_text("new")
    (there / "one").write_text("old")
    copy_in(usual, str(here / "one"), "one")
    assert (there / "one").read_text() == "new"
    (there / "one").write_text("newer")
    copy_out(usual, "one", str(here / "one"))
    assert (here / "one").read_text() == "newer"
    (here / "folder").mkdir()
    (there / "folder").mkdir()
    for _ in range(2):
        if (there / "folder" / "folder").exists():
            with pytest.raises(UsageMistake, match="is there already: remove it"):
                copy_in(usual, str(here / "folder"), "folder")
        else:
            copy_in(usual, str(here / "folder"), "folder")
    with pytest.raises(UsageMistake, match="is there already: remove it"):
        copy_in(usual, str(here / "folder"), "one")
    (there / "folder" / "one").mkdir()
    with pytest.raises(UsageMistake, match="is there already: remove it"):
        copy_in(usual, str(here / "one"), "folder")
    copy_out(usual, "folder", str(here / "folder"))
    with pytest.raises(UsageMistake, match="is there already: remove it"):
        copy_out(usual, "folder", str(here / "folder"))
    with pytest.raises(UsageMistake, match="is there already: remove it"):
        copy_out(usual, "folder", str(here / "one"))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda box, here: copy_in(box, f"{here}/none", "x"), "no file or folder .*none"),
        (lambda box, here: copy_in(box, here, "none/x"), "none"),
        (lambda box, here: copy_in(box, here, "none/"), "no folder 'none/' there"),
        (lambda box, here: copy_in(box, here, "../x"), "leads out"),
        (lambda box, here: copy_in(box, here, "/etc/x"), "leads out"),
        (lambda box, here: copy_in(box, here, "out/x"), "leads out .* through a symbolic link"),
        (lambda box, here: copy_out(box, "none", here), "no file or folder 'none'"),
        (lambda box, here: copy_out(box, "/etc/passwd", here), "leads out"),
        (lambda box, here: copy_out(box, "file", f"{here}/none/x"), "no folder .*none"),
        (lambda box, here: copy_out(box, "file", f"{here}/none/"), "no folder .*none"),
        (lambda box, here: copy_out(box, "pipe", here), "neither file nor folder"),
        (lambda box, here: copy_out(box, "a\0b", here), "NUL"),
    ],
)
def test_what_cannot_be_copied_is_refused(usual: LocalSandbox, tmp_path: Path, call: object, words: str) -> None:
    there = tmp_path / "there"
    (there / "out").symlink_to("/")
    (there / "file").touch()
    os.mkfifo(there / "pipe")
    before = tree(tmp_path)
    with pytest.raises(UsageMistake, match=words):
        call(usual, str(tmp_path / "here"))  # type: ignore[operator]
    assert tree(tmp_path) == before


def test_without_tar_and_python_it_says_so(tmp_path: Path) -> None:
    for sandbox in made(tmp_path, list(NEEDED)):
        sandbox.probe = lambda: Probe("Linux", "/", "me", None)  # type: ignore[method-assign]
        with pytest.raises(SandboxError, match="neither tar nor python3 is there"):
            copy_in(sandbox, str(tmp_path / "here"), "x")


def test_how_far_it_is_is_told(usual: LocalSandbox, tmp_path: Path) -> None:
    (tmp_path / "here" / "file").write_bytes(b"x" * 1_000_000)
    steps: list[tuple[int, int | None]] = []
    copy_in(usual, str(tmp_path / "here" / "file"), "file", lambda done, total: steps.append((done, total)))
    assert steps[0] == (0, 1_000_000) and steps[-1] == (1_000_000, 1_000_000) and len(steps) > 5
    steps.clear()
    copy_out(usual, "file", str(tmp_path), lambda done, total: steps.append((done, total)))
    assert steps[0] == (0, 1_000_000) and steps[-1] == (1_000_000, 1_000_000) and len(steps) > 5


class Enough(Exception):
    """Somebody interrupts."""


@pytest.mark.parametrize("way", ["in", "out"])
def test_an_interruption_leaves_nothing_and_what_was_there(usual: LocalSandbox, tmp_path: Path, way: str) -> None:
    """The fixture looks for what has a temporary name."""
    here, there = tmp_path / "here" / "file", tmp_path / "there" / "file"
    source, target = (here, there) if way == "in" else (there, here)
    source.write_bytes(b"x" * 5_000_000)
    target.write_text("old")

    def interrupt(done: int, total: int | None) -> None:
        if done > 1_000_000:
            raise Enough

    with pytest.raises(Enough):
        if way == "in":
            copy_in(usual, str(here), "file", interrupt)
        else:
            copy_out(usual, "file", str(here), interrupt)
    assert target.read_text() == "old"


def test_a_far_failure_is_told_and_leaves_nothing(usual: LocalSandbox, tmp_path: Path) -> None:
    tar = tmp_path / "bin" / "tar"
    (tmp_path / "here" / "file").write_bytes(b"x" * 1_000_000)
    (tmp_path / "there" / "file").write_bytes(b"x" * 1_000_000)
    tar.unlink()
    tar.write_text("#!/bin/sh\necho 'tar: the disk is full' >&2\nexit 2\n")
    tar.chmod(0o755)
    with pytest.raises(SandboxError, match="the disk is full"):
        copy_in(usual, str(tmp_path / "here" / "file"), "new")
    with pytest.raises(SandboxError, match="the disk is full"):
        copy_out(usual, "file", str(tmp_path / "new"))
    tar.write_text("#!/bin/sh\nprintf half\n")
    with pytest.raises(SandboxError, match="did not come whole"):
        copy_out(usual, "file", str(tmp_path / "new"))
    tar.write_text("#!/bin/sh\nhead -c 10240 /dev/zero\n")
    (tmp_path / "bin" / "head").symlink_to(shutil.which("head") or "")
    with pytest.raises(SandboxError, match="did not come whole: nothing came"):
        copy_out(usual, "file", str(tmp_path / "new"))
    tar.write_text(f"#!/bin/sh\n{shutil.which('tar')} \"$@\"\necho 'tar: one: Permission denied' >&2\nexit 2\n")
    with pytest.raises(SandboxError, match="one: Permission denied"):
        copy_out(usual, "file", str(tmp_path / "new"))
    assert not (tmp_path / "there" / "new").exists() and not (tmp_path / "new").exists()
    tar.write_text(
        f"#!/bin/sh\n{shutil.which('tar')} \"$@\"\necho 'tar: one: file changed as we read it' >&2\nexit 1\n"
    )
    assert copy_out(usual, "file", str(tmp_path / "new")).bytes == 1_000_000


# ------------------------------------------------- archives made to do harm


def archive(*members: tuple[str, bytes, str]) -> io.BytesIO:
    """Of (name, type, link or content)."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, kind, text in members:
            info = tarfile.TarInfo(name)
            info.type, info.mode = kind, 0o777
            data = text.encode()
            if kind == tarfile.REGTYPE:
                info.size = len(data)
            else:
                info.linkname = text
            tar.addfile(info, io.BytesIO(data))
    stream.seek(0)
    return stream


FILE, LINK, HARD, FOLDER = tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE


@pytest.mark.parametrize(
    "members",
    [
        [("/evil", FILE, "x")],
        [("../evil", FILE, "x")],
        [("a/../../evil", FILE, "x")],
        [("a", LINK, ".."), ("a/evil", FILE, "x")],
        [("a", LINK, "/"), ("a/tmp/evil", FILE, "x")],
        [("a", LINK, "../evil"), ("a", FILE, "x")],
        [("a", HARD, "../victim"), ("a", FILE, "x")],
        [("a", HARD, "/etc/passwd"), ("a", FILE, "x")],
        [("a", LINK, "b"), ("b", LINK, ".."), ("a/evil", FILE, "x")],
        [("a/b", LINK, ".."), ("a/b/b/evil", FILE, "x")],
        [("d", FOLDER, ""), ("d/up", LINK, ".."), ("x", LINK, "d/up/.."), ("x/evil", FILE, "x")],
        [("evil", tarfile.CHRTYPE, "")],
        [("evil", tarfile.FIFOTYPE, "")],
    ],
)
def test_an_archive_writes_nowhere_else(tmp_path: Path, members: list[tuple[str, bytes, str]]) -> None:
    (tmp_path / "victim").write_text("as it was")
    target = tmp_path / "folder" / "target"
    target.parent.mkdir()
    with contextlib.suppress(Unsafe, OSError, tarfile.TarError):
        Unpacker(str(target), lambda more: None, single=False).read(archive(*members))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "victim"]
    assert (tmp_path / "victim").read_text() == "as it was"
    assert {path.name for path in target.parent.iterdir()} <= {"target"}
    for path in target.rglob("*"):
        assert path.is_symlink() or path.is_dir() or path.is_file()
        assert not path.is_symlink() or os.path.realpath(path).startswith(str(target))


@pytest.mark.parametrize("name", ["/evil", "../evil", "a/../../evil", "a/.."])
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unsafe, match="leads out of the folder"):
        Unpacker(str(tmp_path / "target"), lambda more: None, single=False).read(archive((name, FILE, "x")))


def test_links_that_lead_out_and_what_is_no_file_are_left_out(tmp_path: Path) -> None:
    unpacker = Unpacker(str(tmp_path / "target"), lambda more: None, single=False)
    members = [("out", LINK, ".."), ("root", LINK, "/etc"), ("none", HARD, "nobody"), ("pipe", tarfile.FIFOTYPE, "")]
    unpacker.read(archive(("file", FILE, "x"), *members, ("in", LINK, "file"), ("same", HARD, "file")))
    assert sorted(path.name for path in (tmp_path / "target").iterdir()) == ["file", "in", "same"]
    assert (sorted(unpacker.left_out), unpacker.files) == (["none", "out", "pipe", "root"], 3)


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    members = (("d", FOLDER, ""), ("a", LINK, "d"), ("a/x", FILE, "x"))
    with pytest.raises(FileExistsError):
        Unpacker(str(tmp_path / "target"), lambda more: None, single=False).read(archive(*members))
    assert list((tmp_path / "target" / "d").iterdir()) == []


names = st.lists(st.sampled_from(["a", "b", "..", ".", "", "c\n"]), min_size=1, max_size=4).map("/".join)
member = st.tuples(names, st.sampled_from([FILE, LINK, HARD, FOLDER]), names)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(member, max_size=6))
def test_no_archive_writes_anywhere_else(tmp_path: Path, members: list[tuple[str, bytes, str]]) -> None:
    target = tmp_path / "folder" / "target"
    target.parent.mkdir()
    try:
        with contextlib.suppress(SessionError, OSError, tarfile.TarError):
            Unpacker(str(target), lambda more: None, single=False).read(archive(*members))
        assert [path.name for path in tmp_path.iterdir()] == ["folder"]
        assert {path.name for path in target.parent.iterdir()} <= {"target"}
    finally:
        shutil.rmtree(target.parent)
