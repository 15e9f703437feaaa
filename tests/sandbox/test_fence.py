"""No path leads out of the fence, as it is written or through a link."""

from __future__ import annotations

import os
import posixpath
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session_magics.errors import UsageMistake
from session_magics.sandbox.fence import below, lexical, resolved

words = st.sampled_from(["..", ".", "", "a", "b", "root", "a b", "rooty"])
paths = st.tuples(st.booleans(), st.lists(words, max_size=6)).map(lambda two: "/" * two[0] + "/".join(two[1]))


@given(paths)
def test_what_is_let_through_lies_below(cwd: str) -> None:
    try:
        path = lexical("/the/root", cwd)
    except UsageMistake:
        return
    assert os.path.normpath(path) == "/the/root" or os.path.normpath(path).startswith("/the/root/")


@given(st.lists(st.sampled_from(["a", "b", "."]), max_size=4), st.sampled_from(["/", "/the", "/the/root"]))
def test_what_lies_below_is_let_through(inside: list[str], root: str) -> None:
    written = "/".join(inside)
    wanted = posixpath.normpath(posixpath.join(root, written))
    for cwd in (written, f"{root.rstrip('/')}/{written}", f"/mnt/{written}"):
        assert posixpath.normpath(lexical(root, cwd, "/mnt")) == wanted
    assert below(wanted, root)


@given(paths)
def test_a_root_of_everything_holds_everything(cwd: str) -> None:
    assert lexical("/", cwd).startswith("/")


links = st.dictionaries(st.sampled_from(["a", "b", "c"]), paths, max_size=3)


@given(links, paths)
def test_no_chain_of_links_leads_out(made: dict[str, str], cwd: str) -> None:
    base = Path(tempfile.mkdtemp())
    try:
        root = base / "root"
        (root / "root").mkdir(parents=True)
        for name, target in made.items():
            (root / name).symlink_to(target or ".")
        try:
            path = resolved(str(root), cwd)
        except UsageMistake:
            return
        assert below(os.path.realpath(path), os.path.realpath(root))
    finally:
        shutil.rmtree(base)


@pytest.mark.parametrize("cwd", ["a\0b", "\0"])
def test_a_nul_is_refused(cwd: str) -> None:
    with pytest.raises(UsageMistake, match="NUL"):
        lexical("/", cwd)
