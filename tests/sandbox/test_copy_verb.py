"""``copy``: in and out of real containers and hosts, and of sessions that run there."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import dockers
import sshds
from dockers import Dockerd
from plants import HARD_NAMES, plant, tree
from rounds import DEADLINE
from session_magics import Command, Registry, SessionNotFound, UsageMistake
from session_magics.errors import SandboxError
from session_magics.sandbox.copying import TEMPORARY, Copied, copy_in, copy_out
from session_magics.sandbox.ssh import SSHSandbox
from session_magics.verbs import progress
from session_magics.verbs.actions import Verbs
from session_magics.verbs.copying import parted
from session_magics.verbs.parser import parse_words

dockerd, docker_host, sshd = dockers.dockerd, dockers.docker_host, sshds.sshd


class Desk:
    """``desk("copy", SOURCE, TARGET)``; the lines that told how far it was are in ``lines``."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.lines: list[str] = []
        self._verbs = Verbs(registry, lambda text: None, line=lambda text, last: self.lines.append(text))

    def __call__(self, *words: object) -> Copied:
        copied = self._verbs.value(parse_words([*map(str, words)]))
        assert isinstance(copied, Copied)
        return copied


@pytest.fixture
def desk(root: Path) -> Desk:
    return Desk(Registry(root))


@pytest.fixture(scope="module", params=["busybox", "bash", "far", "tcsh-noisy"])
def machine(request: pytest.FixtureRequest) -> str:
    """An image or a host; what serves it is started before a test has begun to look for what it leaves."""
    request.getfixturevalue("dockerd" if request.param in ("busybox", "bash") else "sshd")
    return str(request.param)


@pytest.fixture
def place(machine: str, request: pytest.FixtureRequest) -> Iterator[tuple[str, str]]:
    """How a place is written, and a folder there that is empty."""
    if machine in ("busybox", "bash"):
        host: Dockerd = request.getfixturevalue("docker_host")
        container = host.run(machine)
        yield f"container:{container}", "/tmp"
        host.remove(container)
        return
    server: sshds.Sshd = request.getfixturevalue("sshd")
    if machine != "far":
        server.host("tcsh", noisy=True)
    yield f"ssh:{machine},config={server.config}", str(server.home(machine))
    assert server.left() == []


def test_a_folder_goes_there_and_comes_back(desk: Desk, place: tuple[str, str], tmp_path: Path) -> None:
    where, folder = place
    source = plant(tmp_path / "source")
    copied = desk("copy", source, f"{where}:{folder}")
    assert copied.target == f"{folder}/source"
    back = desk("copy", f"{where}:{folder}/source", tmp_path / "back")
    assert tree(tmp_path / "back") == tree(source)
    assert (copied.files, copied.left_out) == (back.files, back.left_out) == (len(HARD_NAMES) + 9, ())
    with pytest.raises(UsageMistake, match="is there already"):
        desk("copy", source, f"{where}:{folder}")


def test_a_file_goes_there_and_comes_back(desk: Desk, place: tuple[str, str], tmp_path: Path) -> None:
    where, folder = place
    for name in HARD_NAMES[::4]:
        source = tmp_path / name
        source.write_bytes(os.urandom(70_000))
        desk("copy", source, f"{where}:{folder}/")
        desk("copy", f"{where}:{folder}/{name}", tmp_path / "back")
        assert (tmp_path / "back").read_bytes() == source.read_bytes()
    with pytest.raises(UsageMistake, match=r"no file or folder '.*/none' there"):
        desk("copy", f"{where}:{folder}/none", tmp_path)
    assert list(tmp_path.glob(f"{TEMPORARY}*")) == []


def test_what_does_not_fit_there_is_told_and_leaves_nothing(docker_host: Dockerd, desk: Desk, tmp_path: Path) -> None:
    container = docker_host.run("busybox", tmpfs={"/small": "size=1m"})
    try:
        (tmp_path / "big").write_bytes(os.urandom(3_000_000))
        with pytest.raises(SandboxError, match="No space left"):
            desk("copy", tmp_path / "big", f"container:{container}:/small/big")
        (tmp_path / "little").write_bytes(b"x" * 900_000)
        desk("copy", tmp_path / "little", f"container:{container}:/small/big")
        desk("copy", f"container:{container}:/small", tmp_path / "all")
        assert [path.name for path in (tmp_path / "all").iterdir()] == ["big"]
    finally:
        docker_host.remove(container)


@pytest.mark.parametrize("way", ["there", "here"])
def test_a_connection_that_drops_leaves_nothing(sshd: sshds.Sshd, tmp_path: Path, way: str) -> None:
    with contextlib.closing(SSHSandbox("far", config=sshd.config)) as sandbox:
        here, there = tmp_path / "here", sshd.home("far") / "there"
        source, target = (here, there) if way == "there" else (there, here)
        source.write_bytes(os.urandom(20_000_000))
        target.write_text("old")

        def drop(done: int, total: int | None) -> None:
            if done > 5_000_000 and not dropped:
                dropped.append(sshd.kill_connections())

        dropped: list[int] = []
        began = time.monotonic()
        with pytest.raises(SandboxError):
            if way == "there":
                copy_in(sandbox, str(here), str(there), drop)
            else:
                copy_out(sandbox, str(there), str(here), drop)
        assert (target.read_text(), dropped != [], time.monotonic() - began < DEADLINE) == ("old", True, True)
        assert [*tmp_path.glob(f"{TEMPORARY}*"), *there.parent.glob(f"{TEMPORARY}*")] == []
    there.unlink()
    assert sshd.left() == []


def test_how_far_it_is_is_shown(
    desk: Desk, docker_host: Dockerd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "AFTER", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.001)
    (tmp_path / "big").write_bytes(bytes(50_000_000))
    container = docker_host.run("busybox")
    desk("copy", tmp_path / "big", f"container:{container}:/tmp")
    docker_host.remove(container)
    assert any("━╌" in line and "of 47M" in line for line in desk.lines), desk.lines
    assert desk.lines[-1].startswith(f"copied 47M of {tmp_path}/big in ")


@pytest.mark.parametrize("relative", [True, False])
def test_a_session_s_name_is_its_place(desk: Desk, docker_host: Dockerd, tmp_path: Path, relative: bool) -> None:
    """Its own container, though another has the same image; a relative path begins where the session did."""
    on = f"docker:{docker_host.image('busybox')},network=none"
    for name in ("one", "two"):
        script = f"echo {name} > note; echo ready; exec sleep 60"
        desk.registry.start(name, Command(("sh", "-c", script), "/tmp"), on=on).wait_for("ready", DEADLINE)
    try:
        for name in ("one", "two"):
            desk("copy", f"{name}:{'note' if relative else '/tmp/note'}", tmp_path / name)
            assert (tmp_path / name).read_text() == f"{name}\n"
    finally:
        desk.registry.stop_all(now=True)
    with pytest.raises(SandboxError, match="the session's container is gone"):
        desk("copy", "one:note", tmp_path / "late")


@pytest.mark.parametrize(
    ("words", "kind", "text"),
    [
        (("a", "b"), UsageMistake, "are two paths on this machine: cp does that"),
        (("./a:b", "/c:d"), UsageMistake, "are two paths on this machine: cp does that"),
        (("ssh:a:/b", "ssh:c:/d"), UsageMistake, "are two places: copy it here first"),
        (("docker:busybox", "b"), UsageMistake, "names a place and no path: docker:busybox:PATH"),
        (("a", "docker:busybox:/b"), UsageMistake, "'docker:busybox' is a container for this copy alone"),
        (("none:/b", "c"), SessionNotFound, "no session named 'none'"),
        (("a b:/b", "c"), SessionNotFound, "no session named 'a b'"),
        (("here:/b", "c"), UsageMistake, "'here' runs on this machine: cp does that"),
        (("docker:a,x=1:/b", "c"), UsageMistake, "is no setting of docker"),
    ],
)
def test_words_that_make_no_sense_are_refused(
    desk: Desk, words: tuple[str, ...], kind: type[Exception], text: str
) -> None:
    session = desk.registry.start("here", Command(("sleep", "60")))
    try:
        with pytest.raises(kind, match=text):
            desk("copy", *words)
    finally:
        session.stop(now=True)


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("web:/x", ("web", "/x")),
        ("docker:host:5000/ubuntu:22.04:/x y", ("docker:host:5000/ubuntu:22.04", "/x y")),
        ("ssh:me@host:", ("ssh:me@host", "")),
        ("plain", (None, "plain")),
        ("./a:b", (None, "./a:b")),
        ("~/a:b", (None, "~/a:b")),
        (":b", (None, ":b")),
    ],
)
def test_a_word_is_parted(word: str, parts: tuple[str | None, str]) -> None:
    assert parted(word) == parts
