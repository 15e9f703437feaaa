"""Directories and names: one winner for a name, nothing torn, nothing left over, nothing outside the root."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from session_magics.errors import StoreError, UsageMistake
from session_magics.holder.record import blank_record, format_exit
from session_magics.model import Lost, Spec, Unknown
from session_magics.store import Store, check_key, name_key, names

PROJECT = Path(__file__).parent.parent


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "registry")


def add(store: Store, name: str, *, claim: bool = True) -> str:
    spec = Spec(store.new_id(), name, ("true",), "/")
    store.create(spec)
    if claim:
        store.claim(name, spec.id)
    return spec.id


def make_old(path: Path) -> None:
    past = time.time() - 7200
    os.utime(path, (past, past), follow_symlinks=False)


def test_a_new_session_has_its_files_and_they_are_private(store: Store) -> None:
    id = add(store, "one")
    directory = store.directory(id)
    assert (directory / "exit").read_bytes() == blank_record()
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {
        "exit": 0o600,
        "spec.json": 0o600,
    }
    folders = [store.root, store.root / "sessions", store.root / "names", directory]
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700] * 4


def test_an_id_is_used_once_and_sorts_by_time(store: Store) -> None:
    ids = [store.new_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert [id[:13] for id in ids] == sorted(id[:13] for id in ids)
    add(store, "x")
    with pytest.raises(StoreError, match="File exists"):
        store.create(store.spec(store.names()["x"]))


def test_a_name_is_claimed_where_there_are_no_hard_links(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: str, target: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    first = add(store, "one")
    with pytest.raises(FileExistsError):
        store.claim("one", store.new_id())
    assert store.names() == {"one": first}
    assert os.listdir(store.root / "names") == ["one"]


def test_a_name_is_released_only_by_its_session(store: Store) -> None:
    first = add(store, "one")
    store.release("one", store.new_id())
    assert store.resolve("one") == first
    store.release("one", first)
    assert store.resolve("one") is None
    store.release("one", first)


def test_a_lock_that_is_held_is_an_error_that_names_the_process(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import fcntl, os, sys; fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)\n"
        "fcntl.flock(fd, fcntl.LOCK_EX); os.pwrite(fd, b'%-20d' % os.getpid(), 0)\n"
        "print('', flush=True); sys.stdin.read()"
    )
    id = add(store, "one")
    monkeypatch.setattr(names, "LOCK_DEADLINE", 0.25)
    command = [sys.executable, "-c", code, str(store.root / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as locker:
        assert locker.stdout is not None
        locker.stdout.readline()
        with pytest.raises(StoreError, match=rf"was locked for 0\.25 s by process {locker.pid}"):
            store.release("one", id)
        locker.kill()
    store.release("one", id)


BAD_NAMES = [
    "../x",
    "a/b",
    "a\0b",
    "",
    ".",
    "..",
    ".hidden",
    "x" * 65,
    "x" * 300,
    "a b",
    "ä",
    "a\n",
    "-a",
    "a@",
    "@a",
    "a@../x",
    "a@b@c/",
]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_no_name_leads_out_of_the_root(store: Store, name: str) -> None:
    before = sorted(store.root.rglob("*"))
    for verb in (check_key, store.resolve, lambda key: store.claim(key, "1"), lambda key: store.release(key, "1")):
        with pytest.raises(UsageMistake):
            verb(name)
    with pytest.raises(UsageMistake):
        store.state(name if "@" not in name else "../" + name)
    assert sorted(store.root.rglob("*")) == before


def test_a_kernels_names_are_its_own(store: Store) -> None:
    shared, own = add(store, "main"), add(store, "main", claim=False)
    store.claim(name_key("main", "k1"), own)
    infos = store.infos(owner="k1")
    assert {key: (info.id, info.name) for key, info in infos.items()} == {
        "main": (shared, "main"),
        "main@k1": (own, "main"),
    }
    assert store.infos()["main@k1"].name == "main@k1"
    with pytest.raises(UsageMistake):
        name_key("main", "k/1")


def test_a_removed_session_is_gone_with_its_name(store: Store) -> None:
    id = add(store, "one")
    (store.directory(id) / "log.00000000000000000000").write_bytes(b"x")
    store.remove(id, "one")
    assert store.names() == {}
    assert os.listdir(store.root / "sessions") == []
    store.remove(id, "one")


def test_a_removed_session_can_leave_its_log(store: Store) -> None:
    id = add(store, "one")
    directory = store.directory(id)
    (directory / "log.00000000000000000000").write_bytes(b"x")
    (directory / "alive").touch()
    store.remove(id, "one", keep_log=True)
    assert store.names() == {}
    make_old(directory)
    make_old(directory / "exit")
    assert store.sweep() == []
    assert {path.name for path in directory.iterdir()} == {"log.00000000000000000000", "spec.json", "exit", "kept"}


def test_removing_spares_the_session_that_took_the_name_over(store: Store) -> None:
    old, new = add(store, "one"), add(store, "one", claim=False)
    store.takeover("one", old, new)
    store.remove(old, "one")
    assert store.names() == {"one": new}
    with pytest.raises(FileExistsError):
        store.takeover("one", old, store.new_id())


def test_a_name_without_a_directory_is_shown_and_can_be_taken_over(store: Store) -> None:
    id = add(store, "one")
    for path in store.directory(id).iterdir():
        path.unlink()
    store.directory(id).rmdir()
    assert store.infos()["one"].state == Lost("its directory is gone")
    assert store.resolve("one") == id
    new = add(store, "one", claim=False)
    store.takeover("one", id, new)
    assert store.names() == {"one": new}


def test_a_damaged_name_without_a_session_is_reported_and_can_be_removed(store: Store) -> None:
    (store.root / "names" / "bad").write_bytes(b"\0\0")
    (store.root / "names" / "not a name~").touch()
    good = add(store, "good")
    assert store.names() == {"good": good}
    assert store.damaged_names() == ["bad"]
    assert isinstance(store.infos()["bad"].state, Unknown)
    with pytest.raises(StoreError, match="is damaged"):
        store.resolve("bad")
    store.remove("", "bad")
    assert store.damaged_names() == []


def test_a_sweep_takes_what_is_old_and_over_and_nothing_else(store: Store) -> None:
    names = ["claimed", "fresh", "old", "unknown", "healed", "running"]
    ids = {name: add(store, name, claim=name == "claimed") for name in names}
    (store.directory(ids["fresh"]) / "exit").write_bytes(format_exit(1, "code", 0, 1.0))
    for name in set(names) - {"fresh"}:
        directory = store.directory(ids[name])
        if name in ("old", "healed", "running"):  # the last runs on in the background
            (directory / "exit").write_bytes(format_exit(1, "code", 0, 1.0))
        if name == "healed":
            (directory / "run.json").write_text("{}")
            (store.root / "names" / name).touch()
        if name == "unknown":
            (directory / "alive").symlink_to("/nowhere")
        make_old(directory / "exit")
        make_old(directory)
    trash = store.root / "sessions" / ".trash-x"
    (trash / "deep").mkdir(parents=True)
    temps = [
        store.root / "names" / ".tmp-x",
        store.directory(ids["claimed"]) / "run.json.new",
        store.root / "names" / ".tmp-new",
    ]
    for temp in temps:
        temp.touch()
        if temp.name != ".tmp-new":
            make_old(temp)
    make_old(store.directory(ids["claimed"]))
    held = store.directory(ids["running"]) / "alive"
    code = (
        "import fcntl, os, sys\n"
        "fcntl.flock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600), fcntl.LOCK_EX)\n"
        "print('', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(held)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        make_old(held.parent)
        swept = store.sweep()
        holder.kill()
    assert set(swept) == {str(path) for path in (trash, *temps[:2], store.directory(ids["old"]))}
    assert {path.name for path in (store.root / "sessions").iterdir()} == {ids[name] for name in names if name != "old"}


def test_a_store_and_its_errors_are_one_line(store: Store, tmp_path: Path) -> None:
    assert "\n" not in repr(store)
    (tmp_path / "file").touch()
    with pytest.raises(StoreError) as caught:
        Store(tmp_path / "file")
    assert str(caught.value).startswith(str(tmp_path / "file"))
    assert "\n" not in str(caught.value)
