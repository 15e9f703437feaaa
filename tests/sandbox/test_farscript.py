"""Bytes on their way to the control script come out as they were."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from session_magics.holder.farscript import escaped

READER = r"""while read -r verb number one two; do printf '%b' "$two"; done"""
SHELLS = [words for words in (["bash"], ["dash"], ["busybox", "sh"]) if shutil.which(words[0])]


@pytest.mark.parametrize("words", SHELLS, ids="-".join)
@settings(max_examples=25, deadline=None)
@given(pieces=st.lists(st.one_of(st.binary(), st.text(" \t\\a0'\n").map(str.encode)), max_size=20))
def test_a_line_carries_all_bytes(words: list[str], pieces: list[bytes]) -> None:
    lines = b"".join(b"D 0 - %s\n" % escaped(one) for one in pieces)
    called = subprocess.run([*words, "-c", READER], input=lines, capture_output=True, check=True)
    assert called.stdout == b"".join(pieces)
