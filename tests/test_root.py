"""Where the registry lives: chosen, moved off network file systems, and refused where others could change it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from session_magics.errors import StoreError
from session_magics.store.root import choose_root, network_file_system, prepare_root

NOBODY = 65534


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home of its own, without the variables that name a place."""
    for name in ("SESSION_MAGICS_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def mounts(folder: Path, *lines: str) -> Path:
    table = folder / "mounts"
    table.write_text("".join(f"{line} rw 0 0\n" for line in ("/dev/sda1 / ext4", *lines)))
    return table


def test_the_variable_names_the_root(environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSION_MAGICS_HOME", "~/mine")
    chosen = choose_root(None, mounts=mounts(environment))
    assert (chosen.path, chosen.relocated) == (environment / "mine", None)


def test_without_the_variable_it_is_the_state_directory(environment: Path) -> None:
    chosen = choose_root(None, mounts=mounts(environment))
    assert chosen.path.name == "session-magics"
    assert environment in chosen.path.parents
    assert chosen.relocated is None


def test_a_root_on_a_network_file_system_is_moved_and_says_so(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = mounts(environment, f"server:/home {environment} nfs4")
    default = choose_root(None, mounts=table)
    assert default.path == Path(tempfile.gettempdir(), f"session-magics-{os.getuid()}")
    assert default.relocated is not None
    assert "network file system (nfs4)" in default.relocated
    assert "\n" not in default.relocated

    one, two = (choose_root(environment / name, mounts=table) for name in "ab")
    assert one.relocated
    assert len({default.path, one.path, two.path}) == 3

    runtime = tempfile.gettempdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    assert choose_root(None, mounts=table).path == Path(runtime, "session-magics")


def test_without_a_local_place_it_says_what_to_do(environment: Path) -> None:
    table = mounts(environment, f"server:/tmp {tempfile.gettempdir()} nfs", f"server:/home {environment} nfs")
    with pytest.raises(StoreError, match=r"network file system \(nfs\): set SESSION_MAGICS_HOME"):
        choose_root(None, mounts=table)


def test_the_innermost_and_latest_mount_counts() -> None:
    table = "\n".join(
        [
            "/dev/sda1 / ext4 rw",
            "server:/ /home nfs rw",
            "/dev/sdb1 /home/local ext4 rw",
            "server:/x /data\\040set lustre rw",
            "/dev/sdc1 /twice ext4 rw",
            "user@host: /twice fuse.sshfs rw",
            "broken",
        ]
    )
    found = {
        path: network_file_system(Path(path), table)
        for path in ("/home/me", "/home/local/x", "/homes", "/data set/y", "/twice")
    }
    assert found == {
        "/home/me": "nfs",
        "/home/local/x": None,
        "/homes": None,
        "/data set/y": "lustre",
        "/twice": "fuse.sshfs",
    }


def test_a_new_root_is_private_whatever_the_umask(tmp_path: Path) -> None:
    for mask in (0, 0o077, 0o777):
        path = tmp_path / f"umask-{mask:o}"
        old = os.umask(mask)
        try:
            prepare_root(path)
        finally:
            os.umask(old)
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_a_readable_root_is_made_private(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    prepare_root(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o720, 0o702])
def test_a_root_that_others_can_write_is_refused_and_left_alone(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    with pytest.raises(StoreError, match=rf"can be changed by other users \(mode 0{mode:o}\)"):
        prepare_root(tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == mode
    assert os.listdir(tmp_path) == []


def test_a_symbolic_link_or_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "link").symlink_to("place")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "file").touch()
    for name, reason in (("link", "symbolic link"), ("dangling", "symbolic link"), ("file", "not a directory")):
        with pytest.raises(StoreError, match=reason):
            prepare_root(tmp_path / name)
    with pytest.raises(StoreError, match="cannot be created or read"):
        prepare_root(tmp_path / "file" / "below")
    (tmp_path / "parent").symlink_to("place")
    prepare_root(tmp_path / "parent" / "root")


AS_NOBODY = """
import os, sys
from pathlib import Path
from session_magics.store.root import prepare_root
from session_magics.errors import StoreError
os.seteuid(int(sys.argv[1]))
try:
    prepare_root(Path(sys.argv[2]))
except StoreError as error:
    print(error.reason)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_root_of_another_user_or_without_access_is_refused() -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own directory is closed to other users
        base = Path(name)
        base.chmod(0o755)
        for folder, owner, mode in (("theirs", 0, 0o755), ("read-only", NOBODY, 0o500), ("unreadable", NOBODY, 0o300)):
            (base / folder).mkdir()
            (base / folder).chmod(mode)
            os.chown(base / folder, owner, owner)
        for folder, reason in (
            ("theirs", "belongs to user 0, not to you"),
            ("read-only", "cannot be read and written"),
            ("unreadable", "cannot be read and written"),
            ("missing", "cannot be created or read (Permission denied)"),
        ):
            command = [sys.executable, "-c", AS_NOBODY, str(NOBODY), str(base / folder)]
            done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent)
            assert reason in done.stdout
            assert done.stdout.count("\n") == 1


def test_loading_the_store_does_not_look_for_the_platforms_directories() -> None:
    code = "import sys, session_magics.store; print(sorted({'platformdirs', 'tempfile'} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, cwd=Path(__file__).parent.parent
    )
    assert "platformdirs" not in done.stdout + done.stderr
    assert done.returncode == 0, done.stderr
